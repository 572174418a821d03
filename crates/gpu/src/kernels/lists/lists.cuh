// Neighbour lists in device memory: those of vertex v are targets[starts[v]] up to ends[v]. But for
// labels, they ascend, each once and without v.

static const u32 THREADS = 256;
static const u32 BOTH = 1u << 31;  // Of a target that arcs lead to and from, in lists that say so.

struct Lists {
    const u32* starts;
    u32* ends;
    u32* targets;
    u32 vertices;
    u32 reserved;
};

// The warp's number in the grid, and how many there are.
__device__ inline u32 warp_number() { return (blockIdx.x * THREADS + threadIdx.x) / WARP; }
__device__ inline u32 warps() { return gridDim.x * (THREADS / WARP); }

// The vertex of a target, which has BOTH in some lists that say so (MARKED); those of others have no such bit that
// would not be the vertex's own.
template <bool MARKED> __device__ inline u32 plain(u32 target) { return MARKED ? target & ~BOTH : target; }

// The index of the first of `count` targets, which ascend, that is not below w; `count` if all are.
template <bool MARKED> __device__ inline u32 first_from(const u32* list, u32 count, u32 w) {
    u32 low = 0;
    while (count > 0) {
        u32 half = count / 2;
        if (plain<MARKED>(list[low + half]) < w) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

// The threads that go over one vertex's list: a warp or a block.
template <u32 WIDTH> struct Group {
    __device__ static u32 number() { return (blockIdx.x * THREADS + threadIdx.x) / WIDTH; }
    __device__ static u32 count() { return gridDim.x * (THREADS / WIDTH); }
    __device__ static u32 lane() { return threadIdx.x % WIDTH; }
    __device__ static u32 in_block() { return threadIdx.x / WIDTH; }
    __device__ static void wait() {
        if (WIDTH == WARP) {
            __syncwarp();
        } else {
            __syncthreads();
        }
    }
};
