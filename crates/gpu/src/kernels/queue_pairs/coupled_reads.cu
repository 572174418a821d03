// Reads that a GPU starts, each warp its own: it asks for a row and waits for it.
//
// The way of BaM (ASPLOS 2023), by which GIDS (VLDB 2024) gathers features: the baseline that
// `drive_reads.cu` is compared with. A warp takes a ticket, which is an entry of the submission queue,
// and marks the entry. Whoever has the pair's bell moves the tail past all entries that are marked, in
// order, and rings the doorbell once for them. Whoever has the pair's completion queue hands what has
// come to the slots that wait for it, and moves the head. A warp is busy until its row is there, and
// then copies it.
//
// BaM's rings lie in GPU memory, and drives reach them over the link. Here they lie in the host's, where
// every look crosses the link, and the more warps order their accesses for the whole system, the longer
// each of them takes. So a mark is the request itself, eight bytes of GPU memory that need no fence, and
// who has the bell writes the commands of all with one fence. One warp a queue pair looks at
// completions, 32 at a time; the others look at GPU memory.
//
// One warp a row; 64 bytes of a command, 16 of a completion and the row cross the link, but for a row that
// the page cache has, if there is one.
//
// No warp keeps a turn while it waits for another one, and none waits for a warp of another block: what
// it waits for is a drive, or a turn that somebody has for a while.
//
// Before: each pair has a quarter more entries than warps ask by it, so neither ring is ever full.
// CPU twin: nvme::queue.

static const u32 THREADS = 256;
static const u32 HELD = 1;        // Of a turn: a warp has it.
static const u32 WAIT_NS = 1000;  // Between two looks of a warp at whether its row is there.

// Where a queue pair is, on a cache line of its own, for hundreds of warps look at it. Positions are
// entries of a ring that were used so far. A turn is twice a position, and HELD.
struct CoupledState {
    u32 tickets;  // That were taken: a position.
    u32 told;     // The turn to tell the drive of commands, behind the last one that it was told of.
    u32 taken;    // The turn to take completions, from the next one on.
    u32 unused[29];
};

struct Coupled {
    const QueuePair* pairs;  // Those of a drive side by side.
    CoupledState* states;
    u64* marks;    // A ring's entries a pair: the row, identifier and round of the request that is there.
    u32* answers;  // As many, by slot: the identifier of the last command that was completed, and its status.
    const u8* staging;  // A span a warp.
    Watch watch;
    RowPlaces rows;
    u32 pairs_per_drive;
    u32 entries_log2;
    const RowRequest* requests;
    const u32* count;
    u8* to;
    u64 to_stride;
    u32 word_bytes;
    u32 most_warps;  // That read: as many as rings have room for.
    PageCache cache;
};

// The round of the ring in which a position is: none of what an entry held before.
__device__ inline u64 round_at(u32 position, u32 entries_log2) { return (position >> entries_log2) + 1 & 0xffff; }

// The identifier of the next command of a slot, whose last one was answered so.
__device__ inline u32 cid_after(u32 answer, u32 slot, u32 entries_log2) {
    u32 entries = 1u << entries_log2;
    return ((answer & -entries) + entries & 0xffff) | slot;
}

// Takes a turn that was looked at, by a warp, if nobody has it; whether the warp has it now.
__device__ inline bool take_turn(u32* turn, u32 seen) {
    if (seen & HELD) return false;
    return __any_sync(ALL, threadIdx.x % WARP == 0 && atomicCAS(turn, seen, seen | HELD) == seen);
}

// Gives a turn back. Doorbells that the next warp rings come behind those that this one rang.
__device__ inline void give_turn(u32* turn, u32 position) {
    __syncwarp();
    if (threadIdx.x % WARP == 0) store_release(turn, position << 1);
}

// Writes the commands of requests that are marked, and tells the drive of them, by the warp that has the
// turn to do so.
__device__ inline void tell(const Coupled& a, u32 pair, u32 turn) {
    const QueuePair& queue = a.pairs[pair];
    u32 lane = threadIdx.x % WARP, part = lane % PARTS, mask = (1u << a.entries_log2) - 1;
    u32 first = turn >> 1, told = first, come, blocks = 0;
    do {
        u32 position = told + lane;
        u64 mark = look_at(a.marks + ((u64)pair << a.entries_log2) + (position & mask));
        come = leading(mark >> 48 == round_at(position, a.entries_log2));
        for (u32 base = 0; base < come; base += WARP / PARTS) {
            u32 i = base + lane / PARTS;
            u64 asked = __shfl_sync(ALL, mark, i);
            if (i >= come) continue;
            u32 cid = (u32)(asked >> 32) & 0xffff, slot = cid & mask;
            u32 span = slot * a.pairs_per_drive + pair % a.pairs_per_drive;
            Place place = place_of(a.rows, (u32)asked);
            uint4* command = (uint4*)(queue.submissions + (u64)(told + i & mask) * COMMAND_BYTES);
            command[part] = command_part(queue, a.rows, place, cid, span, part);
            if (part == 0) blocks += place.blocks;
        }
        told += come;
    } while (come == WARP);
    if (told != first) {
        blocks = __reduce_add_sync(ALL, blocks);
        __syncwarp();
        if (lane == 0) {
            store_release_system(queue.tail_doorbell, told & mask);
            atomicAdd(a.watch.blocks, (u64)blocks);
        }
    }
    give_turn(&a.states[pair].told, told);
}

