// Greedy choices in an order of vertices: each is made once all neighbours that come before have made theirs.
//
// `waits` are the neighbours before a vertex that have not. CPU twin: analytics::structure::greedy.

static const u32 OUT = 0;
static const u32 IN = 1;
static const u32 COLORS = 1024;  // Colours that are looked at together.

struct Greedy {
    const u64* priority;
    u32* state;
    u32* waits;
};

__device__ inline bool is_before(Greedy g, u32 u, u32 v) {
    u64 a = g.priority[u], b = g.priority[v];
    return a > b || (a == b && u > v);
}

// Counts the neighbours before each vertex, and puts those of none in the queue. A warp a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) count_before(Lists l, Queue q, Greedy g) {
    u32 lane = threadIdx.x % WARP;
    for (u32 v = warp_number(); v < l.vertices; v += warps()) {
        u32 before = 0, end = l.ends[v];
        for (u32 i = l.starts[v] + lane; i < end; i += WARP) before += is_before(g, l.targets[i], v);
#pragma unroll
        for (u32 by = WARP / 2; by; by /= 2) before += __shfl_xor_sync(ALL, before, by);
        if (lane == 0) {
            g.waits[v] = before;
            if (before == 0) push(q, l, v);
        }
    }
}

// Lets the neighbours after `v` wait for one less. Its choice is seen by the next launch, which is theirs.
template <u32 WIDTH> __device__ void release(Lists l, Queue q, Greedy g, u32 v) {
    u32 end = l.ends[v];
    for (u32 i = l.starts[v] + Group<WIDTH>::lane(); i < end; i += WIDTH) {
        u32 u = l.targets[i];
        if (!is_before(g, u, v) && atomicAdd(g.waits + u, ~0u) == 1) push(q, l, u);
    }
}

// Chooses the vertices that have no neighbour before them that was chosen.
template <u32 WIDTH> __device__ void choose(Lists l, Queue q, Greedy g, u32 from, u32 to) {
    __shared__ u32 taken[THREADS / WIDTH];
    u32 own = Group<WIDTH>::in_block(), lane = Group<WIDTH>::lane();
    for (u32 at = from + Group<WIDTH>::number(); at < to; at += Group<WIDTH>::count()) {
        u32 v = item<WIDTH>(q, at), end = l.ends[v];
        if (lane == 0) taken[own] = 0;
        Group<WIDTH>::wait();
        for (u32 i = l.starts[v] + lane; i < end; i += WIDTH) {
            u32 u = l.targets[i];
            if (is_before(g, u, v) && g.state[u] == IN) taken[own] = 1;
        }
        Group<WIDTH>::wait();
        if (lane == 0) g.state[v] = taken[own] ? OUT : IN;
        release<WIDTH>(l, q, g, v);
        Group<WIDTH>::wait();
    }
}

// Gives vertices the least colour that no neighbour before them has.
template <u32 WIDTH> __device__ void color(Lists l, Queue q, Greedy g, u32 from, u32 to) {
    __shared__ u32 used[THREADS / WIDTH][COLORS / 32];
    __shared__ u32 least[THREADS / WIDTH];
    u32 own = Group<WIDTH>::in_block(), lane = Group<WIDTH>::lane();
    for (u32 at = from + Group<WIDTH>::number(); at < to; at += Group<WIDTH>::count()) {
        u32 v = item<WIDTH>(q, at), end = l.ends[v];
        u32 found = ~0u;
        for (u32 first = 0; found == ~0u; first += COLORS) {
            for (u32 word = lane; word < COLORS / 32; word += WIDTH) used[own][word] = 0;
            if (lane == 0) least[own] = ~0u;
            Group<WIDTH>::wait();
            for (u32 i = l.starts[v] + lane; i < end; i += WIDTH) {
                u32 u = l.targets[i];
                if (!is_before(g, u, v)) continue;
                u32 other = g.state[u] - first;
                if (other < COLORS) atomicOr(&used[own][other / 32], 1u << other % 32);
            }
            Group<WIDTH>::wait();
            for (u32 word = lane; word < COLORS / 32; word += WIDTH) {
                u32 left = ~used[own][word];
                if (left) atomicMin(&least[own], first + word * 32 + __ffs(left) - 1);
            }
            Group<WIDTH>::wait();
            found = least[own];
            Group<WIDTH>::wait();
        }
        if (lane == 0) g.state[v] = found;
        release<WIDTH>(l, q, g, v);
        Group<WIDTH>::wait();
    }
}

// Notes where the queue ends: one more round may be decided then.
extern "C" __global__ void __launch_bounds__(THREADS) note_ends(Queue q, u32* ends) {
    if (blockIdx.x == 0 && threadIdx.x < 2) ends[threadIdx.x] = q.counts[threadIdx.x];
}

// A round: the vertices in the queue between the ends that were noted before it and those noted last.
extern "C" __global__ void __launch_bounds__(THREADS) choose_short(
    Lists l, Queue q, Greedy g, const u32* before, const u32* last) {
    choose<WARP>(l, q, g, before[0], last[0]);
}
extern "C" __global__ void __launch_bounds__(THREADS) choose_long(
    Lists l, Queue q, Greedy g, const u32* before, const u32* last) {
    choose<THREADS>(l, q, g, before[1], last[1]);
}
extern "C" __global__ void __launch_bounds__(THREADS) color_short(
    Lists l, Queue q, Greedy g, const u32* before, const u32* last) {
    color<WARP>(l, q, g, before[0], last[0]);
}
extern "C" __global__ void __launch_bounds__(THREADS) color_long(
    Lists l, Queue q, Greedy g, const u32* before, const u32* last) {
    color<THREADS>(l, q, g, before[1], last[1]);
}
