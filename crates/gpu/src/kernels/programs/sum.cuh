// y[row] += Σ x[column]: PageRank's pass. x is float32, sums are float64: a hub's would lose its
// small terms in float32. CPU twin: kernels::sum. Reads 4 bytes of x an arc, adds 8 of y a row of
// a slice.
//
// Where edges are stored once, rows also add to their columns, mostly to the first few: those have the
// most arcs. At one address each addition would wait for the one before it, so these vertices, the
// hubs, have a sum a lane.

struct Program : EveryArc {
    const float* x;
    double* y;
    u32 hubs;
    u32 by_lane;  // Where in y the hubs' 32 sums each begin.

    typedef float Source;
    typedef float Message;
    typedef double Row;

    __device__ Source load(u32 vertex) const { return __ldg(x + vertex); }
    __device__ Message along(Source source, double) const { return source; }
    __device__ static Row empty() { return 0.0; }
    __device__ void take(Row& row, Message message, u32) const { row += message; }
    __device__ static Row merge(Row a, Row b) { return a + b; }
    __device__ void apply(u32 vertex, Row row, bool alone) const {
        if (alone) {
            y[vertex] = row;
        } else {
            atomicAdd(y + vertex, row);
        }
    }
    __device__ void scatter(u32 vertex, Message message) const {
        u32 lane = threadIdx.x % WARP;
        // One index, because two addresses would take 14 more registers.
        u32 sum = vertex < hubs ? by_lane + vertex * WARP + lane : vertex;
        atomicAdd(y + sum, (double)message);
    }
};
