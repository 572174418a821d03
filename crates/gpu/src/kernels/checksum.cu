// CRC-32C of blocks (docs/format.md, "Blocks"), where they are computed on.
//
// A CRC is linear: that of a block is the sum (exclusive or) of its pieces' CRCs, each multiplied by
// x to the power of the bits behind it, modulo the polynomial. A thread a piece of 128 bytes, by
// four table look-ups a word; `powers` has the multipliers. Then `verify`, a thread a block, adds
// what the initial value and the file's salt contribute and compares. CPU twin: format::block::check.

static const u32 THREADS = 256;
static const u32 PIECE = 128;
static const u32 POLYNOMIAL = 0x82F63B78u;  // Castagnoli's, reflected.
static const u32 CRC_AT = 60;               // The checksum itself is left out.

struct Arguments {
    Blocks blocks;
    const u32* tables;  // 4 × 256: CRCs of a byte with 0 to 3 zero bytes behind it.
    const u32* powers;  // Of each piece.
    u32* sums;          // Of each block; zero before, and after `verify` whether it is damaged.
    u32* first_damaged;  // The least number of a damaged block.
    u32 pieces;         // Of a block.
    u32 whole;          // What the initial and the final value contribute, and the salt.
};

// a × b modulo the polynomial; bit 31 is the coefficient of x^0.
__device__ inline u32 multiply(u32 a, u32 b) {
    u32 product = 0;
#pragma unroll 8
    for (u32 i = 0; i < 32; i++) {
        product ^= (a >> 31) * b;
        a <<= 1;
        b = b >> 1 ^ (b & 1) * POLYNOMIAL;
    }
    return product;
}

extern "C" __global__ void __launch_bounds__(THREADS) sum(Arguments a) {
    __shared__ u32 tables[4][256];
    for (u32 i = threadIdx.x; i < 1024; i += THREADS) tables[i / 256][i % 256] = a.tables[i];
    __syncthreads();
    u32 groups = (a.pieces + THREADS - 1) / THREADS, index = blockIdx.x / groups;
    u32 piece = blockIdx.x % groups * THREADS + threadIdx.x, crc = 0;
    if (piece < a.pieces) {
        const uint4* from = (const uint4*)(block_at(a.blocks, index) + piece * PIECE);
#pragma unroll
        for (u32 i = 0; i < PIECE / 16; i++) {
            uint4 four = from[i];
            u32 words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (u32 w = 0; w < 4; w++) {
                if (piece == 0 && i * 16 + w * 4 == CRC_AT) continue;
                crc ^= words[w];
                crc = tables[3][crc & 255] ^ tables[2][crc >> 8 & 255] ^
                      tables[1][crc >> 16 & 255] ^ tables[0][crc >> 24];
            }
        }
        crc = multiply(crc, a.powers[piece]);
    }
    crc = __reduce_xor_sync(ALL, crc);
    if (threadIdx.x % WARP == 0) atomicXor(a.sums + index, crc);
}

extern "C" __global__ void verify(Arguments a, u32 count) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    u32 stored = ((const u32*)block_at(a.blocks, index))[CRC_AT / 4];
    bool damaged = (a.sums[index] ^ a.whole) != stored;
    a.sums[index] = damaged;
    if (damaged) atomicMin(a.first_damaged, a.blocks.addresses ? index : a.blocks.numbers[index]);
}
