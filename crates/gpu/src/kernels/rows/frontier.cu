// A level of a search along pages of rows: `want_frontier` asks for the pages that have the frontier's
// lists, and `push_frontier` gives the next depth to the neighbours there that have none. Reads 4 bytes a
// vertex, and those pages. CPU twin: analytics::bfs::rows.

static const u32 THREADS = 256;

struct Frontier {
    u32* depth;  // Of each vertex, NONE where it was not reached.
    Stored stored;
    u32 vertices;
    u32 level;  // The depth of the frontier's vertices.
};

extern "C" __global__ void __launch_bounds__(THREADS) want_frontier(Frontier f) {
    u32 v = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x % WARP, first = 0, last = 0;
    if (v < f.vertices && f.depth[v] == f.level) {
        first = last = page_of(f.stored, v, 0);
        if (goes_on(f.stored, first, v)) last = page_of(f.stored, v, ~0ull);
        want_page(f.stored, first);
    }
    // All lanes share the other pages of a long list.
    for (u32 left = __ballot_sync(ALL, last > first); left != 0; left &= left - 1) {
        u32 of = __ffs(left) - 1, begin = __shfl_sync(ALL, first, of), end = __shfl_sync(ALL, last, of);
        for (u32 page = begin + 1 + lane; page <= end; page += WARP) want_page(f.stored, page);
    }
}

// Gives the next depth to the neighbours of a chunk of a list; false if one of them is no vertex.
__device__ inline bool push_chunk(const Frontier& f, const u8* page, const PageList& list, u32 chunk) {
    bool is_sound = true;
    each_of_chunk(page, list, chunk, [&](u32 neighbor) {
        if (neighbor >= f.vertices) {
            is_sound = false;
        } else if (f.depth[neighbor] == NONE) {
            f.depth[neighbor] = f.level + 1;
        }
    });
    return is_sound;
}

// A warp a page: lists of one chunk by a lane each, the chunks of others by all lanes.
extern "C" __global__ void __launch_bounds__(THREADS) push_frontier(Frontier f, Decoding d) {
    u32 lane = threadIdx.x % WARP, slot = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    if (slot >= d.count) return;
    const u8* page = d.pages + (u64)slot * PAGE_BYTES;
    u64 first = first_vertex_of(page);
    u32 lists = min(lists_of(page), MOST_LISTS);
    for (u32 base = 0; base < lists; base += WARP) {
        u64 v = first + base + lane;
        bool is_wanted = base + lane < lists && v < f.vertices && f.depth[v] == f.level;
        PageList list = {};
        bool is_sound = !is_wanted || find_list(page, (u32)v, list);
        bool is_long = is_wanted && is_sound && list.length > CHUNK;
        if (is_wanted && is_sound && !is_long && list.length > 0) is_sound = push_chunk(f, page, list, 0);
        for (u32 left = __ballot_sync(ALL, is_long); left != 0; left &= left - 1) {
            u32 long_vertex = (u32)(first + base) + __ffs(left) - 1;
            // It was found once, and so it is again.
            find_list(page, long_vertex, list);
            for (u32 chunk = lane; chunk * CHUNK < list.length; chunk += WARP) {
                if (!push_chunk(f, page, list, chunk)) *d.impossible = long_vertex;
            }
            __syncwarp();
        }
        if (!is_sound) *d.impossible = (u32)v;
    }
}
