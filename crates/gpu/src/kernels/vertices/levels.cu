// Which vertices a search has at a level, and which are unvisited.

struct Levels {
    const u32* depth;
    const u32* degrees;  // Or null: arcs are not counted, and every vertex has some.
    u8* reached;         // Set to zero, as `counts`.
    u8* unvisited;
    u64* counts;         // Vertices of the level, their arcs, those of unvisited vertices.
    u32 vertices;
    u32 level;
    u32 log2;            // Flags are for 2^log2 vertices, 2^10 or more.
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
