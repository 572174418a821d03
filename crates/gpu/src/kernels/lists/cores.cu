// Core numbers by peeling: vertices of the least degree that is left go, and their neighbours have one less.
//
// `degrees` are those that are left; a vertex that went keeps the level at which it did, its core number.
// `queue` has the vertices of this level in the order in which they went. CPU twin: analytics::structure::cores.

struct Peeling {
    u32* degrees;
    u32* queue;
    u32* counts;  // Vertices in the queue, and the least degree above the level of those that are left.
    u32 vertices;
    u32 level;
};

// Puts the vertices in the queue that have the level's degree.
extern "C" __global__ void __launch_bounds__(THREADS) find_level(Peeling p) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    u32 degree = v < p.vertices ? p.degrees[v] : 0;
    if (v >= p.vertices || degree < p.level) return;
    if (degree == p.level) {
        p.queue[atomicAdd(p.counts, 1u)] = v;
    } else if (degree < *(volatile u32*)(p.counts + 1)) {
        atomicMin(p.counts + 1, degree);
    }
}

// Takes the vertices from place `from` to `to` of the queue off their neighbours, of which those that
// come down to the level follow behind. A warp a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) peel(Lists l, Peeling p, u32 from, u32 to) {
    u32 lane = threadIdx.x % WARP;
    for (u32 at = from + warp_number(); at < to; at += warps()) {
        u32 v = p.queue[at], end = l.ends[v];
        for (u32 i = l.starts[v] + lane; i < end; i += WARP) {
            u32 u = l.targets[i];
            if (*(volatile u32*)(p.degrees + u) <= p.level) continue;
            u32 before = atomicAdd(p.degrees + u, ~0u);
            if (before == p.level + 1) p.queue[atomicAdd(p.counts, 1u)] = u;
            // Another was faster: it went at this level.
            if (before <= p.level) atomicAdd(p.degrees + u, 1u);
        }
        __syncwarp();
    }
}
