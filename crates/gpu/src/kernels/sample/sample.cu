// k-hop neighbour sampling, draw for draw as docs/sampling.md defines it: the batches of the CPU's
// sampler, bit for bit. CPU twin: sampler::sample.
//
// A hop is: `count` (how many each frontier node takes, summed by blocks), `sum` (the blocks' sums
// to offsets), `choose` (Floyd's algorithm on Philox draws, a thread a node), `claim` (each new
// neighbour to its first edge), `mark` (first edges counted), `sum`, `number` (new nodes to their
// local ids), `look_up`. Sizes stay on the device, so the host waits once a batch. The graph's lists
// lie in device memory, in mapped host memory, or each in one of them, or on storage. `choose` asks for
// the pages of those; the host has them brought piece by piece, and `decode` finds the neighbours there.

static const u32 THREADS = 256;
static const u32 TILE = 1024;            // Items whose sums one thread block makes.
static const u32 EACH = TILE / THREADS;  // Consecutive items a thread.
static const u32 FIRST = 1u << 31;       // Plus an edge: a vertex that this hop found.
static const u32 MOST = 64;              // The largest fanout whose choice stays on the chip.
static const u32 ON_HOST = 1u << 31;     // Of an edge whose neighbour is in host memory.
static const u32 FETCHES = 8;            // Neighbours that a thread has on their way.

struct Graph {
    const u64* offsets;  // Of each vertex's list, and the end.
    const u32* neighbors;
    const u32* host_neighbors;  // Null where all lists are in `neighbors`; without `location`, all are here.
    // Of each vertex's list where lists are split, else null: below `device_neighbors` in `neighbors`,
    // else in `host_neighbors`, minus `device_neighbors`; NOT_RESIDENT for those on storage.
    const u64* location;
    u64 device_neighbors;
    Stored stored;
};

static const u64 NOT_RESIDENT = ~0ull;

// Whether the list of `vertex` is on storage.
__device__ inline bool is_on_storage(const Graph& graph, u32 vertex) {
    return graph.location && graph.location[vertex] == NOT_RESIDENT;
}

// Where the list of a vertex in memory begins: below `device_neighbors` in `neighbors`, else, less that
// number, in `host_neighbors`. `begin`: where it begins in the order of arcs.
__device__ inline u64 place_of(const Graph& graph, u32 vertex, u64 begin) {
    return graph.location ? graph.location[vertex] : begin;
}

// Nodes and edges of a batch so far.
struct Sizes {
    u32 begin;  // The frontier: nodes begin to end.
    u32 end;
    u32 first_edge;  // This hop's edges: first_edge to end_edge.
    u32 end_edge;
};

// Whether the list of `vertex` is in host memory, unless all are in device memory.
__device__ inline bool is_on_host(const Graph& graph, u32 vertex) {
    if (!graph.location) return true;
    return graph.location[vertex] >= graph.device_neighbors && graph.location[vertex] != NOT_RESIDENT;
}

// What a list costs wherever it is not in device memory.
struct ListUse {
    u64 lines;  // Transactions, were it in host memory.
    u64 pages;  // Reads, were it on storage.
    u64 draws;  // How often it was drawn from.
};

struct Hop {
    Graph graph;
    Sizes* sizes;
    u32* n_id;
    // Of each edge; before `look_up`, the page that has its neighbour on storage, or ON_HOST, which
    // is no page, and the high bits of the neighbour's place in host memory.
    u32* row;
    u32* col;
    u64* e_id;
    u32* neighbor;  // Of each edge, as the graph numbers it; before `fetch`, the low bits of that place.
    u32* local_id;  // Each vertex's index among the batch's nodes, NONE if it is not one.
    u32* ranks;     // Inside a tile: of nodes' edges, or of first edges; in between, edges listed by parts.
    u32* sums;      // Of tiles.
    u32* ends;      // Of parts of edges whose neighbours are in host memory, and then the number of those.
    ListUse* by_list;  // Of each vertex; or null.
    u64* from_host;    // Lines of lists in host memory, pages of lists on storage; null where none is.
    u32 key[2];
    u32 batch;
    u32 hop;
    u32 fanout;  // NONE for all.
    u32 tiles;
    u32 part_log2;  // A part of host memory has 2^part_log2 neighbours; 0: edges are not listed by parts.
    u32 reserved;
};

