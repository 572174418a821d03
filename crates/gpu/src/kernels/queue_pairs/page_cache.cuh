// Rows that were read, kept in device memory: warps look there before they ask a drive.
//
// The place that BaM's page cache has (ASPLOS 2023, 3.4), in sets of as many lines as a warp has lanes,
// so that a warp sees a set by one load. The first line to come is the first to go.
//
// No two warps of a kernel want the same row, so whoever finds its row has the line alone, and whoever
// finds no line that nobody has keeps nothing. Nobody waits.

static const u64 FULL = 1ull << 32;  // Of a line: it has the row whose number is below.
static const u64 IN_USE = 1ull << 33;  // A warp has it.

struct PageCache {
    u64* lines;  // A row and what is said of it; 0: empty.
    u32* hands;  // By set, how many lines were given away.
    u8* rows;    // By line.
    u64* found;  // Rows, so far.
    u32 sets;    // 0: there is no cache.
    u32 line_bytes;
};

__device__ inline u32 first_line(const PageCache& cache, u32 row) {
    return __umulhi(row * 0x9e3779b1u, cache.sets) * WARP;
}

__device__ inline u8* row_of(const PageCache& cache, u32 line) {
    return cache.rows + (u64)line * cache.line_bytes;
}

// Takes a line that lane `who` has `seen` so, if it still is; whether the warp has it now.
__device__ inline bool take_line(const PageCache& cache, u32 line, u64 seen, u32 who) {
    bool taken = threadIdx.x % WARP == who && atomicCAS(cache.lines + line, seen, IN_USE) == seen;
    if (!__any_sync(ALL, taken)) return false;
    // What another warp did with it comes before.
    __threadfence();
    return true;
}

// The line that has a row, which the warp takes; NONE if there is none.
__device__ inline u32 find_row(const PageCache& cache, u32 row) {
    if (!cache.sets) return NONE;
    u32 line = first_line(cache, row) + threadIdx.x % WARP;
    u64 seen = look_at(cache.lines + line);
    u32 who = __ffs(__ballot_sync(ALL, seen == (FULL | row))) - 1;
    if (who == NONE || !take_line(cache, line, seen, who)) return NONE;
    return __shfl_sync(ALL, line, who);
}

// The line that a row may have, which the warp takes; NONE if others have all of its set.
__device__ inline u32 free_line(const PageCache& cache, u32 row) {
    if (!cache.sets) return NONE;
    u32 lane = threadIdx.x % WARP, first = first_line(cache, row);
    u32 hand = lane == 0 ? atomicAdd(cache.hands + first / WARP, 1u) : 0;
    u32 line = first + (__shfl_sync(ALL, hand, 0) + lane) % WARP;
    u64 seen = look_at(cache.lines + line);
    for (u32 free = __ballot_sync(ALL, !(seen & IN_USE)); free; free &= free - 1) {
        u32 who = __ffs(free) - 1;
        if (take_line(cache, line, seen, who)) return __shfl_sync(ALL, line, who);
    }
    return NONE;
}

// Gives a line back, with the row that was copied from it or to it.
__device__ inline void give_line(const PageCache& cache, u32 line, u32 row) {
    __threadfence();
    __syncwarp();
    if (threadIdx.x % WARP == 0) show(cache.lines + line, FULL | row);
}