// Hands completions that have come to the slots that wait for them, by the warp that has the turn to do
// so; whether there were any.
__device__ inline bool take_completions(const Coupled& a, u32 pair, u32 turn) {
    const QueuePair& queue = a.pairs[pair];
    u32 lane = threadIdx.x % WARP, entries = 1u << a.entries_log2, mask = entries - 1;
    u32 first = turn >> 1, head = first, come, word = 0;
    do {
        come = completions_from(queue, a.entries_log2, head, entries, &word);
        if (come != 0) __threadfence();
        if (lane < come) {
            // A slot's commands have identifiers one after the other.
            u32 cid = cid_of(word), slot = cid & mask, status = status_of(word);
            u32 before = atomicExch(a.answers + ((u64)pair << a.entries_log2) + slot, cid | status << 16);
            bool is_impossible = cid_after(before, slot, a.entries_log2) != cid;
            if (is_impossible) keep(a.watch.broken, IMPOSSIBLE, pair, cid, status, 0);
        }
        head += come;
    } while (come == WARP);
    // The drive has entries enough without being told at every look.
    u32 quarter = max(entries / 4, 1u);
    if (lane == 0 && head / quarter != first / quarter) show(queue.head_doorbell, head & mask);
    // Nobody else looks sooner.
    if (head == first) __nanosleep(NAP_NS);
    give_turn(&a.states[pair].taken, head);
    return head != first;
}

// Reads a row into the warp's span by queue pair `pair`: the answer, or NONE if the warp shall leave.
__device__ inline u32 read_row(const Coupled& a, u32 row, u32 pair, u32 warp) {
    CoupledState& state = a.states[pair];
    u32 lane = threadIdx.x % WARP, slot = warp / a.pairs_per_drive, cid = 0, ticket = 0;
    u64 base = (u64)pair << a.entries_log2;
    u32* answer = a.answers + base + slot;
    if (lane == 0) {
        cid = cid_after(look_at(answer), slot, a.entries_log2);
        ticket = atomicAdd(&state.tickets, 1u);
        u32 entry = ticket & (1u << a.entries_log2) - 1;
        show(a.marks + base + entry, row | (u64)cid << 32 | round_at(ticket, a.entries_log2) << 48);
    }
    cid = __shfl_sync(ALL, cid, 0), ticket = __shfl_sync(ALL, ticket, 0);

    u64 deadline = nanoseconds() + a.watch.most_ns;
    const u32* watched = lane == 0 ? answer : lane == 1 ? &state.told : &state.taken;
    for (u32 looks = 1, vain = 0;; looks++) {
        u32 seen = look_at(watched);
        u32 told = __shfl_sync(ALL, seen, 1), taken = __shfl_sync(ALL, seen, 2);
        if (cid_of(__shfl_sync(ALL, seen, 0)) == cid) return load_acquire(answer);
        bool leaves = false;
        if ((int)((ticket << 1) - (told & ~HELD)) >= 0) {
            if (take_turn(&state.told, told)) tell(a, pair, told);
        } else if (take_turn(&state.taken, taken) && !take_completions(a, pair, taken)) {
            // The host's wish is in its memory: only who looks there anyway sees it.
            leaves = ++vain % LOOKS == 0 && lane == 0 && must_leave(a.watch, deadline, pair);
        }
        if (looks % LOOKS == 0) leaves |= is_broken(a.watch);
        if (__any_sync(ALL, leaves)) return NONE;
        __nanosleep(WAIT_NS);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) coupled(Coupled a) {
    u32 lane = threadIdx.x % WARP, warp = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    u32 warps = min(gridDim.x * (THREADS / WARP), a.most_warps), count = warp < warps ? *a.count : 0;
    for (u32 i = warp; i < count; i += warps) {
        RowRequest request = a.requests[i];
        u8* target = a.to + (u64)request.target * a.to_stride;
        u32 line = find_row(a.cache, request.row);
        if (line != NONE) {
            copy_rows(row_of(a.cache, line), target, 1, a.rows.row_bytes, a.word_bytes);
            give_line(a.cache, line, request.row);
            if (lane == 0) atomicAdd(a.cache.found, 1ull);
            continue;
        }
        Place place = place_of(a.rows, request.row);
        u32 pair = place.drive * a.pairs_per_drive + warp % a.pairs_per_drive;
        u32 answer = read_row(a, request.row, pair, warp);
        if (answer == NONE) return;
        u32 status = answer >> 16;
        if (status && lane == 0) {
            keep(a.watch.refused, REFUSED, pair, cid_of(answer), status, request.row);
        }
        const u8* source = a.staging + (u64)warp * a.rows.span_bytes + place.skip;
        copy_rows(source, status ? 0 : target, 1, a.rows.row_bytes, a.word_bytes);
        __syncwarp();  // The span is the next row's.
        line = status ? NONE : free_line(a.cache, request.row);
        if (line == NONE) continue;
        copy_rows(target, row_of(a.cache, line), 1, a.rows.row_bytes, a.word_bytes);
        give_line(a.cache, line, request.row);
    }
}
