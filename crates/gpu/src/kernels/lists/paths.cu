// Shortest paths from one source, counted level by level, and what depends on each vertex, level by level back.
//
// The queue has all vertices that were reached, level after level. CPU twin: analytics::paths::betweenness.

static const u32 FAR = 0xffffffff;

struct Paths {
    u32* depth;
    double* paths;
    double* depends;
    double* sums;
    u32 level;
    u32 source;
};

// Counts the paths to the neighbours of a level, and puts those that it reaches first in the queue.
template <u32 WIDTH> __device__ void forward(Lists l, Queue q, Paths p, u32 from, u32 to) {
    for (u32 at = from + Group<WIDTH>::number(); at < to; at += Group<WIDTH>::count()) {
        u32 v = item<WIDTH>(q, at), end = l.ends[v];
        double own = p.paths[v];
        for (u32 i = l.starts[v] + Group<WIDTH>::lane(); i < end; i += WIDTH) {
            u32 w = l.targets[i], depth = *(volatile u32*)(p.depth + w);
            if (depth == FAR) {
                depth = atomicCAS(p.depth + w, FAR, p.level + 1);
                if (depth == FAR) {
                    push(q, l, w);
                    depth = p.level + 1;
                }
            }
            if (depth == p.level + 1) atomicAdd(p.paths + w, own);
        }
        Group<WIDTH>::wait();
    }
}

// Adds up what depends on the vertices of a level, of what depends on those behind them.
template <u32 WIDTH> __device__ void back(Lists l, Queue q, Paths p, u32 from, u32 to) {
    __shared__ double parts[THREADS / WARP];
    for (u32 at = from + Group<WIDTH>::number(); at < to; at += Group<WIDTH>::count()) {
        u32 v = item<WIDTH>(q, at), end = l.ends[v];
        double sum = 0;
        for (u32 i = l.starts[v] + Group<WIDTH>::lane(); i < end; i += WIDTH) {
            u32 w = l.targets[i];
            if (p.depth[w] == p.level + 1) sum += (1 + p.depends[w]) / p.paths[w];
        }
#pragma unroll
        for (u32 by = WARP / 2; by; by /= 2) sum += __shfl_xor_sync(ALL, sum, by);
        if (WIDTH != WARP) {
            if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = sum;
            Group<WIDTH>::wait();
            sum = 0;
            for (u32 part = 0; part < THREADS / WARP; part++) sum += parts[part];
        }
        if (Group<WIDTH>::lane() == 0) {
            double depends = sum * p.paths[v];
            p.depends[v] = depends;
            if (v != p.source) p.sums[v] += depends;
        }
        Group<WIDTH>::wait();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) forward_short(Lists l, Queue q, Paths p, u32 from, u32 to) {
    forward<WARP>(l, q, p, from, to);
}

extern "C" __global__ void __launch_bounds__(THREADS) forward_long(Lists l, Queue q, Paths p, u32 from, u32 to) {
    forward<THREADS>(l, q, p, from, to);
}

extern "C" __global__ void __launch_bounds__(THREADS) back_short(Lists l, Queue q, Paths p, u32 from, u32 to) {
    back<WARP>(l, q, p, from, to);
}

extern "C" __global__ void __launch_bounds__(THREADS) back_long(Lists l, Queue q, Paths p, u32 from, u32 to) {
    back<THREADS>(l, q, p, from, to);
}

// Makes every vertex unreached but the source, which begins the queue.
extern "C" __global__ void __launch_bounds__(THREADS) begin_paths(Lists l, Queue q, Paths p) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v >= l.vertices) return;
    bool is_source = v == p.source;
    p.depth[v] = is_source ? 0 : FAR;
    p.paths[v] = is_source ? 1 : 0;
    p.depends[v] = 0;
    if (is_source) push(q, l, v);
}
