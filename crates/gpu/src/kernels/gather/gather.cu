// Rows of features to their indices in a batch, from device or mapped host memory.
//
// A warp looks up where the rows of up to 32 nodes are, and copies those of one tier: rows in device
// memory by the whole device, in no time; rows in host memory by a few small blocks. int8 and float16
// become float32 on the way. CPU twin: sampler::gather.

static const u32 THREADS = 512;

// Rows in device memory.
struct Arguments {
    const u8* rows;       // `stride` bytes apart.
    const u32* location;  // As in Ordering, of which `before` is `rows_here`.
    const u32* n_id;
    float* to;
    u32 rows_here;  // In device memory.
    u32 count;      // Of n_id.
    u32 step;       // How many nodes a warp looks up together, up to 32.
    u32 dim;
    u32 stride;
    u32 word_bytes;  // That rows are copied by, if they are float32.
};

// The number of the lane that is the `n`th of a mask, from 0 on; any lane if there are not so many.
__device__ inline u32 lane_of(u32 mask, u32 n) {
    u32 lane = 0;
#pragma unroll
    for (u32 half = WARP / 2; half; half /= 2) {
        u32 below = __popc(mask & ((1u << half) - 1));
        bool is_above = n >= below;
        lane += is_above ? half : 0;
        n -= is_above ? below : 0;
        mask = is_above ? mask >> half : mask & ((1u << half) - 1);
    }
    return lane;
}

// A float at any byte.
__device__ inline float float_at(const u8* at) {
    return __uint_as_float(at[0] | at[1] << 8 | at[2] << 16 | (u32)at[3] << 24);
}

// Writes a row a lane, of the first `count` lanes, as float32, by the whole warp.
__device__ inline void write_rows(const u8* from, float* to, u32 count, u32 dim, u32 word_bytes) {
    u32 lane = threadIdx.x % WARP;
#if ROW_TYPE == 0  // float32
    copy_rows(from, (u8*)to, count, 4 * dim, word_bytes);
#else
    for (u32 row = 0; row < count; row++) {
        const u8* source = (const u8*)__shfl_sync(ALL, (u64)from, row);
        float* target = (float*)__shfl_sync(ALL, (u64)to, row);
#if ROW_TYPE == 1  // float16
        for (u32 i = lane; i < dim; i += WARP) {
            float value;
            u16 bits = ((const u16*)source)[i];
            asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
            target[i] = value;
        }
#else  // int8 after a float32 scale
        float scale = float_at(source);
        for (u32 i = lane; i < dim; i += WARP) target[i] = scale * ((const signed char*)source)[4 + i];
#endif
    }
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) gather(Arguments a) {
    u32 lane = threadIdx.x % WARP, warp = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    u64 warps = (u64)gridDim.x * (THREADS / WARP);
    for (u64 base = (u64)warp * a.step; base < a.count; base += warps * a.step) {
        u64 i = base + lane;
        bool is_node = lane < a.step && i < a.count;
        u32 vertex = is_node ? a.n_id[i] : 0;
        u32 location = is_node && a.location ? a.location[vertex] : vertex;
        u32 mask = __ballot_sync(ALL, is_node && location < a.rows_here);
        if (mask == 0) continue;
        u32 source = lane_of(mask, lane), row = __shfl_sync(ALL, location, source);
        float* to = a.to + (base + source) * a.dim;
        write_rows(a.rows + (u64)row * a.stride, to, __popc(mask), a.dim, a.word_bytes);
    }
}

// Rows in mapped host memory, to be written to a batch.
struct Crossing {
    const u8* rows;      // `stride` bytes apart.
    const uint2* list;   // (row, index in the batch),
    const u32* number;   // of so many;
    const u32* targets;  // or, if this is not null, the index in the batch of each row,
    u32 count;           // of so many.
    u32 dim;
    float* to;
    u32 stride;
    u32 row_bytes;
    u32 word_bytes;  // That rows are copied by.
    u32 reserved;
};

// Whence and where to row `i` of those goes.
__device__ inline Piece look(const Crossing& a, u32 i) {
    uint2 found = a.targets ? make_uint2(i, a.targets[i]) : a.list[i];
    return {a.rows + (u64)found.x * a.stride, a.to + (u64)found.y * a.dim, 0, 0};
}

