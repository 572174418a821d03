// The rows of a batch that are in host memory, listed by parts of that memory. Reads at random places all
// over it wait for translations of addresses, of which a GPU keeps too few for some gibibytes.

static const u32 LISTING = 512;              // Threads of a block.
static const u32 PARTS = 1024;               // Of host memory, at most.
static const u32 NOT_RESIDENT = 0xffffffff;  // The location of a row that is in neither memory.

struct Ordering {
    const u32* location;  // Of each vertex's row: below `before` it is in device memory; NOT_RESIDENT: in
                          // neither memory; else in host memory, behind those numbers. Or null: a vertex's
                          // row is its number.
    const u32* n_id;
    uint2* list;  // (row in host memory, index in the batch).
    u32* ends;    // Of each part of the list, 0 before `count_parts`; then the number of rows.
    u32 before;
    u32 count;  // Of n_id.
    u32 shift;  // A part has 2^shift rows.
    u32 reserved;
};

// The row in host memory of node `i`, or NOT_RESIDENT.
__device__ inline u32 host_row(const Ordering& a, u64 i) {
    u32 vertex = a.n_id[i], location = a.location ? a.location[vertex] : vertex;
    return location != NOT_RESIDENT && location >= a.before ? location - a.before : NOT_RESIDENT;
}

// Counts the block's rows of each part.
__device__ inline void count_own(const Ordering& a, u32 (&counts)[PARTS]) {
    for (u32 part = threadIdx.x; part < PARTS; part += LISTING) counts[part] = 0;
    __syncthreads();
    for (u64 i = (u64)blockIdx.x * LISTING + threadIdx.x; i < a.count; i += (u64)gridDim.x * LISTING) {
        u32 row = host_row(a, i);
        if (row != NOT_RESIDENT) atomicAdd(counts + (row >> a.shift), 1u);
    }
    __syncthreads();
}

// Adds the rows of each part to its end.
extern "C" __global__ void __launch_bounds__(LISTING) count_parts(Ordering a) {
    __shared__ u32 counts[PARTS];
    count_own(a, counts);
    for (u32 part = threadIdx.x; part < PARTS; part += LISTING) {
        if (counts[part]) atomicAdd(a.ends + part, counts[part]);
    }
}

// Makes each part's number of rows the place where it begins, by one block of a thread a part.
extern "C" __global__ void __launch_bounds__(PARTS) begin_parts(Ordering a) {
    __shared__ u32 sums[PARTS / WARP];
    u32 part = threadIdx.x, lane = part % WARP, own = a.ends[part], sum = own;
#pragma unroll
    for (u32 by = 1; by < WARP; by *= 2) {
        u32 below = __shfl_up_sync(ALL, sum, by);
        if (lane >= by) sum += below;
    }
    if (lane == WARP - 1) sums[part / WARP] = sum;
    __syncthreads();
    for (u32 warp = 0; warp < part / WARP; warp++) sum += sums[warp];
    a.ends[part] = sum - own;
    if (part == PARTS - 1) a.ends[PARTS] = sum;
}

// Lists the rows: each part from where it begins to its end, in any order.
extern "C" __global__ void __launch_bounds__(LISTING) list_parts(Ordering a) {
    __shared__ u32 places[PARTS];
    count_own(a, places);
    for (u32 part = threadIdx.x; part < PARTS; part += LISTING) {
        if (places[part]) places[part] = atomicAdd(a.ends + part, places[part]);
    }
    __syncthreads();
    for (u64 i = (u64)blockIdx.x * LISTING + threadIdx.x; i < a.count; i += (u64)gridDim.x * LISTING) {
        u32 row = host_row(a, i);
        if (row != NOT_RESIDENT) a.list[atomicAdd(places + (row >> a.shift), 1u)] = make_uint2(row, (u32)i);
    }
}
