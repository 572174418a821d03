// What the lists of two vertices have in common, for many pairs.
//
// CPU twin: analytics::structure::similarity.

static const u32 TAKEN = 4;     // Pairs that a warp takes together.
static const u32 SHORT = 1024;  // Targets of the shorter list that a warp looks for; a block looks for more.
static const u32 WARPS = THREADS / WARP;

struct Pairs {
    const u32* ends;       // Two vertices a pair.
    const double* values;  // Of each vertex, what it counts as a common neighbour; null where each counts 1.
    double* sums;
    u32* neighbors;  // How many each of a pair's vertices has.
    u32* left;       // The pairs that are left to blocks.
    u32* counts;     // The first pair that no warp took, and how many are left to blocks.
    u32 count;
    u32 reserved;
};

// The lists of a pair: each of the shorter one is looked for in the longer one.
struct Both {
    const u32* each;
    const u32* in;
    u32 steps, among;
};

__device__ inline Both both_of(const Lists& l, const Pairs& p, u32 pair) {
    u32 a = p.ends[2 * pair], b = p.ends[2 * pair + 1];
    u32 of_a = l.ends[a] - l.starts[a], of_b = l.ends[b] - l.starts[b];
    const u32 *at_a = l.targets + l.starts[a], *at_b = l.targets + l.starts[b];
    return of_a <= of_b ? Both{at_a, at_b, of_a, of_b} : Both{at_b, at_a, of_b, of_a};
}

// The sum over what is in common of the shorter list from `begin` to `end`, by a warp, each of whose lanes has it.
__device__ inline double common(const Pairs& p, const Both& both, u32 begin, u32 end) {
    u32 lane = threadIdx.x % WARP, found = 0, low = 0;
    double sum = 0;
    for (u32 at = begin; at < end && low < both.among; at += WARP) {
        bool is_there = at + lane < end;
        u32 w = both.each[is_there ? at + lane : end - 1];
        u32 place = low + first_from<false>(both.in + low, both.among - low, w);
        if (is_there && place < both.among && both.in[place] == w) {
            if (p.values) sum += p.values[w]; else found++;
        }
        // Both ascend: what comes is not before what the last lane was looking for.
        low = __shfl_sync(ALL, place, WARP - 1);
    }
    if (!p.values) return __reduce_add_sync(ALL, found);
    for (u32 half = WARP / 2; half; half /= 2) sum += __shfl_xor_sync(ALL, sum, half);
    return sum;
}

// Compares pairs, a warp a pair, and leaves those of two long lists to blocks.
extern "C" __global__ void __launch_bounds__(THREADS) compare_pairs(Lists l, Pairs p) {
    u32 lane = threadIdx.x % WARP;
    while (true) {
        u32 begin = lane == 0 ? atomicAdd(p.counts, TAKEN) : 0;
        begin = __shfl_sync(ALL, begin, 0);
        if (begin >= p.count) return;
        for (u32 pair = begin; pair < min(begin + TAKEN, p.count); pair++) {
            Both both = both_of(l, p, pair);
            bool is_short = both.steps <= SHORT;
            double sum = is_short ? common(p, both, 0, both.steps) : 0;
            if (lane != 0) continue;
            if (!is_short) p.left[atomicAdd(p.counts + 1, 1u)] = pair;
            p.sums[pair] = sum;
            for (u32 i = 0; i < 2; i++) {
                u32 v = p.ends[2 * pair + i];
                p.neighbors[2 * pair + i] = l.ends[v] - l.starts[v];
            }
        }
    }
}

// Compares the pairs that are left, a block a pair, each of whose warps has a part of the shorter list.
extern "C" __global__ void __launch_bounds__(THREADS) compare_long_pairs(Lists l, Pairs p) {
    __shared__ double sums[WARPS];
    u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (u32 i = blockIdx.x; i < p.counts[1]; i += gridDim.x) {
        Both both = both_of(l, p, p.left[i]);
        u32 part = (both.steps + WARPS - 1) / WARPS, begin = min(warp * part, both.steps);
        double sum = common(p, both, begin, min(begin + part, both.steps));
        if (lane == 0) sums[warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (u32 w = 1; w < WARPS; w++) sum += sums[w];
            p.sums[p.left[i]] = sum;
        }
        __syncthreads();
    }
}
