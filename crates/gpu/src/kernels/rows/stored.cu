// Pages that were wanted are so no more.

static const u32 THREADS = 256;

extern "C" __global__ void __launch_bounds__(THREADS) forget_pages(Stored stored) {
    u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < *stored.count) stored.slots[stored.wanted[i].row] = NONE;
}
