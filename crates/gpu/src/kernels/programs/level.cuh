// One level of a breadth-first search: the unvisited neighbours of the vertices at a level get the
// next. All who write a depth in a pass write the same, so plain stores do. Rows that have nothing to
// do are skipped before they are decoded. CPU twin: analytics::bfs.

struct Program {
    u32* depth;
    const u8* reached;    // For every 2^log2 vertices, whether one of them is at the level.
    const u8* unvisited;  // Whether one of them has no depth; it may have got one in this pass.
    u32 level;
    u32 log2;
    u32 push;  // Over raw blocks, whether rows at the level push, or unvisited ones pull.

    static const bool SELECTIVE = true;

    typedef u32 Source;
    typedef bool Message;
    typedef bool Row;

    __device__ bool pushes() const { return push; }
    __device__ bool wants(u32 first, u32 last, u32 lane) const {
        const u8* flags = push ? reached : unvisited;
        bool wanted = false;
        for (u32 i = (first >> log2) + lane; i <= last >> log2; i += WARP) wanted |= flags[i];
        return __any_sync(ALL, wanted);
    }
    __device__ bool skip(u32 vertex) const { return depth[vertex] != (push ? level : ~0u); }
    __device__ bool takes(u32 vertex, u32 column) const {
        return depth[vertex] == ~0u && reached[column >> log2];
    }
    __device__ bool gives(u32 vertex, u32 column) const {
        return depth[vertex] == level && unvisited[column >> log2];
    }
    __device__ Source load(u32 vertex) const { return depth[vertex]; }
    __device__ Message along(Source source, double) const { return source == level; }
    __device__ static bool lacks(Source source) { return source == ~0u; }
    __device__ static Row empty() { return false; }
    __device__ void take(Row& row, Message message, u32) const { row = row || message; }
    __device__ static Row merge(Row a, Row b) { return a || b; }
    __device__ static bool is_done(Row row) { return row; }
    __device__ void apply(u32 vertex, Row row, bool) const { scatter(vertex, row); }
    __device__ void scatter(u32 vertex, Message message) const {
        if (message && depth[vertex] == ~0u) depth[vertex] = level + 1;
    }
};
