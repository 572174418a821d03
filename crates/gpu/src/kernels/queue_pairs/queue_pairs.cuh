// NVMe queue pairs, as kernels ask drives by them (NVM Express Base 2.0, 3.3; NVM Command Set 3.2.4).
//
// Rings and staging memory lie in pinned host memory, doorbells in a controller's registers: all of
// it is mapped, and shared with a drive, or with a CPU's threads that do what a drive does. A word
// has one writer. What the GPU wrote before it stores a doorbell (release) the drive sees after it
// has loaded that; what a drive wrote before the last word of a completion the GPU sees after it
// has loaded that (acquire). Data that came is read past the caches (`__ldcv`), which may hold what
// was there before. CPU twins: nvme::queue, nvme::controller.

static const u32 COMMAND_BYTES = 64, COMPLETION_BYTES = 16, PAGE_BYTES = 4096;
static const u32 PARTS = COMMAND_BYTES / 16;  // Threads that write a command, 16 bytes each.
static const u32 READ = 0x02;                 // The opcode.
static const u32 STATUS = 0x7ff;              // Code and type: 0 if the command was done.
static const u32 NONE = ~0u;
static const u32 NAP_NS = 500;        // Between two looks at memory that a drive writes.
static const u32 LOOKS = 16;          // After so many, the time and the host's wish to stop are looked at.

// Why reads fail. Rust: `FailureKind`.
static const u32 REFUSED = 1;     // A command ended with a status that is no success.
static const u32 LATE = 2;        // No completion came in time.
static const u32 STOPPED = 3;     // The host wants kernels to end.
static const u32 IMPOSSIBLE = 4;  // A completion of no command that is in flight.

struct QueuePair {
    u8* submissions;        // The ring of commands.
    const u8* completions;  // The ring of completions.
    u32* tail_doorbell;
    u32* head_doorbell;
    u64 staging_bus;  // The bus address of the first span, as this drive has it.
    u64 first_block;  // The drive's block at which its rows begin.
    u32 namespace_id;
    u32 reserved;
};

// Where rows lie: in groups of so many bytes; bytes in stripes, of which the drives have one in turn.
struct RowPlaces {
    u64 start;  // The byte of the stripes at which the first group begins.
    u32 row_bytes;
    u32 stride;  // From a row to the next in its group.
    u32 rows_per_group;
    u32 group_bytes;
    u32 stripe_log2;
    u32 drives;
    u32 block_log2;
    u32 span_bytes;  // Of staging memory that a read has.
};

// The first read, or queue pair, that failed.
struct Failure {
    u32 kind;  // 0: none did.
    u32 pair;
    u32 cid;
    u32 status;
    u32 row;
};

// What the host knows and watches of reads that kernels start.
struct Watch {
    Failure* refused;       // The first read that a drive refused.
    Failure* broken;        // Why queue pairs are of no use any more.
    u64* blocks;            // Of drives, that were asked for so far.
    const volatile u32* stop;  // Not 0: kernels shall leave.
    u64 most_ns;            // The longest wait for a completion.
};

#ifdef __CUDACC_RTC__  // The emulated GPU of the tests has its own.

