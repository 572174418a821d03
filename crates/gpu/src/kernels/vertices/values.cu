// Values of vertices, of 4 or 8 bytes each: filling, and moving from one order of vertices to another.

static const u32 THREADS = 256;

struct Fill {
    void* to;
    u64 value;  // Its low bytes.
    u64 count;
    u32 value_bytes;
    u32 unused;
};

extern "C" __global__ void __launch_bounds__(THREADS) fill(Fill f) {
    u64 i = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= f.count) return;
    if (f.value_bytes == 4) {
        ((u32*)f.to)[i] = (u32)f.value;
    } else {
        ((u64*)f.to)[i] = f.value;
    }
}

struct Move {
    const void* from;
    void* to;
    const u32* positions;  // Where each value goes.
    u32 count;
    u32 places;
    u32 value_bytes;
    u32 unused;
};

// Reads 8 or 12 bytes a value in order, and writes 4 or 8 anywhere. CPU twin: Graph::to_user_order.
extern "C" __global__ void __launch_bounds__(THREADS) place(Move m) {
    u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= m.count) return;
    u32 position = m.positions[i];
    if (position >= m.places) return;
    if (m.value_bytes == 4) {
        ((u32*)m.to)[position] = ((const u32*)m.from)[i];
    } else {
        ((u64*)m.to)[position] = ((const u64*)m.from)[i];
    }
}
