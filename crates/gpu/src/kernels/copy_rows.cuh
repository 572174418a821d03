// Rows from anywhere to anywhere, by a warp: those in mapped host memory cross the link meanwhile, so
// that what counts is how many loads are in flight.

// Copies a row a lane, of the first `count` lanes, by the whole warp: from `from` in mapped memory
// to `to`, or to nowhere if that is null. Both, and `row_bytes`, are multiples of a word.
//
// The loads of an iteration have no conditions, so that none waits for another: those past the end
// are of the last word again.
template <class Word, u32 AHEAD>
__device__ inline void copy_words(const u8* from, u8* to, u32 count, u32 row_bytes) {
    u32 lane = threadIdx.x % WARP, words = row_bytes / (u32)sizeof(Word), total = count * words;
    for (u32 first = lane; first < total + lane; first += AHEAD * WARP) {
        Word values[AHEAD];
        Word* targets[AHEAD];
#pragma unroll
        for (u32 u = 0; u < AHEAD; u++) {
            u32 i = first + u * WARP, given = min(i, total - 1), row = given / words, word = given - row * words;
            const Word* source = (const Word*)__shfl_sync(ALL, (u64)from, row);
            Word* target = (Word*)__shfl_sync(ALL, (u64)to, row);
            values[u] = __ldcv(source + word);
            targets[u] = i < total && target ? target + word : 0;
        }
#pragma unroll
        for (u32 u = 0; u < AHEAD; u++) {
            if (targets[u]) *targets[u] = values[u];
        }
    }
}

// The same, with as many loads of a lane in flight together as there are, up to eight.
template <class Word>
__device__ inline void copy_by(const u8* from, u8* to, u32 count, u32 row_bytes) {
    u32 words = count * row_bytes / (u32)sizeof(Word);
    if (words <= WARP) return copy_words<Word, 1>(from, to, count, row_bytes);
    if (words <= 2 * WARP) return copy_words<Word, 2>(from, to, count, row_bytes);
    if (words <= 4 * WARP) return copy_words<Word, 4>(from, to, count, row_bytes);
    copy_words<Word, 8>(from, to, count, row_bytes);
}

// The same in words of `word_bytes`.
__device__ inline void copy_rows(const u8* from, u8* to, u32 count, u32 row_bytes, u32 word_bytes) {
    switch (word_bytes) {
        case 16: return copy_by<uint4>(from, to, count, row_bytes);
        case 8: return copy_by<uint2>(from, to, count, row_bytes);
        case 4: return copy_by<u32>(from, to, count, row_bytes);
        default: return copy_by<u8>(from, to, count, row_bytes);
    }
}
