// One level of a breadth-first search: the unvisited neighbours of the vertices at a level get the
// next. All who write a depth in a pass write the same, so plain stores do. Rows that were visited
// are skipped before they are decoded. CPU twin: analytics::bfs.

struct Program {
    u32* depth;
    const u8* flags;  // For every 2^log2 vertices, whether one of them is a row that is not skipped.
    u32 level;
    u32 log2;
    u32 push;  // Whether rows are the level's vertices: raw blocks of undirected graphs only.
    u32 unused;

    typedef bool Source;
    typedef bool Message;
    typedef bool Row;

    __device__ bool pushes() const { return push; }
    __device__ bool wants(u32 first, u32 last, u32 lane) const {
        bool wanted = false;
        for (u32 i = (first >> log2) + lane; i <= last >> log2; i += WARP) wanted |= flags[i];
        return __any_sync(ALL, wanted);
    }
    __device__ bool skip(u32 vertex) const {
        u32 own = depth[vertex];
#ifdef MIRROR
        return own != ~0u && own != level;
#else
        return own != (push ? level : ~0u);
#endif
    }
    __device__ Source load(u32 vertex) const { return depth[vertex] == level; }
    __device__ Message along(Source source, double) const { return source; }
    __device__ static Row empty() { return false; }
    __device__ void take(Row& row, Message message, u32) const { row = row || message; }
    __device__ static Row merge(Row a, Row b) { return a || b; }
    __device__ static bool is_done(Row row) { return row; }
    __device__ void apply(u32 vertex, Row row, bool) const { scatter(vertex, row); }
    __device__ void scatter(u32 vertex, Message message) const {
        if (message && depth[vertex] == ~0u) depth[vertex] = level + 1;
    }
};
