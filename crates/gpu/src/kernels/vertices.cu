// What algorithms do to their vertices between two passes.

static const u32 THREADS = 256;

template <class T>
__device__ inline T sum_block(T value) {
    __shared__ T parts[THREADS / WARP];
    for (u32 step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    value = 0;
    for (u32 i = 0; i < THREADS / WARP; i++) value += parts[i];
    __syncthreads();
    return value;
}

struct Ranks {
    float* x;  // A vertex's rank over its degree; its rank where it has no out-arc.
    double* y;  // Sums of the pass; set to zero.
    const u32* degrees;
    const float* teleport;  // Where a personalised walk restarts; or null: everywhere alike.
    double* sums;           // Ranks of sinks, and the change of all ranks.
    double jump;            // What lands on a vertex of probability 1.
    double even;            // What lands on every vertex.
    double damping;
    u32 vertices;
    u32 hubs;     // So many of the first vertices have a sum a lane besides.
    u32 by_lane;  // Where in y those begin.
    u32 unused;
};

// The next ranks from the sums. CPU twin: analytics::pagerank::update_part. 28 bytes a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) next_ranks(Ranks r) {
    double sinks = 0, change = 0;
    for (u32 v = blockIdx.x * THREADS + threadIdx.x; v < r.vertices; v += gridDim.x * THREADS) {
        double sum = r.y[v];
        if (v < r.hubs) {
            double* parts = r.y + (r.by_lane + v * WARP);
#pragma unroll
            for (u32 lane = 0; lane < WARP; lane++) sum += parts[lane];
#pragma unroll
            for (u32 lane = 0; lane < WARP; lane++) parts[lane] = 0;
        }
        double rank = r.even + r.damping * sum;
        if (r.teleport) rank += r.jump * r.teleport[v];
        u32 degree = r.degrees[v];
        double out = max(degree, 1u);
        change += fabs(rank - r.x[v] * out);
        if (degree == 0) sinks += rank;
        r.x[v] = (float)(rank / out);
        r.y[v] = 0;
    }
    sinks = sum_block(sinks);
    change = sum_block(change);
    if (threadIdx.x == 0) {
        atomicAdd(r.sums, sinks);
        atomicAdd(r.sums + 1, change);
    }
}

struct Unscaled {
    float* x;
    const u32* degrees;
    u32 vertices;
    u32 unused;
};

// Makes ranks of what the last pass's ranks hand on.
extern "C" __global__ void __launch_bounds__(THREADS) unscale(Unscaled u) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v < u.vertices) u.x[v] *= max(u.degrees[v], 1u);
}

struct Forest {
    u32* parent;
    u32 vertices;
    u32 unused;
};

extern "C" __global__ void __launch_bounds__(THREADS) plant(Forest f) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v < f.vertices) f.parent[v] = v;
}

// Points every vertex at its root.
extern "C" __global__ void __launch_bounds__(THREADS) compress(Forest f) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v >= f.vertices) return;
    volatile u32* parent = f.parent;
    u32 root = parent[v];
    while (parent[root] != root) root = parent[root];
    parent[v] = root;
}

struct Levels {
    const u32* depth;
    const u32* degrees;  // Or null: arcs are not counted, and every vertex has some.
    u8* reached;         // Set to zero, as `counts`.
    u8* unvisited;
    u64* counts;         // Vertices of the level, their arcs, those of unvisited vertices.
    u32 vertices;
    u32 level;
    u32 log2;            // Flags are for 2^log2 vertices, 2^10 or more.
    u32 unused;
};

// Which ranges hold a vertex of the level, or an unvisited one; a warp 2^10 vertices. Reads 4 or 8
// bytes a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) find_level(Levels l) {
    u32 lane = threadIdx.x % WARP;
    u64 first = (u64)((blockIdx.x * THREADS + threadIdx.x) / WARP) << 10;
    u64 vertices = 0, arcs = 0, left = 0;
    bool open = false;
#pragma unroll 8
    for (u32 i = 0; i < WARP; i++) {
        u64 v = first + i * WARP + lane;
        if (v >= l.vertices) continue;
        u32 own = l.depth[v], degree = l.degrees ? l.degrees[v] : 0;
        if (own == l.level) {
            vertices++;
            arcs += degree;
        }
        if (own == ~0u && (degree > 0 || !l.degrees)) {
            left += degree;
            open = true;
        }
    }
    if (first < l.vertices) {
        if (vertices > 0) l.reached[first >> l.log2] = 1;
        if (open) l.unvisited[first >> l.log2] = 1;
    }
    vertices = sum_block(vertices);
    arcs = sum_block(arcs);
    left = sum_block(left);
    if (threadIdx.x == 0 && vertices > 0) {
        atomicAdd(l.counts, vertices);
        atomicAdd(l.counts + 1, arcs);
    }
    if (threadIdx.x == 0 && left > 0) atomicAdd(l.counts + 2, left);
}
