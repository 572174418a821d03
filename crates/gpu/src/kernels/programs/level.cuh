// One level of a breadth-first search: vertices at `level` give their unvisited neighbours the
// next. CPU twin: analytics::bfs. Rows that were visited are skipped before they are decoded.

struct Program {
    u32* depth;
    u8* reached;  // A flag for every 2^log2 vertices: what the next level reads.
    u32* count;   // Vertices that this level reached.
    u32 level;
    u32 log2;

    typedef bool Source;
    typedef bool Message;
    typedef bool Row;

    __device__ bool skip(u32 vertex) const {
        u32 own = depth[vertex];
#ifdef MIRROR
        return own != ~0u && own != level;
#else
        return own != ~0u;
#endif
    }
    __device__ Source load(u32 vertex) const { return depth[vertex] == level; }
    __device__ Message along(Source source, double) const { return source; }
    __device__ static Row empty() { return false; }
    __device__ void take(Row& row, Message message, u32) const { row = row || message; }
    __device__ static Row merge(Row a, Row b) { return a || b; }
    __device__ void apply(u32 vertex, Row row, bool) const {
        if (row && atomicCAS(depth + vertex, ~0u, level + 1) == ~0u) {
            atomicAdd(count, 1);
            reached[vertex >> log2] = 1;
        }
    }
    __device__ void scatter(u32 vertex, Message message) const {
        if (message && depth[vertex] == ~0u) apply(vertex, true, false);
    }
};
