// Union-find's trees: before their only pass, and after it.

static const u32 THREADS = 256;

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
