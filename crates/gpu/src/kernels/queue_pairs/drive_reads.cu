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
// complete: a block has the pairs whose numbers are its own modulo the number of blocks. Its first warp
// watches their completions, 32 of a pair at a look, and puts what has come into GPU memory; the other
// warps take up to CLAIM of those at a time, and copy their rows from staging memory to the
// destination. So one warp alone reads what a drive is about to write: hundreds that do slow drives,
// and each other. When a block leaves, it gives back the entries of pairs that are complete, by one
// doorbell each. 16 bytes and the row over the link a read.
//
// It stays until all completions have come. Who knows that they have launches it late: a kernel that
// waits for drives keeps a multiprocessor from kernels that would fill all of them. And who has copied
// the staging memory to the GPU's own lets it read there: a copy engine takes no multiprocessor either.
//
// A row that lies in two stripes, on two drives, is two reads of its parts.
//
// Before: pairs of the batch are idle, and the batch has no more reads than one drive's pairs have
// entries, less one each: so neither ring is ever full, whatever drives the rows are on.
// CPU twin: nvme::queue.

static const u32 SUBMITTERS = 1024, TAKERS = 512;  // Threads of a block, at most.
static const u32 MOST_PAIRS = 1024;
static const u32 CLAIM = 8;  // Completions that a warp takes at a time, at most.

// A read in flight, by its pair and slot.
struct Slot {
    u32 span;  // Of the staging memory, or NONE when its completion was taken.
    u32 skip;  // Bytes of the span before the row.
    u32 target;
    u32 row;
    u32 begin;  // The byte of the row that is the first of what is read,
    u32 bytes;  // and how many are.
};

// Where a queue pair is.
struct PairState {
    u32 position;  // Entries of either ring that were used before the batch.
    u32 count;     // Commands of the batch; 0 when it is complete.
};

struct Batch {
    const QueuePair* pairs;  // Those of a drive side by side.
    PairState* states;
    Slot* slots;       // A ring's entries a pair.
    u32* words;        // As many: the last words of completions that have come, in their order.
    const u8* staging;
    Watch watch;
    RowPlaces rows;
    u32 pairs_per_drive;
    u32 entries_log2;
    u32 round;  // The part of identifiers above the slot.
    u32 parts;  // The most that a row is read in: 1 or 2.
};

struct Submission {
    Batch batch;
    const RowRequest* requests;
    const u32* count;  // Of all requests.
    u32* told;         // Where the host reads, in mapped memory, how many commands there are; or null.
    u32 first;         // The batch's first.
    u32 most;          // That the batch takes.
};