template <class Word>
__device__ inline void cross_by(const Crossing& a) {
    u32 lane = threadIdx.x % WARP, count = a.targets ? a.count : *a.number;
    auto find = [&](u32 row) { return look(a, row); };
#if ROW_TYPE == 0  // float32
    const u32 words = LOADS * WARP;  // Of a piece.
    auto write = [&](const u8* from, float* to, u32 piece) {
#pragma unroll
        for (u32 load = 0; load < LOADS; load++) {
            u32 i = load * WARP + lane, word = piece * words + i;
            if (word < a.row_bytes / sizeof(Word)) ((Word*)to)[word] = ((const Word*)from)[i];
        }
    };
#elif ROW_TYPE == 1  // float16
    const u32 halves = LOADS * WARP * sizeof(Word) / 2;  // Of a piece.
    auto write = [&](const u8* from, float* to, u32 piece) {
        for (u32 i = lane; i < halves; i += WARP) {
            u32 at = piece * halves + i;
            if (at >= a.dim) break;
            float value;
            u16 bits = ((const u16*)from)[i];
            asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
            to[at] = value;
        }
    };
#else  // int8 after a float32 scale
    const u32 bytes = LOADS * WARP * sizeof(Word);  // Of a piece.
    float scale = 0;                                // Of the row whose pieces come.
    auto write = [&](const u8* from, float* to, u32 piece) {
        if (piece == 0) scale = *(const float*)from;
        for (u32 i = lane; i < bytes; i += WARP) {
            u32 at = piece * bytes + i;
            if (at >= a.row_bytes) break;
            if (at >= sizeof(float)) to[at - sizeof(float)] = scale * ((const signed char*)from)[i];
        }
    };
#endif
#ifdef BULK
    if (sizeof(Word) == 16) return cross_by_bulk<ROW_TYPE == 0>(count, a.row_bytes, find, write);
#endif
    cross_by_words<sizeof(Word)>(count, a.row_bytes, find, write);
}

extern "C" __global__ void __launch_bounds__(CROSSING) cross_link(Crossing a) {
    switch (a.word_bytes) {
        case 16: return cross_by<uint4>(a);
        case 8: return cross_by<uint2>(a);
        case 4: return cross_by<u32>(a);
        default: return cross_by<u8>(a);
    }
}

struct Finding {
    const u32* location;
    const u32* n_id;
    uint2* found;      // (vertex or its row, index in the batch).
    u32* number;       // How many were found.
    const u32* count;  // Of n_id.
    const u32* rows;   // Of each vertex, to be found in place of it; or null.
};

// The nodes whose rows are in neither memory, in any order.
extern "C" __global__ void __launch_bounds__(THREADS) missing(Finding a) {
    u32 lane = threadIdx.x % WARP, count = *a.count;
    for (u64 base = (u64)blockIdx.x * THREADS; base < count; base += (u64)gridDim.x * THREADS) {
        u64 i = base + threadIdx.x;
        u32 vertex = i < count ? a.n_id[i] : 0;
        bool is_missing = i < count && a.location[vertex] == NOT_RESIDENT;
        u32 mask = __ballot_sync(~0u, is_missing), first = 0;
        if (lane == 0 && mask) first = atomicAdd(a.number, __popc(mask));
        first = __shfl_sync(~0u, first, 0);
        u32 before = __popc(mask & ((1u << lane) - 1));
        if (is_missing) a.found[first + before] = make_uint2(a.rows ? a.rows[vertex] : vertex, (u32)i);
    }
}

struct Tiers {
    const u32* location;
    const u32* n_id;
    const u32* count;  // Of n_id.
    u64* rows;         // Rows in host memory, then rows in neither memory.
    u32 device_count;
    u32 reserved;
};

// Adds the nodes whose rows are in host memory, and in neither memory, to counts.
extern "C" __global__ void __launch_bounds__(THREADS) count_tiers(Tiers a) {
    u32 lane = threadIdx.x % WARP, count = *a.count, host = 0, neither = 0;
    for (u64 base = (u64)blockIdx.x * THREADS; base < count; base += (u64)gridDim.x * THREADS) {
        u64 i = base + threadIdx.x;
        u32 location = i < count ? a.location[a.n_id[i]] : 0;
        bool is_missing = i < count && location == NOT_RESIDENT;
        neither += __popc(__ballot_sync(~0u, is_missing));
        host += __popc(__ballot_sync(~0u, i < count && !is_missing && location >= a.device_count));
    }
    if (lane == 0 && host) atomicAdd(a.rows, (u64)host);
    if (lane == 0 && neither) atomicAdd(a.rows + 1, (u64)neither);
}

struct Widening {
    const uint2* found;  // (any, index in the batch).
    const u32* count;    // Of those.
    float* to;
    u32 dim;
    u32 reserved;
};

// Rows as they are stored, each from where it begins in the batch on, to float32, in place: a warp a
// row, from the last values to the first. The float of a value begins no earlier than the value, so
// what a step overwrites was read by it, or before.
extern "C" __global__ void __launch_bounds__(THREADS) widen(Widening a) {
    u32 lane = threadIdx.x % WARP, warps = gridDim.x * (THREADS / WARP), count = *a.count;
    for (u32 i = (blockIdx.x * THREADS + threadIdx.x) / WARP; i < count; i += warps) {
        float* row = a.to + (u64)a.found[i].y * a.dim;
#if ROW_TYPE == 2
        float scale = *row;
#endif
        for (u32 step = (a.dim + WARP - 1) / WARP; step-- > 0;) {
            u32 at = step * WARP + lane;
            float value = 0;
#if ROW_TYPE == 0
            if (at < a.dim) value = row[at];
#elif ROW_TYPE == 1
            u16 bits = at < a.dim ? ((const u16*)row)[at] : 0;
            asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
#else
            if (at < a.dim) value = scale * ((const signed char*)row)[4 + at];
#endif
            __syncwarp();
            if (at < a.dim) row[at] = value;
            __syncwarp();
        }
    }
}
