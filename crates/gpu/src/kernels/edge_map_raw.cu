// A program over raw blocks: rows pull from their neighbours.
//
// Grid: `CHUNKS` thread blocks a graph block, each CHUNK arcs of it. Phase 1: a thread an arc loads
// ids in their order, gathers what the program wants of the sources, many loads in flight, and
// leaves messages in shared memory. Phase 2: groups of 1 to 32 lanes (by the rows that the chunk
// has) reduce the rows, so hubs and leaves cost the same. This is CSR-stream (Greathouse and Daga,
// SC 2014) over fixed-size blocks. Reads 4 (8) bytes an arc and 8 a row, in order, plus the gathers.

static const u32 THREADS = 256;
static const u32 CHUNK = 2048;

// The last entry that does not begin after `arc`.
__device__ inline u32 entry_of(const Entry* entries, u32 count, u32 arc) {
    u32 low = 0, high = count;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (entries[middle].arc <= arc) low = middle; else high = middle;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(THREADS) edge_map_raw(Arguments a, Program program) {
    __shared__ Program::Message messages[CHUNK];
    u32 index = blockIdx.x / a.chunks;
    if (is_damaged(a.blocks, index)) return;
    RawBlock block(block_at(a.blocks, index));
    u32 begin = blockIdx.x % a.chunks * CHUNK;
    if (begin >= block.arcs) return;
    u32 end = min(begin + CHUNK, block.arcs);
    const Entry* entries = block.entries;
#if WEIGHT_BYTES > 0
    u32 weights = HEADER + 8 * (block.count + 1) + ((block.arcs * ID_BYTES + 7) & ~7u);
#endif

#pragma unroll 8
    for (u32 i = begin + threadIdx.x; i < end; i += THREADS) {
        double weight = 1.0;
#if WEIGHT_BYTES > 0
        weight = weight_at(block.bytes, weights, i);
#endif
        messages[i - begin] = program.along(program.load(block.id(i)), weight);
    }
    u32 low = entry_of(entries, block.count, begin);
    u32 high = entry_of(entries, block.count, end - 1) + 1;
    __syncthreads();

    u32 rows = high - low, lanes = WARP;
    while (lanes > 1 && rows * lanes > THREADS) lanes /= 2;
    u32 groups = THREADS / lanes, group = threadIdx.x / lanes, lane = threadIdx.x % lanes;
    for (u32 base = low; base < high; base += groups) {
        u32 r = base + group;
        Program::Row row = program.empty();
        u32 vertex = 0, from = 0, to = 0;
        if (r < high) {
            vertex = block.vertex(r);
            from = entries[r].arc;
            to = entries[r + 1].arc;
            u32 last = min(to, end);
            for (u32 i = max(from, begin) + lane; i < last; i += lanes) {
                program.take(row, messages[i - begin], vertex);
            }
        }
        for (u32 step = lanes / 2; step > 0; step /= 2) {
            row = program.merge(row, shuffle_xor(row, step));
        }
        if (r < high && lane == 0) {
            bool whole = from >= begin && to <= end;
            bool shared = (r == 0 && block.is_continued()) ||
                          (r + 1 == block.count && block.continues());
            program.apply(vertex, row, whole && !shared);
        }
    }
}
