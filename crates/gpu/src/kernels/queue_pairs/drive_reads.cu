// Reads that a GPU starts, in two kernels with nothing between them: `submit` asks, `complete` takes.
// Hyperion (ICDE 2025), section III-A.
//
// A batch has queue pairs of its own, in which nothing else is in flight, so every completion that
// comes is one of the batch's, at the entries behind those of the batch before. In a pair, read
// number i of it has slot i, and the identifier i in the low bits, with the count of batches above it.
//
// submit: one block. Four threads a command, 16 bytes each, so that it crosses the link in one piece;
// one doorbell a pair at the end. 64 bytes over the link a read, and 16 bytes in GPU memory.
//
// complete: a warp claims the next CLAIM entries of a pair, waits until a drive has filled them,
// and copies the rows that they tell of from staging memory to the destination; pairs are shared
// out over warps, and who finds one done goes on to the next. The pair's last warp gives its entries
// back by one doorbell. 16 bytes and the row over the link a read.
//
// Before: pairs of the batch are idle, and the batch has no more reads than one drive's pairs have
// entries, less one each: so neither ring is ever full, whatever drives the rows are on.
// CPU twin: nvme::queue.

static const u32 SUBMITTERS = 1024, TAKERS = 512;  // Threads of a block, at most.
static const u32 MOST_PAIRS = 1024;
static const u32 CLAIM = 8;  // Entries: a cache line of completions.

// A read in flight, by its pair and slot.
struct Slot {
    u32 span;  // Of the staging memory, or NONE when its completion was taken.
    u32 skip;  // Bytes of the span before the row.
    u32 target;
    u32 row;
};

// Where a queue pair is.
struct PairState {
    u32 position;  // Entries of either ring that were used so far.
    u32 count;     // Commands of the batch.
    u32 claimed;   // Completions of them that warps wait for, or waited for.
    u32 taken;     // Completions whose rows were copied.
};

struct Batch {
    const QueuePair* pairs;  // Those of a drive side by side.
    PairState* states;
    Slot* slots;       // A ring's entries a pair.
    const u8* staging;
    Watch watch;
    RowPlaces rows;
    u32 pairs_per_drive;
    u32 entries_log2;
    u32 round;  // The part of identifiers above the slot.
};

struct Submission {
    Batch batch;
    const RowRequest* requests;
    const u32* count;  // Of all requests.
    u32 first;         // The batch's first.
    u32 most;          // That the batch takes.
};

extern "C" __global__ void __launch_bounds__(SUBMITTERS) submit(Submission a) {
    __shared__ u32 counts[MOST_PAIRS];
    __shared__ bool is_over;
    const Batch& b = a.batch;
    u32 pairs = b.rows.drives * b.pairs_per_drive, mask = (1u << b.entries_log2) - 1;
    for (u32 pair = threadIdx.x; pair < pairs; pair += blockDim.x) counts[pair] = 0;
    if (threadIdx.x == 0) is_over = is_broken(b.watch);
    __syncthreads();
    if (is_over) return;

    u32 all = *a.count, count = all > a.first ? min(all - a.first, a.most) : 0;
    u32 lane = threadIdx.x % WARP, part = lane % PARTS;
    for (u32 base = threadIdx.x / WARP * (WARP / PARTS); base < count; base += blockDim.x / PARTS) {
        u32 i = base + lane / PARTS, slot = 0;
        RowRequest request = a.requests[a.first + min(i, count - 1)];
        Place place = place_of(b.rows, request.row);
        u32 pair = place.drive * b.pairs_per_drive + i % b.pairs_per_drive;
        if (part == 0 && i < count) slot = atomicAdd(counts + pair, 1u);
        slot = __shfl_sync(ALL, slot, lane - part);
        if (i < count) {
            const QueuePair& queue = b.pairs[pair];
            u32 entry = b.states[pair].position + slot & mask;
            uint4* command = (uint4*)(queue.submissions + (u64)entry * COMMAND_BYTES);
            command[part] = command_part(queue, b.rows, place, slot | b.round, i, part);
            if (part == 0) {
                b.slots[((u64)pair << b.entries_log2) + slot] = {i, place.skip, request.target, request.row};
            }
        }
    }
    __threadfence_system();
    __syncthreads();

    for (u32 pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
        PairState& state = b.states[pair];
        state.count = counts[pair];
        state.claimed = state.taken = 0;
        if (state.count) store_release_system(b.pairs[pair].tail_doorbell, state.position + state.count & mask);
    }
}