__device__ inline void philox(u32 (&c)[4], u32 k0, u32 k1) {
#pragma unroll
    for (u32 i = 0; i < 10; i++) {
        u32 high = __umulhi(c[2], 0xCD9E8D57u), low = c[2] * 0xCD9E8D57u;
        u32 left = __umulhi(c[0], 0xD2511F53u), under = c[0] * 0xD2511F53u;
        c[0] = high ^ c[1] ^ k0;
        c[1] = low;
        c[2] = left ^ c[3] ^ k1;
        c[3] = under;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

// Transactions that drawing `taken` of the neighbours of a list costs, where the list is in host memory.
// Twin: `batch::list_transactions`.
__device__ inline u32 list_transactions(u64 degree, u32 taken) {
    return (u32)min((degree * sizeof(u32) + LINE_BYTES - 1) / LINE_BYTES, (u64)taken);
}

// Reads that drawing `taken` of the neighbours of a list costs, where the list is on storage.
__device__ inline u32 list_reads(const Stored& stored, u32 vertex, u64 degree, u32 taken) {
    if (taken == 0) return 0;
    u32 first = page_of(stored, vertex, 0), last = first;
    if (goes_on(stored, first, vertex)) last = page_of(stored, vertex, degree - 1);
    return min(last - first + 1, taken);
}

// Asks for the pages of `taken` chosen arcs of a list on storage, the first of which is edge `to`.
__device__ inline void want_pages(const Hop& h, u32 vertex, u64 begin, u64 to, u32 taken) {
    const Stored& stored = h.graph.stored;
    u32 page = page_of(stored, vertex, 0);
    bool is_cut = goes_on(stored, page, vertex);
    for (u32 k = 0; k < taken; k++) {
        if (is_cut) page = page_of(stored, vertex, h.e_id[to + k] - begin);
        h.row[to + k] = page;
        if (is_cut || k == 0) want_page(stored, page);
    }
}

// Turns the items of a tile into what is before each, and leaves their sum for `sum`.
__device__ inline void scan_tile(u32 (&items)[EACH], u32* ranks, u32* sums, u32 tile) {
    __shared__ u32 warps[THREADS / WARP];
    u32 lane = threadIdx.x % WARP, own = 0;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        u32 item = items[i];
        items[i] = own;
        own += item;
    }
    u32 through = own;
#pragma unroll
    for (u32 step = 1; step < WARP; step *= 2) {
        u32 other = __shfl_up_sync(ALL, through, step);
        if (lane >= step) through += other;
    }
    if (lane == WARP - 1) warps[threadIdx.x / WARP] = through;
    __syncthreads();
    u32 before = through - own, all = 0;
    for (u32 w = 0; w < THREADS / WARP; w++) {
        if (w < threadIdx.x / WARP) before += warps[w];
        all += warps[w];
    }
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        ranks[tile * TILE + threadIdx.x * EACH + i] = before + items[i];
    }
    if (threadIdx.x == 0) sums[tile] = all;
}

extern "C" __global__ void __launch_bounds__(THREADS) start(Hop h, const u32* seeds, u32 count) {
    u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i == 0) *h.sizes = Sizes{0, count, 0, 0};
    if (i >= count) return;
    h.n_id[i] = seeds[i];
    atomicMin(h.local_id + seeds[i], i);  // The first of seeds that repeat.
}

extern "C" __global__ void __launch_bounds__(THREADS) count(Hop h) {
    Sizes s = *h.sizes;
    u32 items[EACH], first = s.begin + blockIdx.x * TILE + threadIdx.x * EACH;
    if (s.begin + blockIdx.x * TILE >= s.end) {
        if (threadIdx.x == 0) h.sums[blockIdx.x] = 0;
        return;
    }
    __shared__ u32 from_host, from_storage;  // Below 2^31, as the edges are.
    if (threadIdx.x == 0) from_host = from_storage = 0;
    u32 lines = 0, pages = 0;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        items[i] = 0;
        if (first + i < s.end) {
            u32 vertex = h.n_id[first + i];
            u64 degree = h.graph.offsets[vertex + 1] - h.graph.offsets[vertex];
            items[i] = (u32)min(degree, (u64)h.fanout);
            u32 transactions = list_transactions(degree, items[i]), reads = 0;
            bool is_stored = is_on_storage(h.graph, vertex);
            if (h.graph.stored.index && (is_stored || h.by_list)) {
                reads = list_reads(h.graph.stored, vertex, degree, items[i]);
            }
            if (h.by_list) {
                atomicAdd(&h.by_list[vertex].lines, (u64)transactions);
                atomicAdd(&h.by_list[vertex].pages, (u64)reads);
                atomicAdd(&h.by_list[vertex].draws, (u64)(items[i] > 0));
            }
            if (is_stored) pages += reads;
            else if (h.from_host && is_on_host(h.graph, vertex)) lines += transactions;
        }
    }
    scan_tile(items, h.ranks, h.sums, blockIdx.x);
    if (!h.from_host) return;
    // `scan_tile` has a barrier: the sums are zero.
    if (lines) atomicAdd(&from_host, lines);
    if (pages) atomicAdd(&from_storage, pages);
    __syncthreads();
    if (threadIdx.x == 0 && from_host) atomicAdd(h.from_host, (u64)from_host);
    if (threadIdx.x == 0 && from_storage) atomicAdd(h.from_host + 1, (u64)from_storage);
}

