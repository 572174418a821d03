// Lists the slices of segments: the packed layout says where a slice begins only by what is before.
//
// A warp a segment walks its groups' headers. A full slice of a uniform group is passed over in a
// few instructions; a jagged slice 32 steps at a time, a lane a step. What comes next is fetched 4
// KiB ahead, because the walk is one chain of dependent loads. `count` gives the number of each
// segment's slices; `list` writes them, 32 at a time, where `offsets` says, or, without offsets,
// wherever `total` has room. CPU twin: kernels::walk.

static const u32 THREADS = 128;
static const u32 LINE = 128;

struct Arguments {
    Blocks blocks;
    const Segment* segments;
    u32* counts;
    const u32* offsets;
    u32* total;
    Slice* slices;
    u32 room;          // Of `slices`.
    u32 first[BATCH];  // The first segment of each block of the batch; or one range of all.
    u32 end[BATCH];    // How many segments it and the blocks before it have.
};

// The segment of this warp; ALL if there is none.
__device__ inline u32 own_segment(const Arguments& a) {
    u32 i = (blockIdx.x * THREADS + threadIdx.x) / WARP, before = 0;
#pragma unroll
    for (u32 b = 0; b < BATCH; b++) {
        if (i < a.end[b]) return a.first[b] + (i - before);
        before = a.end[b];
    }
    return ALL;
}

__device__ inline u64 nibbles_at(const u8* block, u32 at) {
    return (u64)word_at(block, at) | (u64)word_at(block, at + 4) << 32;
}

// Bytes of the steps of a full slice: 4 for each bit of width.
__device__ inline u32 full_steps(u64 nibbles, u32 steps) {
    if (steps == 0) return 0;
    nibbles &= ~0ull >> (64 - 4 * steps);
    u64 even = nibbles & 0x0f0f0f0f0f0f0f0full, odd = nibbles >> 4 & 0x0f0f0f0f0f0f0f0full;
    u32 sum = (u32)((even + odd) * 0x0101010101010101ull >> 56);
    u64 ones = nibbles & nibbles >> 1;  // A nibble of 15 means 16.
    u64 fifteen = ones & ones >> 2 & 0x1111111111111111ull;
    return 4 * (sum + __popcll(fifteen));
}

// The end of the jagged slice that begins at `at` and has `rows` rows; 0 if it has no steps.
__device__ inline u32 jagged_end(const u8* block, u32 at, u32 rows, u32 lane) {
    u32 longest = word_at(block, at) & 0xffff, widths = word_at(block, at + 4);
    if (longest == 0) return 0;
    u32 nibbles = at + 6, missing_width = width_of(widths >> 8 & 15);
    at = nibbles + longest / 2 + packed_bytes(rows, width_of(widths & 15));
    u32 len = lane < rows ? longest - field_at(block, at, lane, missing_width) : 0;
    at += packed_bytes(rows, missing_width);
    for (u32 k0 = 0; k0 < longest; k0 += WARP) {
        u32 k = k0 + lane, nibble = widths >> 4 & 15;
        if (k > 0 && k < longest) nibble = nibble_at(block, nibbles, k - 1);
        u32 lanes = lanes_above(len, k);
        u32 bytes = k < longest ? packed_bytes(lanes, width_of(nibble)) + lanes * WEIGHT_BYTES : 0;
        at += __reduce_add_sync(ALL, bytes);
    }
    return at;
}

// The end of a slice of `lanes` rows of `length` arcs that begins at `at`.
__device__ inline u32 uniform_end(const u8* block, u32 at, u32 length, u32 lanes) {
    u32 widths = word_at(block, at) >> 16 & 0xff;
    u64 nibbles = nibbles_at(block, at + 3);
    at += 3 + length / 2 + packed_bytes(lanes, width_of(widths & 15));
    at += packed_bytes(lanes, width_of(widths >> 4)) + lanes * length * WEIGHT_BYTES;
    if (lanes == WARP) return at + full_steps(nibbles, length - 1);
    for (u32 k = 1; k < length; k++, nibbles >>= 4) {
        at += packed_bytes(lanes, width_of(nibbles & 15));
    }
    return at;
}

template <class Visit>
__device__ inline void walk(const u8* block, u32 at, u32 end, u32 lane, Visit visit) {
    u32 fetched = at;
    while (at < end) {
        if (at + WARP * LINE / 2 >= fetched) {
            u32 line = fetched + lane * LINE;
            if (line < end) asm("prefetch.global.L1 [%0];" ::"l"(block + line));
            fetched += WARP * LINE;
        }
        u32 head = word_at(block, at), length = head & 0xffff, rows = head >> 16;
        at += 4;
        // Damaged, which checksums that were not asked for would have told.
        if (length > 16 || rows == 0 || (length == 0 && rows > WARP)) return;
        if (length == 0) {
            visit(at, 0, rows);
            at = jagged_end(block, at, rows, lane);
            if (at == 0) return;
        }
        for (u32 left = length == 0 ? 0 : rows; left > 0;) {
            u32 lanes = min(left, WARP);
            left -= lanes;
            visit(at, length, lanes);
            at = uniform_end(block, at, length, lanes);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) count(Arguments a) {
    u32 i = own_segment(a), lane = threadIdx.x % WARP;
    if (i == ALL) return;
    Segment segment = a.segments[i];
    u32 slices = 0;
    walk(block_at(a.blocks, index_of(a.blocks, segment.block)), segment.offset,
         segment.offset + segment.len, lane, [&](u32, u32, u32) { slices++; });
    if (lane == 0) a.counts[i] = slices;
}

extern "C" __global__ void __launch_bounds__(THREADS) list(Arguments a) {
    u32 i = own_segment(a), lane = threadIdx.x % WARP;
    if (i == ALL) return;
    Segment segment = a.segments[i];
    u32 index = index_of(a.blocks, segment.block);
    if (is_damaged(a.blocks, index)) return;
    u32 slices = 0, to = a.offsets ? a.offsets[i] : 0;
    Slice own = 0;
    auto flush = [&](u32 held) {
        if (!a.offsets) {
            if (lane == 0) to = atomicAdd(a.total, held);
            to = __shfl_sync(ALL, to, 0);
        }
        if (lane < held && to + lane < a.room) a.slices[to + lane] = own;
        to += held;
    };
    walk(block_at(a.blocks, index), segment.offset, segment.offset + segment.len, lane,
         [&](u32 at, u32 length, u32 lanes) {
             if (lane == slices % WARP) own = make_slice(at, length, lanes, i);
             if (++slices % WARP == 0) flush(WARP);
         });
    if (slices % WARP > 0) flush(slices % WARP);
}
