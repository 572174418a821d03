// HyperBall: a round makes each vertex's counter the union of its own and its neighbours' (HyperLogLog, a byte a register).
//
// A word has four registers. Of counters with fewer words than a group has threads, several neighbours' are taken at once.
// CPU twin: analytics::paths::closeness.

static const u32 SHORT = 512;  // Neighbours that a warp goes over.
static const u32 WARPS = THREADS / WARP;

struct Balls {
    const u32* now;
    u32* next;
    const u32* changed;  // A bit for each vertex whose counter rose in the last round.
    u32* fresh;
    double* sizes;
    double* sums;
    u32* count;
    const double* powers;  // 2 to the power of minus each rank.
    double alpha;
    u32 registers;
    u32 round;
};

// What a group's threads find of one vertex.
struct Found {
    double sum;
    u32 zeros;
    u32 rose;
};

__device__ inline void add(Found& to, double sum, u32 zeros, u32 rose) {
    to.sum += sum;
    to.zeros += zeros;
    to.rose |= rose;
}

template <u32 WIDTH> __device__ void unite(Lists l, Balls b, u32 v) {
    __shared__ u32 most_of[WARPS][WARP];
    __shared__ Found found_of[WARPS];
    u32 thread = threadIdx.x % WIDTH, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    u32 words = b.registers / 4, end = l.ends[v];
    bool shares = words < WIDTH;
    u32 abreast = shares ? WIDTH / words : 1, place = shares ? thread / words : 0;
    Found found = {0, 0, 0};
    for (u32 first = 0; first < words; first += WIDTH) {
        u32 word = first + (shares ? thread % words : thread);
        u32 own = b.now[(u64)v * words + word], most = own;
        for (u32 i = l.starts[v] + place; i < end; i += abreast) {
            u32 u = l.targets[i];
            if (b.changed[u / 32] >> u % 32 & 1) most = __vmaxu4(most, b.now[(u64)u * words + word]);
        }
        for (u32 by = words; by < WARP; by *= 2) most = __vmaxu4(most, __shfl_xor_sync(ALL, most, by));
        if (shares && WIDTH != WARP) {
            most_of[warp][lane] = most;
            __syncthreads();
            for (u32 other = 0; other < WARPS; other++) {
                if ((other + WARPS - warp) * WARP % words == 0) most = __vmaxu4(most, most_of[other][lane]);
            }
            __syncthreads();
        }
        if (place == 0) {
            b.next[(u64)v * words + word] = most;
            for (u32 byte = 0; byte < 4; byte++) {
                u32 rank = most >> byte * 8 & 0xff;
                add(found, b.powers[rank < 64 ? rank : 64], rank == 0, 0);
            }
            found.rose |= most != own;
        }
    }
#pragma unroll
    for (u32 by = WARP / 2; by; by /= 2) {
        double sum = __shfl_xor_sync(ALL, found.sum, by);
        u32 zeros = __shfl_xor_sync(ALL, found.zeros, by), rose = __shfl_xor_sync(ALL, found.rose, by);
        add(found, sum, zeros, rose);
    }
    if (WIDTH != WARP) {
        if (lane == 0) found_of[warp] = found;
        __syncthreads();
        if (thread == 0) {
            for (u32 other = 1; other < WARPS; other++) {
                add(found, found_of[other].sum, found_of[other].zeros, found_of[other].rose);
            }
        }
        __syncthreads();
    }
    if (thread != 0 || !found.rose) return;
    atomicOr(b.fresh + v / 32, 1u << v % 32);
    atomicAdd(b.count, 1u);
    double m = b.registers, raw = b.alpha * m * m / found.sum;
    double size = raw <= 2.5 * m && found.zeros ? m * log(m / found.zeros) : raw;
    double before = b.sizes[v];
    size = size > before ? size : before;
    b.sizes[v] = size;
    b.sums[v] += (size - before) / b.round;
}

// Vertices of few neighbours. A warp a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) unite_short(Lists l, Balls b) {
    for (u32 v = warp_number(); v < l.vertices; v += warps()) {
        if (l.ends[v] - l.starts[v] <= SHORT) unite<WARP>(l, b, v);
        __syncwarp();
    }
}

// `vertices`, of more neighbours. A block a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) unite_long(Lists l, Balls b, const u32* vertices, u32 count) {
    for (u32 at = blockIdx.x; at < count; at += gridDim.x) unite<THREADS>(l, b, vertices[at]);
}

// Sums the sizes of balls: a part a warp.
extern "C" __global__ void __launch_bounds__(THREADS) sum_sizes(
    const double* sizes, u32 vertices, double* parts) {
    double sum = 0.0;
    for (u64 v = blockIdx.x * THREADS + threadIdx.x; v < vertices; v += gridDim.x * THREADS) {
        sum += sizes[v];
    }
    for (u32 by = WARP / 2; by; by /= 2) sum += __shfl_xor_sync(ALL, sum, by);
    if (threadIdx.x % WARP == 0) parts[warp_number()] = sum;
}
