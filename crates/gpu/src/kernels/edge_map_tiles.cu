// A program over the slices of packed tiles: a warp decodes a slice, lane = row.
//
// The widths of up to 32 steps are read at once and turned into the steps' places by a prefix sum
// over the lanes, so that no step's load waits for the one before. Rows are reduced in registers;
// one `apply` a row and slice. With MIRROR, edges are stored once and the program also scatters
// from the row to each column; with TRANSPOSED, it only does that. Reads the packed bytes in order, 8
// a slice and 24 a segment. CPU twin: kernels::walk.

static const u32 THREADS = 256;
static const u32 AHEAD = 8;  // Steps whose loads are in flight together.

#if defined(TRANSPOSED)
static const bool PULLS = false, SCATTERS = true;
#elif defined(MIRROR)
static const bool PULLS = true, SCATTERS = true;
#else
static const bool PULLS = true, SCATTERS = false;
#endif

struct Arguments {
    Blocks blocks;
    const Segment* segments;
    const Slice* slices;
    const u32* count;  // Slices; or null, and `number` has it.
    const u8* active;  // A flag for every 2^log2 columns; or null: all are active.
    u32 number;
    u32 log2;
    u32 min_gap;
    u32 unused;
};

// Whether a column of the segment's tile is active, or, mirrored, a row of its strip.
__device__ inline bool is_active(const Arguments& a, const Segment& segment) {
    bool active = a.active[segment.column_base >> a.log2];
    if (!SCATTERS) return active;
    u32 last = (segment.row_base + segment.rows - 1) >> a.log2;
    for (u32 tile = segment.row_base >> a.log2; tile <= last && !active; tile++) {
        active = a.active[tile];
    }
    return active;
}

__device__ inline void slice(const Arguments& a, const Program& program, Slice entry, u32 lane) {
    Segment segment = a.segments[entry >> 37];
    const u8* block = block_at(a.blocks, place_of(a.blocks, segment.block));
    u32 at = (u32)entry & 0x7ffffff, length = (u32)entry >> 27, lanes = (u32)(entry >> 32 & 31) + 1;
    bool jagged = length == 0;
    u32 head = word_at(block, at), more = word_at(block, at + 4);
    u32 widths = jagged ? more & 0xff : head >> 16 & 0xff;
    u32 steps = jagged ? head & 0xffff : length;
    u32 nibbles = at + (jagged ? 6 : 3);
    at = nibbles + steps / 2;
    u32 row_width = width_of(widths & 15);
    u32 own = lane < lanes ? field_at(block, at, lane, row_width) : 0;
    at += packed_bytes(lanes, row_width);
    u32 row, len = lane < lanes ? steps : 0;
    if (jagged) {
        row = (head >> 16) + own;
        u32 missing_width = width_of(more >> 8 & 15);
        if (lane < lanes) len = steps - field_at(block, at, lane, missing_width);
        at += packed_bytes(lanes, missing_width);
    } else {
        row = (head & 0xffff) + before(own, lane) + own;
    }
    u32 vertex = segment.row_base + (row & 0xffff);
    bool live = lane < lanes && !program.skip(vertex);
    if (!__any_sync(ALL, live)) return;

    const u32 mask = (1u << a.log2) - 1;
    Program::Row result = program.empty();
    Program::Source mine = SCATTERS && live ? program.load(vertex) : Program::Source();
    u32 column = 0;
#if WEIGHT_BYTES > 0
    u32 weights = at, arc = 0;
    for (u32 k0 = 0; k0 < steps; k0 += WARP) {
        u32 k = k0 + lane, nibble = widths >> 4;
        if (k > 0 && k < steps) nibble = nibble_at(block, nibbles, k - 1);
        u32 count = jagged ? lanes_above(len, k) : lanes;
        u32 bytes = k < steps ? packed_bytes(count, width_of(nibble)) : 0;
        weights += __shfl_sync(ALL, before(bytes, lane) + bytes, WARP - 1);
    }
#endif
    for (u32 k0 = 0; k0 < steps; k0 += WARP) {
        u32 k = k0 + lane, nibble = widths >> 4;
        if (k > 0 && k < steps) nibble = nibble_at(block, nibbles, k - 1);
        u32 width = width_of(nibble);
        u32 count = jagged ? lanes_above(len, k) : lanes;
        u32 bytes = k < steps ? packed_bytes(count, width) : 0;
        u32 ahead = before(bytes, lane), place = at + ahead;
        at += __shfl_sync(ALL, ahead + bytes, WARP - 1);
#if WEIGHT_BYTES > 0
        u32 arcs = k < steps ? count : 0, arcs_before = before(arcs, lane), first_arc = arc + arcs_before;
        arc += __shfl_sync(ALL, arcs_before + arcs, WARP - 1);
#endif
        u32 here = min(steps - k0, WARP);
        for (u32 j = 0; j < here; j += AHEAD) {
            u32 gaps[AHEAD];
#pragma unroll
            for (u32 u = 0; u < AHEAD; u++) {
                u32 from = __shfl_sync(ALL, place, j + u), bits = __shfl_sync(ALL, width, j + u);
                gaps[u] = k0 + j + u < len ? field_at(block, from, lane, bits) : 0;
            }
            Program::Source sources[AHEAD];
            u32 columns[AHEAD];
#pragma unroll
            for (u32 u = 0; u < AHEAD; u++) {
                column += gaps[u] + (k0 + j + u > 0 ? a.min_gap : 0);
                columns[u] = segment.column_base + (column & mask);
                bool taken = PULLS && live && k0 + j + u < len;
                sources[u] = taken ? program.load(columns[u]) : Program::Source();
            }
#pragma unroll
            for (u32 u = 0; u < AHEAD; u++) {
                double weight = 1.0;
#if WEIGHT_BYTES > 0
                u32 base = __shfl_sync(ALL, first_arc, j + u);
                if (live && k0 + j + u < len) weight = weight_at(block, weights, base + lane);
#endif
                if (live && k0 + j + u < len) {
                    if (PULLS) program.take(result, program.along(sources[u], weight), vertex);
                    // A self-loop counts once.
                    if (SCATTERS && !(PULLS && columns[u] == vertex)) {
                        program.scatter(columns[u], program.along(mine, weight));
                    }
                }
            }
        }
    }
    if (PULLS && live) program.apply(vertex, result, false);
}

extern "C" __global__ void __launch_bounds__(THREADS) edge_map(Arguments a, Program program) {
    u32 lane = threadIdx.x % WARP, warps = gridDim.x * (THREADS / WARP);
    u32 number = a.count ? *a.count : a.number, warp = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    if (!a.active) {
        for (u32 i = warp; i < number; i += warps) slice(a, program, a.slices[i], lane);
        return;
    }
    // The same slices, of which each lane tests one, so that many are passed over at once.
    for (u32 first = warp; first < number; first += WARP * warps) {
        u32 own = first + lane * warps;
        Slice entry = own < number ? a.slices[own] : 0;
        bool active = own < number && is_active(a, a.segments[entry >> 37]);
        for (u32 left = __ballot_sync(ALL, active); left != 0; left &= left - 1) {
            slice(a, program, __shfl_sync(ALL, entry, __ffs(left) - 1), lane);
        }
    }
}
