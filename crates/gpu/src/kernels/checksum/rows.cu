// CRC-32C of feature rows in device memory (docs/format.md, "Features"), compared with what they should
// be: for rows that came without the rest of their page. And of pages of neighbour lists ("Rows"), which
// have theirs in their first word: it is of the page's number and what is behind that word.
//
// A warp a row. It goes through the row in stripes of 512 bytes, of which each lane has a piece of 16, so
// that a stripe is one transaction. A lane has a sum for each word of its piece, and from stripe to stripe
// multiplies it by x^4096 (`stripe`, four table look-ups): so sums of one lane do not wait for each other.
// In the end a lane's four sums become one (`word`), which is multiplied by the power of x that is behind
// its piece, or is negative where the row ends before. That power is the same for all rows, so a lane has
// its 32 products with x^0 to x^31 in registers.
//
// Reads a row once, its checksum, and 8 bytes of its request. Look-ups, for a warp: 12 a row and 16 for each
// stripe but the first. Shared memory: 8 KiB a block. Grid: any number of blocks. Before: targets hold rows,
// and `stored` has the checksum of each row that is requested. CPU twins: format::features::RowCrcWriter,
// format::rows::check_page.

static const u32 THREADS = 256;
static const u32 STRIPE = 512, PIECE = STRIPE / WARP;  // Bytes.
static const u32 WORDS = PIECE / 4;

// The rows that were found to differ from their checksums.
struct Damage {
    u32 count;
    u32 row;  // Of the one that was found first, as what follows.
    u32 target;
    u32 stored;
    u32 computed;
};

struct Arguments {
    const RowRequest* requests;
    const u32* count;  // Of the requests.
    const u8* rows;
    u64 row_stride;             // Bytes from the row of index 0 to that of index 1.
    const u32* stored;          // Of each row, by its number; null for pages.
    const ByteProducts* word;   // Products with x^32.
    const ByteProducts* stripe;  // Products with x^4096.
    const u32* powers;          // Of each lane: what its piece's CRC is multiplied by.
    Damage* damage;
    u32 row_bytes;
    u32 word_bytes;  // That rows may be loaded by.
    u32 whole;       // What the initial and the final value contribute, and the salt of pages.
    u32 behind;      // The power of x that is behind a page's number.
    u32 first;       // The requests from there on, and before `end`, if there are so many.
    u32 end;
};

// The word at byte `at` of a row; zeros behind the row's end.
__device__ inline u32 word_of(const Arguments& a, const u8* row, u32 at) {
    if (a.word_bytes >= 4 && at + 4 <= a.row_bytes) return *(const u32*)(row + at);
    u32 word = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        if (at + i < a.row_bytes) word |= (u32)row[at + i] << 8 * i;
    }
    return word;
}

// The 16 bytes at byte `at` of a row; zeros behind the row's end.
__device__ inline uint4 piece_of(const Arguments& a, const u8* row, u32 at) {
    if (a.word_bytes >= 16 && at + PIECE <= a.row_bytes) return *(const uint4*)(row + at);
    return {word_of(a, row, at), word_of(a, row, at + 4), word_of(a, row, at + 8), word_of(a, row, at + 12)};
}

// What a lane's piece of each stripe contributes to the row's CRC, but for the power of x behind it.
__device__ inline u32 pieces_crc(const Arguments& a, const u8* row, const ByteProducts& word,
                                 const ByteProducts& stripe) {
    u32 sums[WORDS] = {0, 0, 0, 0};
    for (u32 first = 0; first < a.row_bytes; first += STRIPE) {
        uint4 piece = piece_of(a, row, first + threadIdx.x % WARP * PIECE);
        if (first == 0 && !a.stored && threadIdx.x % WARP == 0) piece.x = 0;
        if (first > 0) {
#pragma unroll
            for (u32 w = 0; w < WORDS; w++) sums[w] = multiplied(stripe, sums[w]);
        }
        sums[0] ^= piece.x;
        sums[1] ^= piece.y;
        sums[2] ^= piece.z;
        sums[3] ^= piece.w;
    }
    u32 crc = sums[0];
#pragma unroll
    for (u32 w = 1; w < WORDS; w++) crc = multiplied(word, crc) ^ sums[w];
    return crc;
}

// What a page's number contributes to its CRC.
__device__ inline u32 number_crc(const Arguments& a, u32 number, const ByteProducts& word) {
    u32 crc = ~multiplied(word, multiplied(word, ~number));
    return multiply(crc, a.behind);
}

extern "C" __global__ void __launch_bounds__(THREADS) compare(Arguments a) {
    __shared__ ByteProducts word, stripe;
    for (u32 i = threadIdx.x; i < 1024; i += THREADS) {
        word[i / 256][i % 256] = (*a.word)[i / 256][i % 256];
        stripe[i / 256][i % 256] = (*a.stripe)[i / 256][i % 256];
    }
    u32 lane = threadIdx.x % WARP, warps = gridDim.x * (THREADS / WARP), end = min(*a.count, a.end);
    u32 products[32];  // Of the lane's power with that of each bit.
    u32 product = a.powers[lane];
#pragma unroll
    for (u32 i = 0; i < 32; i++, product = times_x(product)) products[i] = product;
    __syncthreads();

    for (u32 i = a.first + (blockIdx.x * THREADS + threadIdx.x) / WARP; i < end; i += warps) {
        RowRequest request = a.requests[i];
        const u8* row = a.rows + request.target * a.row_stride;
        u32 stored = a.stored ? a.stored[request.row] : *(const u32*)row;
        u32 crc = pieces_crc(a, row, word, stripe), sum = 0;
#pragma unroll
        for (u32 bit = 0; bit < 32; bit++) sum ^= products[bit] & (u32)((int)(crc << bit) >> 31);
        u32 computed = __reduce_xor_sync(ALL, sum) ^ a.whole;
        if (lane == 0 && !a.stored) computed ^= number_crc(a, request.row, word);
        if (lane == 0 && computed != stored && atomicAdd(&a.damage->count, 1u) == 0) {
            a.damage->row = request.row;
            a.damage->target = request.target;
            a.damage->stored = stored;
            a.damage->computed = computed;
        }
    }
}
