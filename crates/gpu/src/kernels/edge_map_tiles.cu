// A program over the slices of packed tiles: a warp decodes a slice, lane = row.
//
// A warp's lanes open its next 32 slices together. The widths of up to 32 steps are read at once and
// turned into the steps' offsets by a prefix sum over the lanes, so that no step's load waits for the
// one before. Rows are reduced in registers; one `apply` a row and slice. With MIRROR, edges are
// stored once and the program also scatters from the row to each column; with TRANSPOSED, it only
// does that. Reads the packed bytes in order, 8 a slice and 24 a segment. CPU twin: kernels::walk.

static const u32 THREADS = 256;
static const u32 AHEAD = 8;  // Steps whose loads are in flight together, at most.

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

// A slice, and the first eight bytes of it.
struct Opened {
    Slice entry;
    const u8* block;
    u32 head, more;

    __device__ Opened() : entry(0), block(nullptr), head(0), more(0) {}
    __device__ Opened(const Arguments& a, Slice entry, const Segment& segment) : entry(entry) {
        block = block_at(a.blocks, index_of(a.blocks, segment.block));
        head = word_at(block, at());
        more = word_at(block, at() + 4);
    }
    // The slice that lane `lane` has opened.
    __device__ Opened(const Opened& own, u32 lane) {
        entry = __shfl_sync(ALL, own.entry, lane);
        block = (const u8*)__shfl_sync(ALL, (u64)own.block, lane);
        head = __shfl_sync(ALL, own.head, lane);
        more = __shfl_sync(ALL, own.more, lane);
    }
    __device__ u32 at() const { return (u32)entry & 0x7ffffff; }
};

// Where the steps of a slice are, a lane a step.
struct Steps {
    u32 offset, width;
    u32 first_arc;  // Of the slice's; in graphs with weights.
};

// The rows of a slice on their way through its steps, a lane a row.
struct Rows {
    const Arguments& a;
    const Program& program;
    const u8* block;
    u32 lane, vertex, len, column_base;
    u32 column;   // In the tile, of the last step.
    u32 weights;  // Where they begin.
    bool takes, gives;
    bool wanted;  // Whether any row still takes or gives.
    Program::Row result;
    Program::Source mine;

    __device__ bool go_on() const { return wanted || !Program::SELECTIVE; }

    // Takes steps k, k + 1, … of the slice, which lanes j, j + 1, … know the offsets of.
    template <u32 COUNT>
    __device__ void take(const Steps& at, u32 k, u32 j) {
        u32 gaps[COUNT];
#pragma unroll
        for (u32 u = 0; u < COUNT; u++) {
            u32 from = __shfl_sync(ALL, at.offset, j + u), bits = __shfl_sync(ALL, at.width, j + u);
            gaps[u] = k + u < len ? field_at(block, from, lane, bits) : 0;
        }
        const u32 mask = (1u << a.log2) - 1;
        u32 columns[COUNT];
        Program::Source sources[COUNT];
#pragma unroll
        for (u32 u = 0; u < COUNT; u++) {
            column += gaps[u] + a.min_gap;
            columns[u] = column_base + (column & mask);
            bool seen = (takes || (Program::SELECTIVE && gives)) && k + u < len;
            sources[u] = seen ? program.load(columns[u]) : Program::Source();
        }
#pragma unroll
        for (u32 u = 0; u < COUNT; u++) {
            double weight = 1.0;
#if WEIGHT_BYTES > 0
            u32 first = __shfl_sync(ALL, at.first_arc, j + u);
            if (k + u < len) weight = weight_at(block, weights, first + lane);
#endif
            if (k + u >= len) continue;
            if (takes) program.take(result, program.along(sources[u], weight), vertex);
            // A self-loop counts once.
            if (gives && program.lacks(sources[u]) && !(PULLS && columns[u] == vertex)) {
                program.scatter(columns[u], program.along(mine, weight));
            }
        }
        if (Program::SELECTIVE) {
            takes = takes && !program.is_done(result);
            wanted = __any_sync(ALL, takes || gives);
        }
    }

