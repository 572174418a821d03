// The sum over a block's threads, given to all of them.

static const u32 THREADS = 256;

template <class T>
__device__ inline T sum_block(T value) {
    __shared__ T parts[THREADS / WARP];
    for (u32 step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    value = 0;
    for (u32 i = 0; i < THREADS / WARP; i++) value += parts[i];
    __syncthreads();
    return value;
}
