// A program over raw blocks (docs/format.md, "Raw blocks"): rows pull from their neighbours.
//
// Grid: `CHUNKS` thread blocks a graph block, each CHUNK arcs of it. Phase 1: a thread an arc loads
// ids in their order, gathers what the program wants of the sources, many loads in flight, and
// leaves messages in shared memory. Phase 2: groups of 1 to 32 lanes (by the rows that the chunk
// has) reduce the rows, so hubs and leaves cost the same. This is CSR-stream (Greathouse and Daga,
// SC 2014) over fixed-size blocks. Reads 4 (8) bytes an arc and 8 a row, in order, plus the gathers.

static const u32 THREADS = 256;
static const u32 CHUNK = 2048;
static const u32 HEADER = 64;

struct Arguments {
    Blocks blocks;
    u32 chunks;  // Thread blocks a graph block.
    u32 unused;
};

struct Entry {
    u32 vertex;  // Minus the block's first.
    u32 arc;     // Its first here.
};

// The last entry that does not begin after `arc`.
__device__ inline u32 entry_of(const Entry* entries, u32 count, u32 arc) {
    u32 low = 0, high = count;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (entries[middle].arc <= arc) low = middle; else high = middle;
    }
    return low;
}

__device__ inline u32 load_id(const u8* ids, u32 i) {
#if ID_BYTES == 8
    return (u32)__ldcs((const u64*)ids + i);
#else
    return __ldcs((const u32*)ids + i);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) edge_map(Arguments a, Program program) {
    __shared__ Program::Message messages[CHUNK];
    u32 place = blockIdx.x / a.chunks;
    if (is_damaged(a.blocks, place)) return;
    const u8* block = block_at(a.blocks, place);
    const u32* head = (const u32*)block;
    u32 arcs = head[6], count = head[8];
    u32 begin = blockIdx.x % a.chunks * CHUNK;
    if (begin >= arcs) return;
    u32 end = min(begin + CHUNK, arcs);
    u32 first_vertex = head[4];
    bool continued = head[1] >> 16 & 1, continues = head[1] >> 16 & 2;
    const Entry* entries = (const Entry*)(block + HEADER);
    const u8* ids = block + HEADER + 8 * (count + 1);
#if WEIGHT_BYTES > 0
    u32 weights = HEADER + 8 * (count + 1) + ((arcs * ID_BYTES + 7) & ~7u);
#endif

#pragma unroll 8
    for (u32 i = begin + threadIdx.x; i < end; i += THREADS) {
        double weight = 1.0;
#if WEIGHT_BYTES > 0
        weight = weight_at(block, weights, i);
#endif
        messages[i - begin] = program.along(program.load(load_id(ids, i)), weight);
    }
    u32 low = entry_of(entries, count, begin);
    u32 high = entry_of(entries, count, end - 1) + 1;
    __syncthreads();

    u32 rows = high - low, lanes = WARP;
    while (lanes > 1 && rows * lanes > THREADS) lanes /= 2;
    u32 groups = THREADS / lanes, group = threadIdx.x / lanes, lane = threadIdx.x % lanes;
    for (u32 base = low; base < high; base += groups) {
        u32 r = base + group;
        Program::Row row = program.empty();
        u32 vertex = 0, from = 0, to = 0;
        if (r < high) {
            vertex = first_vertex + entries[r].vertex;
            from = entries[r].arc;
            to = entries[r + 1].arc;
            if (!program.skip(vertex)) {
                u32 last = min(to, end);
                for (u32 i = max(from, begin) + lane; i < last; i += lanes) {
                    program.take(row, messages[i - begin], vertex);
                }
            }
        }
        for (u32 step = lanes / 2; step > 0; step /= 2) {
            row = program.merge(row, shuffle_xor(row, step));
        }
        if (r < high && lane == 0) {
            bool whole = from >= begin && to <= end;
            bool alone = whole && !(r == 0 && continued) && !(r + 1 == count && continues);
            program.apply(vertex, row, alone);
        }
    }
}