// The sums of tiles to what is before each; one thread block. `nodes`: the tiles held first edges,
// so their sum is how many nodes are new.
extern "C" __global__ void __launch_bounds__(1024) sum(Hop h, u32 nodes) {
    __shared__ u32 warps[32];
    __shared__ u32 carry;
    if (threadIdx.x == 0) carry = 0;
    __syncthreads();
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (u32 base = 0; base < h.tiles; base += 1024) {
        u32 i = base + threadIdx.x, own = i < h.tiles ? h.sums[i] : 0, through = own;
#pragma unroll
        for (u32 step = 1; step < WARP; step *= 2) {
            u32 other = __shfl_up_sync(ALL, through, step);
            if (lane >= step) through += other;
        }
        if (lane == WARP - 1) warps[warp] = through;
        __syncthreads();
        u32 before = carry + through - own, all = carry;
        for (u32 w = 0; w < 32; w++) {
            if (w < warp) before += warps[w];
            all += warps[w];
        }
        if (i < h.tiles) h.sums[i] = before;
        __syncthreads();
        if (threadIdx.x == 0) carry = all;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        if (nodes) {
            h.sizes->begin = h.sizes->end;
            h.sizes->end += carry;
        } else {
            h.sizes->first_edge = h.sizes->end_edge;
            h.sizes->end_edge += carry;
        }
    }
}

// Whether `position` was taken before draw `i`.
__device__ inline bool taken(const u64* positions, u32 i, u64 position) {
    bool found = false;
    for (u32 m = 0; m < i; m++) found = found || positions[m] == position;
    return found;
}

// The neighbour of edge `e` is at place `at` of lists in memory.
__device__ inline void choose_neighbor(const Hop& h, u64 e, u64 at) {
    const Graph& graph = h.graph;
    if (!graph.host_neighbors) {
        h.neighbor[e] = graph.neighbors[at];
        return;
    }
    bool is_on_host = at >= graph.device_neighbors;
    u64 place = at - graph.device_neighbors;
    h.row[e] = is_on_host ? ON_HOST | (u32)(place >> 32) : 0;
    h.neighbor[e] = is_on_host ? (u32)place : graph.neighbors[at];
}

extern "C" __global__ void __launch_bounds__(THREADS) choose(Hop h) {
    Sizes s = *h.sizes;
    u32 i = blockIdx.x * THREADS + threadIdx.x, node = s.begin + i;
    if (node >= s.end) return;
    u32 vertex = h.n_id[node];
    u64 begin = h.graph.offsets[vertex], degree = h.graph.offsets[vertex + 1] - begin;
    bool is_stored = is_on_storage(h.graph, vertex);
    u64 list = is_stored ? 0 : place_of(h.graph, vertex, begin);
    u64 to = s.first_edge + h.sums[i / TILE] + h.ranks[i];
    if (degree <= h.fanout) {
        for (u64 k = 0; k < degree; k++) {
            h.e_id[to + k] = begin + k;
            h.col[to + k] = node;
            if (!is_stored) choose_neighbor(h, to + k, list + k);
        }
        if (is_stored) want_pages(h, vertex, begin, to, (u32)degree);
        return;
    }
    u64 chosen[MOST];
    // Larger choices are compared where they are written; `e_id` has them plus `begin`.
    bool fits = h.fanout <= MOST;
    for (u32 k = 0; k < h.fanout; k += 2) {
        u32 words[4] = {h.hop << 24 | k / 2, vertex, h.batch, 0};
        philox(words, h.key[0], h.key[1]);
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 draw_number = k + half;
            if (draw_number >= h.fanout) break;
            u64 draw = (u64)words[2 * half + 1] << 32 | words[2 * half];
            u64 j = degree - h.fanout + draw_number, position = __umul64hi(draw, j + 1);
            if (fits) {
                if (taken(chosen, draw_number, position)) position = j;
                chosen[draw_number] = position;
            } else {
                if (taken(h.e_id + to, draw_number, begin + position)) position = j;
            }
            h.e_id[to + draw_number] = begin + position;
        }
    }
    for (u32 k = 0; k < h.fanout; k++) {
        u64 position = fits ? chosen[k] : h.e_id[to + k] - begin;
        h.col[to + k] = node;
        if (!is_stored) choose_neighbor(h, to + k, list + position);
    }
    if (is_stored) want_pages(h, vertex, begin, to, h.fanout);
}

