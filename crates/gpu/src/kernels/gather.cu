// Rows of features to their indices in a batch, from device or mapped host memory.
//
// A warp a row (or a row's part): lanes load 16 bytes each where rows allow it, so a row of 512
// bytes is one transaction a warp, and a transfer over the link is as long as the row. int8 and
// float16 become float32 on the way. CPU twin: sampler::gather.

static const u32 THREADS = 256;
static const u32 NOT_RESIDENT = 0xffffffff;  // The location of a row that is in neither memory.
static const u32 AHEAD = 4;  // Loads of a lane that are in flight together.

struct Arguments {
    const u8* device_rows;  // Rows in device memory, `stride` bytes apart.
    const u8* host_rows;    // Rows in mapped host memory.
    const u32* location;    // Of each vertex's row: below `device_count` in device memory,
                            // NOT_RESIDENT in neither memory, else in host memory, minus
                            // `device_count`; or null: a vertex's row is its number.
    const u32* n_id;
    float* to;
    u32 device_count;
    u32 count;
    u32 dim;
    u32 stride;
};

__device__ inline const u8* row_of(const Arguments& a, u32 location) {
    bool here = location < a.device_count;
    return (here ? a.device_rows : a.host_rows) + (u64)(here ? location : location - a.device_count) * a.stride;
}

__device__ inline void copy_row(const u8* row, float* to, u32 dim, u32 lane) {
#if ROW_TYPE == 0  // float32
    if (((u64)row | (u64)to | dim * 4) % 16 == 0) {
        const float4* from = (const float4*)row;
        float4* into = (float4*)to;
        for (u32 first = lane; first < dim / 4; first += AHEAD * WARP) {
            // Loads before stores: the compiler cannot know that they do not overlap.
            float4 values[AHEAD];
#pragma unroll
            for (u32 u = 0; u < AHEAD; u++) {
                u32 i = first + u * WARP;
                if (i < dim / 4) values[u] = __ldcs(from + i);
            }
#pragma unroll
            for (u32 u = 0; u < AHEAD; u++) {
                u32 i = first + u * WARP;
                if (i < dim / 4) __stcs(into + i, values[u]);
            }
        }
    } else {
        for (u32 i = lane; i < dim; i += WARP) to[i] = __ldcs((const float*)row + i);
    }
#elif ROW_TYPE == 1  // float16
    for (u32 i = lane; i < dim; i += WARP) {
        float value;
        u16 bits = ((const u16*)row)[i];
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        to[i] = value;
    }
#else  // int8 after a float32 scale
    float scale = *(const float*)row;
    for (u32 i = lane; i < dim; i += WARP) to[i] = scale * ((const signed char*)row)[4 + i];
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) gather(Arguments a) {
    u32 lane = threadIdx.x % WARP, warps = gridDim.x * (THREADS / WARP);
    for (u32 i = (blockIdx.x * THREADS + threadIdx.x) / WARP; i < a.count; i += warps) {
        u32 vertex = a.n_id[i], location = a.location ? a.location[vertex] : vertex;
        if (location == NOT_RESIDENT) continue;
        copy_row(row_of(a, location), a.to + (u64)i * a.dim, a.dim, lane);
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

struct Spreading {
    const u8* rows;  // In mapped host memory, `stride` bytes apart.
    const u32* targets;
    float* to;
    u64 count;
    u32 dim;
    u32 stride;
};

// Rows that were read, each to its target in the batch.
extern "C" __global__ void __launch_bounds__(THREADS) spread(Spreading a) {
    u32 lane = threadIdx.x % WARP, warps = gridDim.x * (THREADS / WARP);
    for (u64 i = (blockIdx.x * THREADS + threadIdx.x) / WARP; i < a.count; i += warps) {
        copy_row(a.rows + i * a.stride, a.to + (u64)a.targets[i] * a.dim, a.dim, lane);
    }
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
