// What every kernel shares: integer names, the graph's tables, unaligned reads.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// The byte at which a field begins, as a constant: NVRTC has the front end's own name for it.
#ifdef __CUDACC_RTC__
#define OFFSET_OF(type, field) __INTADDR__(&((type*)0)->field)
#else
#define OFFSET_OF(type, field) __builtin_offsetof(type, field)
#endif

static const u32 WARP = 32;
static const u32 ALL = 0xffffffffu;

// Blocks in device memory: block i at addresses[i]; or, without addresses, a batch of `count`
// blocks one behind the other, whose numbers are given.
static const u32 BATCH = 8;

struct Blocks {
    const u64* addresses;
    const u8* base;
    const u32* damaged;  // Of each block of a batch, whether its checksum failed; or null.
    u32 size;
    u32 count;
    u32 numbers[BATCH];
};

// The i-th block of a batch, or the graph's block i. Kernels that only see blocks at addresses are
// compiled for that (RESIDENT), and decode with fewer registers.
__device__ inline const u8* block_at(const Blocks& blocks, u32 i) {
#ifdef RESIDENT
    return (const u8*)blocks.addresses[i];
#endif
    if (blocks.addresses) return (const u8*)blocks.addresses[i];
    return blocks.base + (u64)i * blocks.size;
}

// What `block_at` takes for the graph's block `number`.
__device__ inline u32 index_of(const Blocks& blocks, u32 number) {
#ifdef RESIDENT
    return number;
#endif
    if (blocks.addresses) return number;
    u32 index = 0;
#pragma unroll
    for (u32 i = 1; i < BATCH; i++) {
        if (blocks.numbers[i] == number && i < blocks.count) index = i;
    }
    return index;
}

__device__ inline bool is_damaged(const Blocks& blocks, u32 index) {
    return blocks.damaged && blocks.damaged[index];
}

// Four bytes from byte `at` of a block, which is aligned. Reads up to seven bytes from there.
__device__ inline u32 word_at(const u8* block, u32 at) {
    const u32* words = (const u32*)block + (at >> 2);
    return __funnelshift_r(words[0], words[1], (at & 3) * 8);
}

// `#define`d by the launcher: bytes of a weight (0, 4, 8) and of a plainly stored id (4, 8).
#ifndef WEIGHT_BYTES
#define WEIGHT_BYTES 0
#endif
#ifndef ID_BYTES
#define ID_BYTES 4
#endif

// Weight `i` of those from byte `at` of a block; 1 in a graph without.
__device__ inline double weight_at(const u8* block, u32 at, u32 i) {
#if WEIGHT_BYTES == 4
    return __uint_as_float(word_at(block, at + 4 * i));
#elif WEIGHT_BYTES == 8
    u32 low = word_at(block, at + 8 * i), high = word_at(block, at + 8 * i + 4);
    return __hiloint2double((int)high, (int)low);
#else
    return 1.0;
#endif
}
