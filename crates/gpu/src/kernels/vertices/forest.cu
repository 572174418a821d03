// Union-find's trees: before their only pass, and after it.

static const u32 THREADS = 256;

struct Forest {
    u32* parent;
    u32 vertices;
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

struct Labels {
    u32* parent;  // Of compressed trees.
    u32* least;   // A value a tree, at its root: the greatest there is.
    const u32* positions;
    u32 vertices;
};

// Finds the least position in each tree. Almost none is less than what is there.
extern "C" __global__ void __launch_bounds__(THREADS) find_least(Labels n) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v >= n.vertices) return;
    u32 position = n.positions[v];
    u32* least = n.least + n.parent[v];
    if (position < *(volatile u32*)least) atomicMin(least, position);
}

// Labels every vertex with its tree's least position.
// CPU twin: analytics::components::canonical_labels.
extern "C" __global__ void __launch_bounds__(THREADS) label_by_least(Labels n) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v < n.vertices) n.parent[v] = n.least[n.parent[v]];
}
