// A program over those rows of raw blocks that it does not skip: a search's levels.
//
// A warp takes chunks of CHUNK arcs, finds the first row of each by a 32-ary search, and looks at 32
// rows at a time, a lane each; long ones are then shared by the lanes. Rows pull from their neighbours
// until they have what they want, or, if the program pushes, give to all of them. Blocks without a
// wanted row cost a look at their header. Reads 8 bytes a row of the others, the program's state of
// each, and the arcs that it looks at. Weights are not seen. CPU twin: analytics::bfs.

static const u32 THREADS = 256;
static const u32 CHUNK = 2048;
static const u32 PART = 4;  // Chunks of a block that a warp takes, far from each other.
static const u32 SHORT = 16;
static const u32 AHEAD = 4;  // Arcs of a lane whose loads are in flight together.

// The last entry that does not begin after `arc`.
__device__ inline u32 entry_of(const RawBlock& block, u32 arc, u32 lane) {
    u32 low = 0, high = block.count;
    while (high - low > 1) {
        u32 step = (high - low + WARP - 1) / WARP, probe = low + step * lane;
        bool is_below = probe < high && block.entries[probe].arc <= arc;
        low += step * (__popc(__ballot_sync(ALL, is_below)) - 1);
        high = min(low + step, high);
    }
    return low;
}

// The next AHEAD of a row's neighbours, every `lanes`-th from arc `first` on; itself past its end.
__device__ inline void next_ids(const RawBlock& block, u32 vertex, u32 first, u32 to, u32 lanes,
                                u32 (&ids)[AHEAD]) {
#pragma unroll
    for (u32 u = 0; u < AHEAD; u++) {
        u32 i = first + u * lanes;
        ids[u] = i < to ? block.id(i) : vertex;
    }
}

// A row's arcs, of which this lane has one in `lanes`.
__device__ inline void push(const Program& program, const RawBlock& block, u32 vertex, u32 from,
                            u32 to, u32 lanes) {
    Program::Message message = program.along(program.load(vertex), 1.0);
    for (u32 first = from; first < to; first += AHEAD * lanes) {
        u32 ids[AHEAD];
        next_ids(block, vertex, first, to, lanes, ids);
#pragma unroll
        for (u32 u = 0; u < AHEAD; u++) {
            if (first + u * lanes < to) program.scatter(ids[u], message);
        }
    }
}

// Takes AHEAD arcs of a row from `first` on, every `lanes`-th.
__device__ inline void take(const Program& program, const RawBlock& block, Program::Row& row,
                            u32 vertex, u32 first, u32 to, u32 lanes) {
    u32 ids[AHEAD];
    next_ids(block, vertex, first, to, lanes, ids);
#pragma unroll
    for (u32 u = 0; u < AHEAD; u++) {
        Program::Message message = program.along(program.load(ids[u]), 1.0);
        if (first + u * lanes < to) program.take(row, message, vertex);
    }
}

// Calls `visit(whose, first, last)` with the lane, and the arcs, of each row that `chosen` says.
template <class Visit>
__device__ inline void each_row(bool chosen, u32 from, u32 to, Visit visit) {
    for (u32 left = __ballot_sync(ALL, chosen); left != 0; left &= left - 1) {
        u32 whose = __ffs(left) - 1;
        visit(whose, __shfl_sync(ALL, from, whose), __shfl_sync(ALL, to, whose));
    }
}

// Each lane's row gives to its neighbours, if it is live.
__device__ inline void push_rows(const Program& program, const RawBlock& block, bool live,
                                 u32 vertex, u32 from, u32 to, u32 lane) {
    bool is_long = live && to - from > SHORT;
    each_row(is_long, from, to, [&](u32 whose, u32 first, u32 last) {
        push(program, block, __shfl_sync(ALL, vertex, whose), first + lane, last, WARP);
    });
    if (live && !is_long) push(program, block, vertex, from, to, 1);
}

// Each lane's row takes from its neighbours, if it is live. Most find what they want in the first.
__device__ inline void pull_rows(const Program& program, const RawBlock& block, bool live,
                                 u32 vertex, u32 from, u32 to, u32 lane) {
    Program::Row row = program.empty();
    if (live) take(program, block, row, vertex, from, to, 1);
    from += AHEAD;
    bool more = live && from < to && !program.is_done(row), is_long = more && to - from > SHORT;
    each_row(is_long, from, to, [&](u32 whose, u32 first, u32 last) {
        u32 other = __shfl_sync(ALL, vertex, whose);
        Program::Row shared = program.empty();
        for (; first < last; first += AHEAD * WARP) {
            take(program, block, shared, other, first + lane, last, WARP);
            if (__any_sync(ALL, program.is_done(shared))) break;
        }
        for (u32 step = WARP / 2; step > 0; step /= 2) {
            shared = program.merge(shared, shuffle_xor(shared, step));
        }
        if (lane == whose) row = program.merge(row, shared);
    });
    if (more && !is_long) {
        for (; from < to && !program.is_done(row); from += AHEAD) {
            take(program, block, row, vertex, from, to, 1);
        }
    }
    if (live) program.apply(vertex, row, false);
}

__device__ inline void chunk(const Program& program, const RawBlock& block, u32 begin, u32 lane) {
    u32 end = min(begin + CHUNK, block.arcs);
    bool more = true;
    for (u32 base = entry_of(block, begin, lane); more; base += WARP) {
        u32 r = base + lane, vertex = 0, from = 0, to = 0;
        if (r < block.count) {
            vertex = block.vertex(r);
            from = max(block.entries[r].arc, begin);
            to = min(block.entries[r + 1].arc, end);
        }
        bool is_here = from < to, live = is_here && !program.skip(vertex);
        if (program.pushes()) push_rows(program, block, live, vertex, from, to, lane);
        else pull_rows(program, block, live, vertex, from, to, lane);
        more = __shfl_sync(ALL, (u32)is_here, WARP - 1);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) edge_map_rows(Arguments a, Program program) {
    u32 lane = threadIdx.x % WARP, warps = gridDim.x * (THREADS / WARP);
    u32 parts = (a.chunks + PART - 1) / PART, all = a.blocks.count * parts;
    for (u32 i = (blockIdx.x * THREADS + threadIdx.x) / WARP; i < all; i += warps) {
        u32 index = i / parts;
        if (is_damaged(a.blocks, index)) continue;
        RawBlock block(block_at(a.blocks, index));
        u32 begin = i % parts * CHUNK;
        if (begin >= block.arcs) continue;
        if (!program.wants(block.first_vertex, block.vertex(block.count - 1), lane)) continue;
        for (; begin < block.arcs; begin += parts * CHUNK) chunk(program, block, begin, lane);
    }
}
