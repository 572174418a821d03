// Reads that a GPU starts, each warp its own: it submits a command and waits for its completion.
//
// The shape of BaM (ASPLOS 2023), which GIDS (VLDB 2024) gathers features by: the baseline that
// `drive_reads.cu` is compared with. A warp takes a ticket, which is an entry of the submission
// queue, and marks the entry when its command is written. Who has a pair's bell tells the drive of
// all commands that are marked, in order; who has a pair's completion queue hands its completions
// to the slots that wait for them. A warp is busy until its row is there.
//
// Before: each pair has more entries than warps ask by it, so neither ring is ever full.
// CPU twin: nvme::queue.

static const u32 THREADS = 256;
static const u32 ANSWERED = 1u << 31;

// Where a queue pair is; positions are entries of a ring that were used so far.
struct CoupledState {
    u32 tail;     // The next ticket.
    u32 told;     // Up to where the drive was told of commands.
    u32 ringing;  // Whether a warp has the bell.
    u32 head;     // The next completion.
    u32 reaping;  // Whether a warp has the completion queue.
};

struct Coupled {
    const QueuePair* pairs;  // Those of a drive side by side.
    CoupledState* states;
    u32* marks;    // A ring's entries a pair: the ticket of the command that is there, plus 1.
    u32* answers;  // As many, by slot: the identifier in flight, or ANSWERED and the status.
    u32* uses;     // As many, by slot: how often it was used.
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
    u32 reserved;
};

// Tells the drive of the commands that are marked, if nobody else is at it.
__device__ inline void ring(const Coupled& a, u32 pair) {
    CoupledState& state = a.states[pair];
    if (look_at(&state.ringing) || atomicCAS(&state.ringing, 0u, 1u) != 0) return;
    __threadfence();
    u32 mask = (1u << a.entries_log2) - 1, told = look_at(&state.told), before = told;
    while (look_at(a.marks + ((u64)pair << a.entries_log2) + (told & mask)) == told + 1) told++;
    if (told != before) {
        store_release_system(a.pairs[pair].tail_doorbell, told & mask);
        show(&state.told, told);
    }
    __threadfence();
    atomicExch(&state.ringing, 0u);
}

// Hands out the completions that are there, if nobody else is at it.
__device__ inline void reap(const Coupled& a, u32 pair) {
    CoupledState& state = a.states[pair];
    if (look_at(&state.reaping) || atomicCAS(&state.reaping, 0u, 1u) != 0) return;
    __threadfence();
    const QueuePair& queue = a.pairs[pair];
    u32 mask = (1u << a.entries_log2) - 1, head = look_at(&state.head), before = head;
    while (true) {
        const u32* words = (const u32*)(queue.completions + (u64)(head & mask) * COMPLETION_BYTES);
        u32 value = look_at(words + 3);
        if (phase_of(value) != phase_at(head, a.entries_log2)) break;
        u32* answer = a.answers + ((u64)pair << a.entries_log2) + (cid_of(value) & mask);
        if (look_at(answer) != cid_of(value)) {
            keep(a.watch.broken, IMPOSSIBLE, pair, cid_of(value), status_of(value), 0);
            break;
        }
        load_acquire_system(words + 3);
        __threadfence();
        show(answer, ANSWERED | status_of(value));
        head++;
    }
    if (head != before) {
        show(&state.head, head);
        store_release_system(queue.head_doorbell, head & mask);
    }
    __threadfence();
    atomicExch(&state.reaping, 0u);
}

// Reads a row into the warp's span, by one lane; whether it came, and `refused` if the drive said so.
__device__ inline bool read_row(const Coupled& a, u32 row, const Place& place, u32 warp, bool* refused) {
    u32 pair = place.drive * a.pairs_per_drive + warp % a.pairs_per_drive, slot = warp / a.pairs_per_drive;
    u32 mask = (1u << a.entries_log2) - 1;
    u64 base = (u64)pair << a.entries_log2;
    const QueuePair& queue = a.pairs[pair];
    u32 cid = slot | (++a.uses[base + slot] << a.entries_log2 & 0xffff);
    show(a.answers + base + slot, cid);

    u32 ticket = atomicAdd(&a.states[pair].tail, 1u);
    uint4* command = (uint4*)(queue.submissions + (u64)(ticket & mask) * COMMAND_BYTES);
    for (u32 part = 0; part < PARTS; part++) {
        command[part] = command_part(queue, a.rows, place, cid, warp, part);
    }
    __threadfence();
    atomicExch(a.marks + base + (ticket & mask), ticket + 1);

    u64 deadline = nanoseconds() + a.watch.most_ns;
    for (u32 looks = 1;; looks++) {
        if ((int)(look_at(&a.states[pair].told) - ticket) <= 0) ring(a, pair);
        u32 answer = look_at(a.answers + base + slot);
        if (answer & ANSWERED) {
            __threadfence();
            *refused = answer != ANSWERED;
            if (*refused) keep(a.watch.refused, REFUSED, pair, cid, answer & STATUS, row);
            return true;
        }
        reap(a, pair);
        if (looks % LOOKS == 0 && must_leave(a.watch, deadline, pair)) return false;
        __nanosleep(NAP_NS);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) coupled(Coupled a) {
    u32 lane = threadIdx.x % WARP, warp = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    u32 warps = gridDim.x * (THREADS / WARP), count = *a.count;
    for (u32 i = warp; i < count; i += warps) {
        RowRequest request = a.requests[i];
        Place place = place_of(a.rows, request.row);
        bool refused = false, is_here = lane != 0 || read_row(a, request.row, place, warp, &refused);
        if (!__all_sync(ALL, is_here)) return;
        bool is_copied = !__any_sync(ALL, refused);
        const u8* source = a.staging + (u64)warp * a.rows.span_bytes + place.skip;
        u8* target = a.to + (u64)request.target * a.to_stride;
        copy_rows(source, is_copied ? target : 0, 1, a.rows.row_bytes, a.word_bytes);
        __syncwarp();  // The span is the next row's.
    }
}