// The place in host memory of the neighbour of edge `e`, which is there.
__device__ inline u64 host_place(const Hop& h, u32 e) {
    return (u64)(h.row[e] & ~ON_HOST) << 32 | h.neighbor[e];
}

// The part of host memory that has the neighbour of edge `e`.
__device__ inline u32 part_of_edge(const Hop& h, u32 e) {
    return h.row[e] & ON_HOST ? (u32)(host_place(h, e) >> h.part_log2) : NOWHERE;
}

extern "C" __global__ void __launch_bounds__(LISTING) count_edges(Hop h) {
    count_by_parts(h.sizes->first_edge, h.sizes->end_edge, h.ends, [&](u32 e) { return part_of_edge(h, e); });
}

extern "C" __global__ void __launch_bounds__(LISTING) list_edges(Hop h) {
    auto put = [&](u32 place, u32 e) { h.ranks[place] = e; };
    list_by_parts(
        h.sizes->first_edge, h.sizes->end_edge, h.ends, [&](u32 e) { return part_of_edge(h, e); }, put);
}

// The neighbours of a hop's edges that are in host memory: by a few blocks, because they wait for the
// link, and `choose` would keep all multiprocessors meanwhile. One kernel for these and for listed edges is slower:
// its loads wait for each other (bench/runs/2026-11-28-h200-16-core-128gib/gpu_neighbours_by_parts.txt).
extern "C" __global__ void __launch_bounds__(THREADS) fetch(Hop h) {
    u32 all = gridDim.x * THREADS;
    for (u32 first = h.sizes->first_edge + blockIdx.x * THREADS + threadIdx.x; first < h.sizes->end_edge;
         first += FETCHES * all) {
        u32 neighbors[FETCHES];
        bool is_there[FETCHES];
#pragma unroll
        for (u32 i = 0; i < FETCHES; i++) {
            u32 e = first + i * all, row = e < h.sizes->end_edge ? h.row[e] : 0;
            u64 place = (u64)(row & ~ON_HOST) << 32 | (row & ON_HOST ? h.neighbor[e] : 0);
            is_there[i] = row & ON_HOST;
            neighbors[i] = is_there[i] ? h.graph.host_neighbors[place] : 0;
        }
#pragma unroll
        for (u32 i = 0; i < FETCHES; i++) {
            if (is_there[i]) h.neighbor[first + i * all] = neighbors[i];
        }
    }
}

// As `fetch`, of the edges that are listed, in that order.
extern "C" __global__ void __launch_bounds__(THREADS) fetch_listed(Hop h) {
    u32 all = gridDim.x * THREADS, count = h.ends[PARTS];
    for (u32 first = blockIdx.x * THREADS + threadIdx.x; first < count; first += FETCHES * all) {
        u32 edges[FETCHES], neighbors[FETCHES];
#pragma unroll
        for (u32 i = 0; i < FETCHES; i++) {
            edges[i] = first + i * all < count ? h.ranks[first + i * all] : NONE;
            neighbors[i] = edges[i] == NONE ? 0 : h.graph.host_neighbors[host_place(h, edges[i])];
        }
#pragma unroll
        for (u32 i = 0; i < FETCHES; i++) {
            if (edges[i] != NONE) h.neighbor[edges[i]] = neighbors[i];
        }
    }
}

