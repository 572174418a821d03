// CRC-32C of blocks (docs/format.md, "Blocks"), where they are computed on.
//
// A thread a piece of 128 bytes, by four table look-ups a word; `powers` has what pieces are multiplied
// by. Then `verify`, a thread a block, adds what the initial value and the file's salt contribute and
// compares. CPU twin: format::block::check.

static const u32 THREADS = 256;
static const u32 PIECE = 128;
static const u32 CRC_AT = 60;               // The checksum itself is left out.

struct Arguments {
    Blocks blocks;
    const ByteProducts* word;  // Products with x^32: what a word behind it does to a CRC.
    const u32* powers;         // Of each piece.
    u32* sums;                 // Of each block; zero before, and after `verify` whether it is damaged.
    u32* first_damaged;        // The least number of a damaged block.
    u32 pieces;                // Of a block.
    u32 whole;                 // What the initial and the final value contribute, and the salt.
};

extern "C" __global__ void __launch_bounds__(THREADS) sum(Arguments a) {
    __shared__ ByteProducts word;
    for (u32 i = threadIdx.x; i < 1024; i += THREADS) word[i / 256][i % 256] = (*a.word)[i / 256][i % 256];
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
                crc = multiplied(word, crc ^ words[w]);
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