struct Completing {
    Batch batch;
    u8* to;
    u64 to_stride;   // From a row to the next at the destination.
    u32 word_bytes;  // That rows are copied by.
    u32 reserved;
};

// Waits until each lane's completion, of which `word` is the last word, is there; its value.
__device__ inline bool await(const Batch& b, u32 pair, const u32* word, u32 phase, u32* value) {
    u64 deadline = nanoseconds() + b.watch.most_ns;
    for (u32 looks = 1;; looks++) {
        *value = load_acquire_system(word);
        if (__all_sync(ALL, phase_of(*value) == phase)) return true;
        if (looks % LOOKS == 0) {
            bool leaves = threadIdx.x % WARP == 0 && must_leave(b.watch, deadline, pair);
            if (__any_sync(ALL, leaves)) return false;
        }
        __nanosleep(NAP_NS);
    }
}

// Takes `count` completions of a pair from number `from` on and copies their rows; false if that
// cannot be.
__device__ inline bool take(const Completing& a, u32 pair, u32 from, u32 count) {
    const Batch& b = a.batch;
    const QueuePair& queue = b.pairs[pair];
    u32 lane = threadIdx.x % WARP, first = b.states[pair].position + from, mask = (1u << b.entries_log2) - 1;
    u32 last = first + count - 1, own = first + min(lane, count - 1), value;
    auto word_at = [&](u32 position) {
        return (const u32*)(queue.completions + (u64)(position & mask) * COMPLETION_BYTES) + 3;
    };
    // A drive fills entries in their order. So all lanes look at the last, which is one access over the
    // link, and then each at its own.
    if (!await(b, pair, word_at(last), phase_at(last, b.entries_log2), &value)) return false;
    if (!await(b, pair, word_at(own), phase_at(own, b.entries_log2), &value)) return false;

    u32 cid = cid_of(value), number = cid & mask, status = status_of(value);
    Slot slot = {NONE, 0, 0, 0};
    if (lane < count && cid == (number | b.round) && number < b.states[pair].count) {
        Slot* at = b.slots + ((u64)pair << b.entries_log2) + number;
        slot = *at;
        slot.span = atomicExch(&at->span, NONE);
    }
    bool is_impossible = lane < count && slot.span == NONE;
    if (is_impossible) keep(b.watch.broken, IMPOSSIBLE, pair, cid, status, 0);
    if (__any_sync(ALL, is_impossible)) return false;
    if (lane < count && status) keep(b.watch.refused, REFUSED, pair, cid, status, slot.row);

    const u8* source = b.staging + (u64)slot.span * b.rows.span_bytes + slot.skip;
    u8* target = a.to + (u64)slot.target * a.to_stride;
    copy_rows(source, status ? 0 : target, count, b.rows.row_bytes, a.word_bytes);
    return true;
}

extern "C" __global__ void __launch_bounds__(TAKERS) complete(Completing a) {
    const Batch& b = a.batch;
    u32 pairs = b.rows.drives * b.pairs_per_drive, mask = (1u << b.entries_log2) - 1;
    u32 lane = threadIdx.x % WARP, warp = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    for (u32 turn = 0; turn < pairs; turn++) {
        u32 pair = (warp + turn) % pairs;
        PairState& state = b.states[pair];
        u32 count = state.count;
        while (true) {
            bool is_over = is_broken(b.watch);
            if (__any_sync(ALL, is_over)) return;
            u32 from = 0;
            if (lane == 0) from = atomicAdd(&state.claimed, CLAIM);
            from = __shfl_sync(ALL, from, 0);
            if (from >= count) break;
            u32 claimed = min(CLAIM, count - from);
            if (!take(a, pair, from, claimed)) return;
            if (lane == 0 && atomicAdd(&state.taken, claimed) + claimed == count) {
                state.position += count;
                store_release_system(b.pairs[pair].head_doorbell, state.position & mask);
            }
        }
    }
}
