// Raw blocks (docs/format.md, "Raw blocks") as kernels see them.

static const u32 HEADER = 64;

// Arguments of a pass.
struct Arguments {
    Blocks blocks;
    u32 chunks;  // Parts of a block: each CHUNK of its arcs.
};

struct Entry {
    u32 vertex;  // Minus the block's first.
    u32 arc;     // Its first here.
};

struct RawBlock {
    const u8* bytes;
    const Entry* entries;  // Of its rows, and one more that ends the last.
    const u8* ids;
    u32 first_vertex, arcs, count;

    __device__ explicit RawBlock(const u8* block) : bytes(block) {
        const u32* head = (const u32*)block;
        first_vertex = head[4];
        arcs = head[6];
        count = head[8];
        entries = (const Entry*)(block + HEADER);
        ids = block + HEADER + 8 * (count + 1);
    }

    __device__ u32 vertex(u32 row) const { return first_vertex + entries[row].vertex; }
    // Whether the first row began in an earlier block.
    __device__ bool is_continued() const { return ((const u32*)bytes)[1] >> 16 & 1; }
    // Whether the last row goes on in the next block.
    __device__ bool continues() const { return ((const u32*)bytes)[1] >> 16 & 2; }

    __device__ u32 id(u32 i) const {
#if ID_BYTES == 8
        return (u32)__ldcs((const u64*)ids + i);
#else
        return __ldcs((const u32*)ids + i);
#endif
    }
};