    // Takes the `here` steps from k on. Most slices have so few that AHEAD would be a waste.
    __device__ void take_all(const Steps& at, u32 k, u32 here) {
        u32 j = 0;
        for (; j + AHEAD / 2 < here && go_on(); j += AHEAD) take<AHEAD>(at, k + j, j);
        if (j >= here || !go_on()) return;
        if (here - j > 2) take<AHEAD / 2>(at, k + j, j);
        else if (here - j > 1) take<2>(at, k + j, j);
        else take<1>(at, k + j, j);
    }
};

__device__ inline void slice(const Arguments& a, const Program& program, const Opened& opened,
                             u32 lane) {
    Slice entry = opened.entry;
    const u8* block = opened.block;
    Segment segment = a.segments[entry >> 37];
    u32 at = opened.at(), length = (u32)entry >> 27, lanes = (u32)(entry >> 32 & 31) + 1;
    bool jagged = length == 0;
    u32 head = opened.head, more = opened.more;
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
    bool takes = PULLS && lane < lanes && program.takes(vertex, segment.column_base);
    bool gives = SCATTERS && lane < lanes && program.gives(vertex, segment.column_base);
    bool took = takes, wanted = __any_sync(ALL, takes || gives);
    if (!wanted) return;

    Program::Source mine = gives ? program.load(vertex) : Program::Source();
    Rows rows = {a, program, block, lane, vertex, len, segment.column_base, 0u - a.min_gap, at,
                 takes, gives, wanted, program.empty(), mine};
#if WEIGHT_BYTES > 0
    u32 arc = 0;
    for (u32 k0 = 0; k0 < steps; k0 += WARP) {
        u32 k = k0 + lane, nibble = widths >> 4;
        if (k > 0 && k < steps) nibble = nibble_at(block, nibbles, k - 1);
        u32 count = jagged ? lanes_above(len, k) : lanes;
        u32 bytes = k < steps ? packed_bytes(count, width_of(nibble)) : 0;
        rows.weights += __shfl_sync(ALL, before(bytes, lane) + bytes, WARP - 1);
    }
#else
    if (steps == 1) {
        rows.take<1>(Steps{at, width_of(widths >> 4), 0}, 0, 0);
        steps = 0;
    }
#endif
    for (u32 k0 = 0; k0 < steps && rows.go_on(); k0 += WARP) {
        u32 k = k0 + lane, nibble = widths >> 4;
        if (k > 0 && k < steps) nibble = nibble_at(block, nibbles, k - 1);
        u32 width = width_of(nibble), arc_before = 0;
        u32 count = jagged ? lanes_above(len, k) : lanes;
        u32 bytes = k < steps ? packed_bytes(count, width) : 0;
        u32 ahead = before(bytes, lane), offset = at + ahead;
        at += __shfl_sync(ALL, ahead + bytes, WARP - 1);
#if WEIGHT_BYTES > 0
        u32 arcs = k < steps ? count : 0, arcs_before = before(arcs, lane);
        arc_before = arc + arcs_before;
        arc += __shfl_sync(ALL, arcs_before + arcs, WARP - 1);
#endif
        rows.take_all(Steps{offset, width, arc_before}, k0, min(steps - k0, WARP));
    }
    if (took) program.apply(vertex, rows.result, false);
}

extern "C" __global__ void __launch_bounds__(THREADS) edge_map_tiles(Arguments a, Program program) {
    u32 lane = threadIdx.x % WARP, warps = gridDim.x * (THREADS / WARP);
    u32 number = a.count ? *a.count : a.number, warp = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    // Each lane opens one of the warp's next slices, unless its tile is inactive.
    for (u32 first = warp; first < number; first += WARP * warps) {
        u32 own = first + lane * warps;
        Opened opened;
        bool wanted = own < number;
        if (wanted) {
            Slice entry = a.slices[own];
            Segment segment = a.segments[entry >> 37];
            wanted = !a.active || is_active(a, segment);
            if (wanted) opened = Opened(a, entry, segment);
        }
        for (u32 left = __ballot_sync(ALL, wanted); left != 0; left &= left - 1) {
            slice(a, program, Opened(opened, __ffs(left) - 1), lane);
        }
    }
}
