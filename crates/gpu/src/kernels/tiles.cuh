// The packed layout (docs/format.md, "Tiles") as kernels see it.

// A segment of tiles.index; 24 bytes.
struct Segment {
    u32 block;
    u32 offset;
    u32 len;
    u32 row_base;
    u32 rows;
    u32 column_base;
};

// A slice: byte in its block (27 bits), rows' length or 0 if jagged (5), lanes − 1 (5), segment.
typedef u64 Slice;

__device__ inline Slice make_slice(u32 at, u32 length, u32 lanes, u32 segment) {
    return (u64)at | (u64)length << 27 | (u64)(lanes - 1) << 32 | (u64)segment << 37;
}

// A nibble's width: 15 means 16.
__device__ inline u32 width_of(u32 nibble) { return nibble + (nibble == 15); }

__device__ inline u32 packed_bytes(u32 lanes, u32 width) { return (lanes * width + 7) >> 3; }

// Nibble `i` of those from byte `at`: the first in the low half.
__device__ inline u32 nibble_at(const u8* block, u32 at, u32 i) {
    return block[at + i / 2] >> (4 * (i & 1)) & 15;
}

// Field `lane` of those of `width` bits from byte `at`.
__device__ inline u32 field_at(const u8* block, u32 at, u32 lane, u32 width) {
    u32 bit = at * 8 + lane * width;  // Blocks have fewer than 2^27 bytes, so below 2^31.
    const u32* words = (const u32*)block + (bit >> 5);
    return __funnelshift_r(words[0], words[1], bit & 31) & ((1u << width) - 1);
}

// The sum of `value` over the lanes below this one.
template <class T>
__device__ inline T before(T value, u32 lane) {
    T sum = value;
#pragma unroll
    for (u32 step = 1; step < WARP; step *= 2) {
        T other = __shfl_up_sync(ALL, sum, step);
        if (lane >= step) sum += other;
    }
    return sum - value;
}

// How many lanes have more than `k` arcs; lanes are in descending order of their arcs.
__device__ inline u32 lanes_above(u32 len, u32 k) {
    u32 low = 0;
#pragma unroll
    for (u32 step = WARP / 2; step > 0; step /= 2) {
        if (__shfl_sync(ALL, len, low + step - 1) > k) low += step;
    }
    return low + (__shfl_sync(ALL, len, low) > k);
}
