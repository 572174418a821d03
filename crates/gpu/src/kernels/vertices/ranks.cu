// What PageRank does to its vertices after a pass.

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
};

// Makes ranks of what the last pass's ranks hand on.
extern "C" __global__ void __launch_bounds__(THREADS) unscale(Unscaled u) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v < u.vertices) u.x[v] *= max(u.degrees[v], 1u);
}