// The neighbours of a hop's edges that are on pages which were brought.
extern "C" __global__ void __launch_bounds__(THREADS) decode(Hop h, Decoding d) {
    u32 e = h.sizes->first_edge + blockIdx.x * THREADS + threadIdx.x;
    if (e >= h.sizes->end_edge) return;
    u32 vertex = h.n_id[h.col[e]];
    if (!is_on_storage(h.graph, vertex)) return;
    u32 slot = h.graph.stored.slots[h.row[e]] - d.first;
    if (slot >= d.count) return;
    u64 begin = h.graph.offsets[vertex], degree = h.graph.offsets[vertex + 1] - begin;
    u32 neighbor = kth_neighbor(d.pages + (u64)slot * PAGE_BYTES, vertex, degree, h.e_id[e] - begin);
    if (neighbor >= h.graph.stored.vertices) {
        // What follows uses it as a vertex; the host refuses the batch.
        *d.impossible = vertex;
        neighbor = 0;
    }
    h.neighbor[e] = neighbor;
}

extern "C" __global__ void __launch_bounds__(THREADS) claim(Hop h) {
    u32 e = h.sizes->first_edge + blockIdx.x * THREADS + threadIdx.x;
    if (e < h.sizes->end_edge) atomicMin(h.local_id + h.neighbor[e], FIRST + e);
}

extern "C" __global__ void __launch_bounds__(THREADS) mark(Hop h) {
    Sizes s = *h.sizes;
    u32 items[EACH], first = s.first_edge + blockIdx.x * TILE + threadIdx.x * EACH;
    if (s.first_edge + blockIdx.x * TILE >= s.end_edge) {
        if (threadIdx.x == 0) h.sums[blockIdx.x] = 0;
        return;
    }
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        u32 e = first + i;
        items[i] = e < s.end_edge && h.local_id[h.neighbor[e]] == FIRST + e;
    }
    scan_tile(items, h.ranks, h.sums, blockIdx.x);
}

// After `sum`: new nodes are begin to end.
extern "C" __global__ void __launch_bounds__(THREADS) number(Hop h) {
    Sizes s = *h.sizes;
    u32 i = blockIdx.x * THREADS + threadIdx.x, e = s.first_edge + i;
    if (e >= s.end_edge) return;
    u32 vertex = h.neighbor[e];
    // Only the edge that claimed it writes, and what it writes is below FIRST.
    if (h.local_id[vertex] != FIRST + e) return;
    u32 node = s.begin + h.sums[i / TILE] + h.ranks[i];
    h.n_id[node] = vertex;
    h.local_id[vertex] = node;
}

extern "C" __global__ void __launch_bounds__(THREADS) look_up(Hop h) {
    u32 e = h.sizes->first_edge + blockIdx.x * THREADS + threadIdx.x;
    if (e < h.sizes->end_edge) h.row[e] = h.local_id[h.neighbor[e]];
}

// Forgets the batch's vertices.
extern "C" __global__ void __launch_bounds__(THREADS) forget(Hop h) {
    u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < h.sizes->end) h.local_id[h.n_id[i]] = NONE;
}

struct Export {
    const u32* n_id;
    const u32* row;
    const u32* col;
    const u64* e_id;
    const u32* positions;  // Each vertex's position in the user's order; or null.
    const u32* places;     // Of the seeds in the caller's list.
    const u64* offsets;    // Of each vertex's list, and the end.
    long long* nodes;
    long long* degree;  // Of each node; or null.
    long long* edges;  // Rows, then columns.
    long long* arcs;
    long long* input_id;
    u32 node_count;
    u32 edge_count;
    u32 place_count;
    u32 reserved;
};

// The batch in the types that PyG takes.
extern "C" __global__ void __launch_bounds__(THREADS) export_batch(Export x) {
    u32 stride = gridDim.x * THREADS, first = blockIdx.x * THREADS + threadIdx.x;
    for (u32 i = first; i < x.node_count; i += stride) {
        u32 vertex = x.n_id[i];
        x.nodes[i] = x.positions ? x.positions[vertex] : vertex;
        if (x.degree) x.degree[i] = x.offsets[vertex + 1] - x.offsets[vertex];
    }
    for (u32 e = first; e < x.edge_count; e += stride) {
        x.edges[e] = x.row[e];
        x.edges[(u64)x.edge_count + e] = x.col[e];
        x.arcs[e] = x.e_id[e];
    }
    for (u32 i = first; i < x.place_count; i += stride) x.input_id[i] = x.places[i];
}

struct Uses {
    const Sizes* sizes;
    const u32* n_id;
    u32* uses;  // Of each vertex.
};

// Counts the batch's nodes: what presampling ranks rows by.
extern "C" __global__ void __launch_bounds__(THREADS) count_uses(Uses u) {
    u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < u.sizes->end) atomicAdd(u.uses + u.n_id[i], 1);
}
