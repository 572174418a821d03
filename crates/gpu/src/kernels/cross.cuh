// Rows from mapped host memory to device memory, through shared memory: what crosses the link is on its
// way there, and not to registers, which the kernels of training need. Training then has nearly all of
// every multiprocessor, where loads of registers take a part of some, and with it a turn of blocks of
// matrix products that fill all of them.

static const u32 CROSSING = 64;  // Threads of a block.
static const u32 LOADS = 2;      // Words of a piece a lane, of up to 16 bytes.
static const u32 BUNDLE = 4;     // Pieces that a warp asks for, and writes, together.
static const u32 BUNDLES = 4;    // Those that are on their way.

// A part of a row in shared memory, and where the row goes; to nowhere if that is null.
struct Place {
    float* to;
    u32 piece;  // Of the row.
    u32 reserved;
};

// Pieces of a warp on their way.
struct Ring {
    uint4 words[BUNDLES * BUNDLE][LOADS * WARP];
    Place places[BUNDLES * BUNDLE];
};

#ifdef __CUDACC_RTC__

// Starts a copy to shared memory; both sides lie at a multiple of BYTES.
template <u32 BYTES>
__device__ inline void start_copy(void* to, const void* from) {
    u32 at = (u32)__cvta_generic_to_shared(to);
    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    } else if (BYTES >= 4) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES) : "memory");
    } else {
        *(u8*)to = *(const u8*)from;
    }
}

// The copies of a thread since its last group are another one.
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most so many groups of the thread are on their way.
template <u32 OTHERS>
__device__ inline void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(OTHERS) : "memory");
}

#else  // The emulated GPU of the tests.

template <u32 BYTES>
inline void start_copy(void* to, const void* from) { __builtin_memcpy(to, from, BYTES); }
inline void end_group() {}
template <u32 OTHERS>
inline void wait_for_groups() {}

#endif

// A row of a lane, and where its values go.
struct Crossed {
    const u8* from;
    float* to;
    bool is_there;
};

// Writes the rows of all groups of 32, of which `look(group)` gives a lane its own (none past the end), by
// words of BYTES; `write(words, to, piece)` writes a piece that has come, by the whole warp.
template <u32 BYTES, class Look, class Write>
__device__ inline void cross(Ring& ring, u32 groups, u32 row_bytes, Look look, Write write) {
    u32 lane = threadIdx.x % WARP, warps = gridDim.x * (CROSSING / WARP);
    u32 group = (blockIdx.x * CROSSING + threadIdx.x) / WARP;
    u32 words = row_bytes / BYTES, pieces = (words + LOADS * WARP - 1) / (LOADS * WARP);
    Crossed row = look(group), next = look(group + warps);
    u32 mask = __ballot_sync(ALL, row.is_there), piece = 0;
    // Asks for the next pieces; whether there is one.
    auto ask = [&](u32 bundle) {
        bool is_any = false;
#pragma unroll
        for (u32 i = 0; i < BUNDLE; i++) {
            while (mask == 0 && group < groups) {
                group += warps;
                row = next;
                mask = __ballot_sync(ALL, row.is_there);
                // On its way while the rows of this one are.
                next = look(group + warps);
            }
            bool is_there = mask != 0;
            u32 source = is_there ? __ffs(mask) - 1 : 0, place = bundle * BUNDLE + i;
            const u8* from = (const u8*)__shfl_sync(ALL, (u64)row.from, source);
            float* to = (float*)__shfl_sync(ALL, (u64)row.to, source);
            if (lane == 0) ring.places[place] = {is_there ? to : 0, piece, 0};
            if (!is_there) continue;
            is_any = true;
#pragma unroll
            for (u32 load = 0; load < LOADS; load++) {
                u32 in_piece = load * WARP + lane, word = piece * LOADS * WARP + in_piece;
                u8* at = (u8*)ring.words[place] + in_piece * BYTES;
                if (word < words) start_copy<BYTES>(at, from + (u64)word * BYTES);
            }
            bool is_last = ++piece == pieces;
            piece = is_last ? 0 : piece;
            mask = is_last ? mask & (mask - 1) : mask;
        }
        end_group();
        return is_any;
    };
    u32 open = 0;
#pragma unroll
    for (u32 bundle = 0; bundle < BUNDLES; bundle++) open += ask(bundle);
    for (u32 bundle = 0; open; bundle = (bundle + 1) % BUNDLES) {
        wait_for_groups<BUNDLES - 1>();
        __syncwarp();
#pragma unroll
        for (u32 i = 0; i < BUNDLE; i++) {
            Place place = ring.places[bundle * BUNDLE + i];
            if (place.to) write((const u8*)ring.words[bundle * BUNDLE + i], place.to, place.piece);
        }
        __syncwarp();
        open += ask(bundle);
        open--;
    }
}