// A word that somebody else writes, before everything that the caller accesses afterwards.
__device__ inline u32 load_acquire_system(const u32* at) {
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

// A look at such a word in no order with other accesses: who finds something loads it once more, with
// the order. Loops of hundreds of warps that order every look wait for each other. A fence for the whole
// system would do as well, and was in the slower variants of
// bench/runs/2026-11-25-h100-16-core-126gib/gpu_drive_reads_variants.txt.
__device__ inline u32 look_at(const u32* at) {
    u32 value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

// Writes a word that others look at, behind a fence.
__device__ inline void show(u32* at, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}

// The same of two words at once.
__device__ inline u64 look_at(const u64* at) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

__device__ inline void show(u64* at, u64 value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

// A word that other warps of the GPU write, before everything that the caller accesses afterwards.
__device__ inline u32 load_acquire(const u32* at) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

// Writes such a word, behind everything that the caller accessed before.
__device__ inline void store_release(u32* at, u32 value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}

__device__ inline void store_release_system(u32* at, u32 value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}

__device__ inline u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

#endif

// The blocks of a row, or of the part of it that lies in a stripe.
struct Place {
    u32 drive;
    u32 skip;   // Bytes of the first block before the part.
    u32 bytes;  // Of the part.
    u32 blocks;
    u64 first;  // Of those that the drive's rows are in.
};

// The byte of the stripes at which a row begins.
__device__ inline u64 byte_of(const RowPlaces& rows, u32 row) {
    u64 group = row / rows.rows_per_group;
    return rows.start + group * rows.group_bytes + row % rows.rows_per_group * rows.stride;
}

// The place of `bytes` bytes of the stripes from `byte` on, as far as they lie in one stripe, or on the
// only drive.
__device__ inline Place place_at(const RowPlaces& rows, u64 byte, u32 bytes) {
    u32 stripe = (u32)(byte >> rows.stripe_log2), block_bytes = 1u << rows.block_log2;
    u64 stripe_bytes = 1ull << rows.stripe_log2, within = byte & (stripe_bytes - 1);
    u64 on_drive = ((u64)(stripe / rows.drives) << rows.stripe_log2) + within;
    if (rows.drives > 1) bytes = (u32)min((u64)bytes, stripe_bytes - within);
    u32 skip = (u32)on_drive & (block_bytes - 1);
    u32 blocks = (skip + bytes + block_bytes - 1) >> rows.block_log2;
    return {stripe % rows.drives, skip, bytes, blocks, on_drive >> rows.block_log2};
}

// The place of a row, or of what lies in its first stripe.
__device__ inline Place place_of(const RowPlaces& rows, u32 row) {
    return place_at(rows, byte_of(rows, row), rows.row_bytes);
}

// A 16-byte part of the command that reads a place into span number `span`. A span touches two pages
// at most, so there are no lists of pages.
__device__ inline uint4 command_part(const QueuePair& pair, const RowPlaces& rows, const Place& place,
                                     u32 cid, u32 span, u32 part) {
    u64 prp1 = pair.staging_bus + (u64)span * rows.span_bytes, second = (prp1 / PAGE_BYTES + 1) * PAGE_BYTES;
    u64 prp2 = prp1 + ((u64)place.blocks << rows.block_log2) > second ? second : 0;
    u64 first = pair.first_block + place.first;
    switch (part) {
        case 0: return make_uint4(READ | cid << 16, pair.namespace_id, 0, 0);
        case 1: return make_uint4(0, 0, (u32)prp1, (u32)(prp1 >> 32));
        case 2: return make_uint4((u32)prp2, (u32)(prp2 >> 32), (u32)first, (u32)(first >> 32));
        default: return make_uint4(place.blocks - 1, 0, 0, 0);
    }
}

// The last word of a completion: its phase tag, identifier and status.
__device__ inline u32 phase_of(u32 word) { return word >> 16 & 1; }
__device__ inline u32 cid_of(u32 word) { return word & 0xffff; }
__device__ inline u32 status_of(u32 word) { return word >> 17 & STATUS; }

// The phase tag of the completion at a position: those of the first round of a ring have 1.
__device__ inline u32 phase_at(u32 position, u32 entries_log2) { return ~(position >> entries_log2) & 1; }

// How many lanes from the first on say so.
__device__ inline u32 leading(bool is_so) {
    u32 other = __ffs(~__ballot_sync(ALL, is_so));
    return other == 0 ? WARP : other - 1;
}

// Looks at the completions of a pair from a position on, one a lane and `most` at most, by a warp: how
// many have come, and of those the last word.
__device__ inline u32 completions_from(const QueuePair& pair, u32 entries_log2, u32 first, u32 most, u32* word) {
    u32 lane = threadIdx.x % WARP, position = first + lane, entry = position & (1u << entries_log2) - 1;
    const u32* last = (const u32*)(pair.completions + (u64)entry * COMPLETION_BYTES) + 3;
    bool is_there = lane < most && phase_of(look_at(last)) == phase_at(position, entries_log2);
    u32 come = leading(is_there);  // A drive fills entries in their order.
    if (lane < come) *word = load_acquire_system(last);
    return come;
}

__device__ inline bool is_broken(const Watch& watch) {
    return *(const volatile u32*)&watch.broken->kind != 0;
}

// Keeps a failure if it is the first.
__device__ inline void keep(Failure* first, u32 kind, u32 pair, u32 cid, u32 status, u32 row) {
    if (atomicCAS(&first->kind, 0u, kind) != 0) return;
    first->pair = pair;
    first->cid = cid;
    first->status = status;
    first->row = row;
}

// Whether a thread that waits for queue pair `pair` shall leave; why is kept.
__device__ inline bool must_leave(const Watch& watch, u64 deadline, u32 pair) {
    u32 kind = *watch.stop ? STOPPED : nanoseconds() > deadline ? LATE : 0;
    if (kind) keep(watch.broken, kind, pair, 0, 0, 0);
    return kind || is_broken(watch);
}
