// Rows from mapped host memory to device memory, through shared memory, by asynchronous copies. Training
// then has nearly all of every multiprocessor: loads of registers would take a part of some, and with it
// a turn of blocks of matrix products that fill all of them.

static const u32 CROSSING = 128;                   // Threads of a block.
static const u32 LOADS = 2;                        // Words of a piece a lane, of up to 16 bytes.
static const u32 PIECE_BYTES = LOADS * WARP * 16;  // Of a row, at most.
static const u32 BUNDLE = 8;                       // Pieces that a warp asks for, and writes, together.
static const u32 BUNDLES = 3;                      // Those that are on their way.

// A part of a row on its way to shared memory, and where the row goes; to nowhere if that is null.
struct Piece {
    const u8* from;  // Of the row.
    float* to;
    u32 number;  // In its row.
    u32 bytes;
};

// Pieces of a warp on their way; at lines of 128 bytes, which bulk copies want for their speed.
struct __align__(128) Ring {
    uint4 words[BUNDLES * BUNDLE][LOADS * WARP];
    Piece pieces[BUNDLES * BUNDLE];
    u64 arrivals[BUNDLES];  // Of pieces by bulk.
};
static_assert(sizeof(Ring) * (CROSSING / WARP) == RINGS_BYTES, "as the launcher says");

// The warp's ring, in what a launch gives a block.
__device__ inline Ring& own_ring() {
#ifdef __CUDACC_RTC__
    extern __shared__ Ring rings[];
#else
    alignas(Ring) static u8 bytes[RINGS_BYTES];
    Ring* rings = (Ring*)bytes;
#endif
    return rings[threadIdx.x / WARP];
}

// The pieces of `rows` rows, of which `look(row)` says whence and where to. A warp has 32 rows at a time, and a
// row's pieces one after the other.
template <class Look>
struct Pieces {
    Look look;
    u32 rows, row_bytes, piece_bytes;
    u32 each;   // Pieces of a row.
    u32 taken;  // Pieces of the warp.

    __device__ Pieces(Look look, u32 rows, u32 row_bytes, u32 piece_bytes)
        : look(look), rows(rows), row_bytes(row_bytes), piece_bytes(piece_bytes), taken(0) {
        each = (row_bytes + piece_bytes - 1) / piece_bytes;
    }

    // The next ones, one to each of the first lanes; to nowhere where there are none.
    __device__ Piece take() {
        u32 lane = threadIdx.x % WARP, warp = (blockIdx.x * CROSSING + threadIdx.x) / WARP;
        u32 warps = gridDim.x * (CROSSING / WARP), together = WARP * each;
        u32 at = taken + lane, turn = at / together, in_turn = at - turn * together, of_turn = in_turn / each;
        u64 row = ((u64)turn * warps + warp) * WARP + of_turn;
        taken += BUNDLE;
        if (lane >= BUNDLE || row >= rows) return {};
        Piece piece = look((u32)row);
        piece.number = in_turn - of_turn * each;
        piece.bytes = min(piece_bytes, row_bytes - piece.number * piece_bytes);
        return piece;
    }
};

// Has bundle after bundle asked for, and written when it has come: `ask(bundle)` says whether there was
// anything left to ask for, and is called when the bundle behind the asked one was written.
template <class Ask, class Write>
__device__ inline void in_turns(Ask ask, Write write) {
    u32 open = 0;
#pragma unroll
    for (u32 bundle = 0; bundle < BUNDLES; bundle++) open += ask(bundle);
    for (u32 turn = 0; open; turn++) {
        write(turn % BUNDLES);
        __syncwarp();
        open--;
        if (turn > 0) open += ask((turn - 1) % BUNDLES);
    }
}

// Writes the rows that `look` gives, by words of BYTES; `write(words, to, number)` writes a piece that
// has come, by the whole warp.
template <u32 BYTES, class Look, class Write>
__device__ inline void cross_by_words(u32 rows, u32 row_bytes, Look look, Write write) {
    Ring& ring = own_ring();
    u32 lane = threadIdx.x % WARP;
    const u32 piece_bytes = LOADS * WARP * BYTES;
    Pieces<Look> pieces(look, rows, row_bytes, piece_bytes);
    auto ask = [&](u32 bundle) {
        Piece own = pieces.take();
        if (lane < BUNDLE) ring.pieces[bundle * BUNDLE + lane] = own;
        __syncwarp();
#pragma unroll
        for (u32 i = bundle * BUNDLE; i < (bundle + 1) * BUNDLE; i++) {
            Piece piece = ring.pieces[i];
            const u8* from = piece.from + (u64)piece.number * piece_bytes;
#pragma unroll
            for (u32 load = 0; load < LOADS; load++) {
                u32 at = (load * WARP + lane) * BYTES;
                if (at < piece.bytes) start_copy<BYTES>((u8*)ring.words[i] + at, from + at);
            }
        }
        end_group();
        return __any_sync(ALL, own.to != 0);
    };
    in_turns(ask, [&](u32 bundle) {
        wait_for_groups<BUNDLES - 2>();
        __syncwarp();
        for (u32 i = bundle * BUNDLE; i < (bundle + 1) * BUNDLE; i++) {
            Piece piece = ring.pieces[i];
            if (piece.to) write((const u8*)ring.words[i], piece.to, piece.number);
        }
    });
}

#ifdef BULK

// The same by bulk: a lane a piece. `row_bytes`, and where rows are, are multiples of 16. Where IS_PLAIN
// rows are written as they come, and `write` is not called.
template <bool IS_PLAIN, class Look, class Write>
__device__ inline void cross_by_bulk(u32 rows, u32 row_bytes, Look look, Write write) {
    Ring& ring = own_ring();
    u32 lane = threadIdx.x % WARP, turn = 0;
    if (lane < BUNDLES) make_arrivals(&ring.arrivals[lane]);
    show_arrivals();
    __syncwarp();
    Pieces<Look> pieces(look, rows, row_bytes, PIECE_BYTES);
    auto ask = [&](u32 bundle) {
        Piece own = pieces.take();
        u32 i = bundle * BUNDLE + lane, all = __reduce_add_sync(ALL, own.bytes);
        // Of the bundle behind this one they may still be read.
        if (IS_PLAIN) wait_for_bulk_writes<1>();
        if (lane < BUNDLE) ring.pieces[i] = own;
        if (lane == 0 && all) expect_bytes(&ring.arrivals[bundle], all);
        __syncwarp();
        const u8* from = own.from + (u64)own.number * PIECE_BYTES;
        if (own.to) start_bulk_copy(ring.words[i], from, own.bytes, &ring.arrivals[bundle]);
        return all != 0;
    };
    in_turns(ask, [&](u32 bundle) {
        wait_for_bytes(&ring.arrivals[bundle], turn++ / BUNDLES);
        __syncwarp();
        if (IS_PLAIN) {
            u32 i = bundle * BUNDLE + lane % BUNDLE;
            Piece piece = ring.pieces[i];
            u8* to = (u8*)piece.to + (u64)piece.number * PIECE_BYTES;
            if (lane < BUNDLE && piece.to) start_bulk_write(to, ring.words[i], piece.bytes);
            end_bulk_writes();
        } else {
            for (u32 i = bundle * BUNDLE; i < (bundle + 1) * BUNDLE; i++) {
                Piece piece = ring.pieces[i];
                if (piece.to) write((const u8*)ring.words[i], piece.to, piece.number);
            }
        }
    });
    if (IS_PLAIN) wait_for_bulk_writes<0>();
}

#endif