extern "C" __global__ void __launch_bounds__(SUBMITTERS) submit(Submission a) {
    __shared__ u32 counts[MOST_PAIRS];
    __shared__ bool is_over;
    __shared__ u32 blocks, seconds;
    const Batch& b = a.batch;
    u32 pairs = b.rows.drives * b.pairs_per_drive, mask = (1u << b.entries_log2) - 1;
    for (u32 pair = threadIdx.x; pair < pairs; pair += blockDim.x) counts[pair] = 0;
    if (threadIdx.x == 0) {
        is_over = is_broken(b.watch);
        blocks = seconds = 0;
    }
    __syncthreads();
    if (is_over) {
        if (threadIdx.x == 0 && a.told) store_release_system(a.told, 0);
        return;
    }

    u32 all = *a.count, count = all > a.first ? min(all - a.first, a.most) : 0;
    u32 lane = threadIdx.x % WARP, part = lane % PARTS, own_blocks = 0;
    for (u32 base = threadIdx.x / WARP * (WARP / PARTS); base < count; base += blockDim.x / PARTS) {
        u32 i = base + lane / PARTS;
        RowRequest request = a.requests[a.first + min(i, count - 1)];
        u64 byte = byte_of(b.rows, request.row);
        for (u32 part_of_row = 0, begin = 0; part_of_row < b.parts; part_of_row++) {
            bool is_asked = i < count && begin < b.rows.row_bytes;
            Place place = place_at(b.rows, byte + begin, b.rows.row_bytes - begin);
            u32 pair = place.drive * b.pairs_per_drive + i % b.pairs_per_drive, slot = 0, span = i;
            if (part == 0 && is_asked) {
                slot = atomicAdd(counts + pair, 1u);
                // Second parts have spans behind those of all rows.
                if (part_of_row != 0) span = count + atomicAdd(&seconds, 1u);
            }
            slot = __shfl_sync(ALL, slot, lane - part), span = __shfl_sync(ALL, span, lane - part);
            if (is_asked) {
                const QueuePair& queue = b.pairs[pair];
                u32 entry = b.states[pair].position + slot & mask;
                uint4* command = (uint4*)(queue.submissions + (u64)entry * COMMAND_BYTES);
                command[part] = command_part(queue, b.rows, place, slot | b.round, span, part);
                if (part == 0) {
                    own_blocks += place.blocks;
                    b.slots[((u64)pair << b.entries_log2) + slot] = {span, place.skip, request.target,
                                                                    request.row, begin, place.bytes};
                }
            }
            begin += place.bytes;
        }
    }
    if (own_blocks) atomicAdd(&blocks, own_blocks);
    __threadfence_system();
    __syncthreads();

    if (threadIdx.x == 0) {
        atomicAdd(b.watch.blocks, (u64)blocks);
        if (a.told) store_release_system(a.told, count + seconds);
    }
    for (u32 pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
        PairState& state = b.states[pair];
        state.count = counts[pair];
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

// What the warps of a block know of one of its pairs.
struct Taken {
    u32 count;   // Commands of the batch.
    u32 filled;  // Completions that have come.
    u32 claimed; // Completions that warps copy the rows of, or did.
};

struct Block {
    Taken taken[MOST_PAIRS];
    u32 pairs;
    u32 is_over;  // It leaves at once: something is wrong.
};

__device__ inline u32 in_block(const u32* at) { return *(const volatile u32*)at; }

// The number of the block's pair `own` among all.
__device__ inline u32 pair_of(u32 own) { return blockIdx.x + own * gridDim.x; }

// Looks at the next completions of the block's pair `own`, by a warp; how many more have come.
__device__ inline u32 look_for(const Batch& b, Block& block, u32 own) {
    Taken& taken = block.taken[own];
    u32 pair = pair_of(own), lane = threadIdx.x % WARP, first = taken.filled, word = 0;
    u32 come = completions_from(b.pairs[pair], b.entries_log2, b.states[pair].position + first,
                                taken.count - first, &word);
    if (come == 0) return 0;
    if (lane < come) show(b.words + ((u64)pair << b.entries_log2) + first + lane, word);
    __syncwarp();
    // Of what all lanes wrote, which the warp's barrier puts before it.
    __threadfence_block();
    if (lane == 0) *(volatile u32*)&taken.filled = first + come;
    __syncwarp();
    return come;
}

// Watches the block's pairs until all their completions have come, or it must leave.
__device__ inline void watch(const Batch& b, Block& block) {
    u64 deadline = nanoseconds() + b.watch.most_ns;
    for (u32 looks = 1;; looks++) {
        u32 come = 0, missing = 0;
        for (u32 own = 0; own < block.pairs; own++) {
            Taken& taken = block.taken[own];
            if (taken.filled < taken.count) {
                come += look_for(b, block, own);
                missing = taken.filled < taken.count ? pair_of(own) + 1 : missing;
            }
        }
        if (missing == 0) return;
        if (come != 0) {
            deadline = nanoseconds() + b.watch.most_ns;
        } else {
            __nanosleep(NAP_NS);
        }
        if (looks % LOOKS == 0) {
            bool leaves = threadIdx.x % WARP == 0 && must_leave(b.watch, deadline, missing - 1);
            if (__any_sync(ALL, leaves)) {
                *(volatile u32*)&block.is_over = 1;
                return;
            }
        }
    }
}

// Copies the rows of `count` completions of the block's pair `own` from number `from` on; false if one of
// them cannot be.
__device__ inline bool copy(const Completing& a, u32 own, u32 from, u32 count) {
    const Batch& b = a.batch;
    u32 lane = threadIdx.x % WARP, pair = pair_of(own), mask = (1u << b.entries_log2) - 1;
    u64 base = (u64)pair << b.entries_log2;
    u32 value = look_at(b.words + base + from + min(lane, count - 1));
    u32 cid = cid_of(value), number = cid & mask, status = status_of(value);
    Slot slot = {NONE, 0, 0, 0, 0, 0};
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
    u8* target = status ? 0 : a.to + (u64)slot.target * a.to_stride + slot.begin;
    if (b.parts == 1) {
        copy_rows(source, target, count, b.rows.row_bytes, a.word_bytes);
        return true;
    }
    for (u32 i = 0; i < count; i++) {
        u8* to = (u8*)__shfl_sync(ALL, (u64)target, i);
        const u8* from = (const u8*)__shfl_sync(ALL, (u64)source, i);
        copy_rows(from, to, 1, __shfl_sync(ALL, slot.bytes, i), a.word_bytes);
    }
    return true;
}

// Claims completions of the block's pair `own` that have come; how many, and from which on.
//
// The two numbers may be read in either order: `filled` only grows, and `claimed` is compared once more
// when it is changed, so an early look at the first one finds less, and possibly less than was claimed.
__device__ inline u32 claim(Taken& taken, u32* from) {
    u32 count = 0, first = 0;
    if (threadIdx.x % WARP == 0) {
        first = in_block(&taken.claimed);
        u32 filled = in_block(&taken.filled), most = filled > first ? min(filled - first, CLAIM) : 0;
        if (most != 0 && atomicCAS(&taken.claimed, first, first + most) == first) count = most;
    }
    *from = __shfl_sync(ALL, first, 0), count = __shfl_sync(ALL, count, 0);
    __syncwarp();
    // Each lane reads what was put in place before the first one saw it.
    __threadfence_block();
    return count;
}

// Copies rows of the block's pairs until all were claimed, or it must leave.
__device__ inline void copy_all(const Completing& a, Block& block) {
    u32 turn = threadIdx.x / WARP;
    while (true) {
        u32 copied = 0;
        bool is_done = true;
        for (u32 i = 0; i < block.pairs; i++) {
            u32 own = (turn + i) % block.pairs, from, count = claim(block.taken[own], &from);
            Taken& taken = block.taken[own];
            is_done &= in_block(&taken.claimed) == taken.count;
            if (count == 0) continue;
            if (!copy(a, own, from, count)) {
                *(volatile u32*)&block.is_over = 1;
                return;
            }
            copied += count;
        }
        bool leaves = is_done || in_block(&block.is_over);
        if (__any_sync(ALL, leaves)) return;
        if (copied == 0) __nanosleep(NAP_NS);
    }
}

// Gives the entries of the block's pair `own`, which is complete, back.
__device__ inline void leave(const Batch& b, u32 own) {
    PairState& state = b.states[pair_of(own)];
    if (state.count == 0) return;
    state.position += state.count;
    state.count = 0;
    store_release_system(b.pairs[pair_of(own)].head_doorbell, state.position & (1u << b.entries_log2) - 1);
}

extern "C" __global__ void __launch_bounds__(TAKERS, 2) complete(Completing a) {
    __shared__ Block block;
    const Batch& b = a.batch;
    u32 pairs = b.rows.drives * b.pairs_per_drive;
    if (threadIdx.x == 0) {
        block.pairs = blockIdx.x < pairs ? (pairs - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
        block.is_over = is_broken(b.watch);
    }
    __syncthreads();
    for (u32 own = threadIdx.x; own < block.pairs; own += blockDim.x) {
        block.taken[own] = {b.states[pair_of(own)].count, 0, 0};
    }
    __syncthreads();
    if (block.is_over || block.pairs == 0) return;
    if (threadIdx.x < WARP) {
        watch(b, block);
    } else {
        copy_all(a, block);
    }
    __syncthreads();
    for (u32 own = threadIdx.x; own < block.pairs && !block.is_over; own += blockDim.x) leave(b, own);
}
