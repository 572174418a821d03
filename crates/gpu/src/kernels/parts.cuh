// What is wanted of host memory, listed by parts of that memory. Reads at random places all over it wait
// for translations of addresses, of which a GPU keeps too few for some gibibytes. Rust: parts.

static const u32 LISTING = 512;         // Threads of a block.
static const u32 PARTS = 1024;          // Of host memory, at most.
static const u32 NOWHERE = 0xffffffff;  // The part of an item that is not in host memory.

// Counts the block's items of each part: `part_of(i)` is that of an item from `first` to `end`.
template <class PartOf>
__device__ inline void count_own(u32 first, u32 end, PartOf part_of, u32 (&counts)[PARTS]) {
    for (u32 part = threadIdx.x; part < PARTS; part += LISTING) counts[part] = 0;
    __syncthreads();
    for (u64 i = (u64)first + blockIdx.x * LISTING + threadIdx.x; i < end; i += (u64)gridDim.x * LISTING) {
        u32 part = part_of((u32)i);
        if (part != NOWHERE) atomicAdd(counts + part, 1u);
    }
    __syncthreads();
}

// Adds the items of each part to its end, which is 0 before.
template <class PartOf>
__device__ inline void count_by_parts(u32 first, u32 end, u32* ends, PartOf part_of) {
    __shared__ u32 counts[PARTS];
    count_own(first, end, part_of, counts);
    for (u32 part = threadIdx.x; part < PARTS; part += LISTING) {
        if (counts[part]) atomicAdd(ends + part, counts[part]);
    }
}

// Makes each part's number of items the place where it begins, by one block of a thread a part; the number
// of all comes behind.
extern "C" __global__ void __launch_bounds__(PARTS) begin_parts(u32* ends) {
    __shared__ u32 sums[PARTS / WARP];
    u32 part = threadIdx.x, lane = part % WARP, own = ends[part], sum = own;
#pragma unroll
    for (u32 by = 1; by < WARP; by *= 2) {
        u32 below = __shfl_up_sync(ALL, sum, by);
        if (lane >= by) sum += below;
    }
    if (lane == WARP - 1) sums[part / WARP] = sum;
    __syncthreads();
    for (u32 warp = 0; warp < part / WARP; warp++) sum += sums[warp];
    ends[part] = sum - own;
    if (part == PARTS - 1) ends[PARTS] = sum;
}

// Lists the items: `put(place, i)` puts one to its place. Each part is listed from where it begins to its
// end, in any order.
template <class PartOf, class Put>
__device__ inline void list_by_parts(u32 first, u32 end, u32* ends, PartOf part_of, Put put) {
    __shared__ u32 places[PARTS];
    count_own(first, end, part_of, places);
    for (u32 part = threadIdx.x; part < PARTS; part += LISTING) {
        if (places[part]) places[part] = atomicAdd(ends + part, places[part]);
    }
    __syncthreads();
    for (u64 i = (u64)first + blockIdx.x * LISTING + threadIdx.x; i < end; i += (u64)gridDim.x * LISTING) {
        u32 part = part_of((u32)i);
        if (part != NOWHERE) put(atomicAdd(places + part, 1u), (u32)i);
    }
}
