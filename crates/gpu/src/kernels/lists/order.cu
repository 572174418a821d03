// Lists as passes leave them: in any order, with arcs of one neighbour several times, and with loops.
//
// Sorting is bitonic (Batcher, 1968), by comparators that all leave the lesser value in front: a list of any length is
// sorted as if greatest values followed it. A warp sorts a short list, a block a long one, which it has in shared
// memory chunk by chunk where what is compared lies in one.

static const u32 SHORT = 512;     // Targets of a list that a warp sorts.
static const u32 CHUNK_LOG = 12;  // Of the targets that a block has in shared memory.
static const u32 CHUNK = 1 << CHUNK_LOG;

// Counts the lists that do not end where the next begins, or where all do.
extern "C" __global__ void __launch_bounds__(THREADS) check_filled(Lists l, u32 room, u32* others) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v >= l.vertices) return;
    u32 end = v + 1 < l.vertices ? l.starts[v + 1] : room;
    if (l.ends[v] != end) atomicAdd(others, 1u);
}

// Collects the vertices of more than `few` neighbours, as far as there is room, and counts all.
extern "C" __global__ void __launch_bounds__(THREADS) collect_longer(
    Lists l, u32 few, u32* vertices, u32 room, u32* count) {
    u32 v = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x % WARP;
    bool is_longer = v < l.vertices && l.ends[v] - l.starts[v] > few;
    u32 longer = __ballot_sync(ALL, is_longer), first = 0;
    if (lane == 0 && longer) first = atomicAdd(count, __popc(longer));
    u32 at = __shfl_sync(ALL, first, 0) + __popc(longer & ((1u << lane) - 1));
    if (is_longer && at < room) vertices[at] = v;
}

__device__ inline void compare(u32* values, u32 count, u32 i, u32 j) {
    if (j >= count) return;
    u32 a = values[i], b = values[j];
    if (a <= b) return;
    values[i] = b;
    values[j] = a;
}

// Compares the halves of each 2^log values, the second from its end.
template <u32 WIDTH> __device__ inline void flip(u32* values, u32 count, u32 log) {
    u32 half = 1u << (log - 1);
    for (u32 p = Group<WIDTH>::lane();; p += WIDTH) {
        u32 base = p >> (log - 1) << log, at = p & (half - 1);
        if (base + at >= count) break;
        compare(values, count, base + at, base + 2 * half - 1 - at);
    }
    Group<WIDTH>::wait();
}

// Compares values 2^log apart.
template <u32 WIDTH> __device__ inline void disperse(u32* values, u32 count, u32 log) {
    u32 stride = 1u << log;
    for (u32 p = Group<WIDTH>::lane();; p += WIDTH) {
        u32 i = (p >> log << (log + 1)) + (p & (stride - 1));
        if (i >= count) break;
        compare(values, count, i, i + stride);
    }
    Group<WIDTH>::wait();
}

template <u32 WIDTH> __device__ inline void sort(u32* values, u32 count) {
    for (u32 log = 1; 1u << (log - 1) < count; log++) {
        flip<WIDTH>(values, count, log);
        for (u32 stride = log - 1; stride > 0; stride--) disperse<WIDTH>(values, count, stride - 1);
    }
}

template <u32 WIDTH> __device__ inline void copy(u32* to, const u32* from, u32 count) {
    for (u32 i = Group<WIDTH>::lane(); i < count; i += WIDTH) to[i] = from[i];
    Group<WIDTH>::wait();
}

extern "C" __global__ void __launch_bounds__(THREADS) sort_short(Lists l) {
    __shared__ u32 values[THREADS / WARP][SHORT];
    u32* own = values[threadIdx.x / WARP];
    for (u32 v = warp_number(); v < l.vertices; v += warps()) {
        u32 start = l.starts[v], count = l.ends[v] - start;
        if (count < 2 || count > SHORT) continue;
        copy<WARP>(own, l.targets + start, count);
        sort<WARP>(own, count);
        copy<WARP>(l.targets + start, own, count);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) sort_long(
    Lists l, const u32* vertices, u32 number) {
    __shared__ u32 chunk[CHUNK];
    for (u32 i = blockIdx.x; i < number; i += gridDim.x) {
        u32 start = l.starts[vertices[i]], count = l.ends[vertices[i]] - start;
        u32* list = l.targets + start;
        for (u32 log = CHUNK_LOG; log == CHUNK_LOG || 1u << (log - 1) < count; log++) {
            if (log > CHUNK_LOG) flip<THREADS>(list, count, log);
            for (u32 stride = log - 1; stride > CHUNK_LOG; stride--) {
                disperse<THREADS>(list, count, stride - 1);
            }
            for (u32 begin = 0; begin < count; begin += CHUNK) {
                u32 own = min(count - begin, CHUNK);
                copy<THREADS>(chunk, list + begin, own);
                if (log == CHUNK_LOG) {
                    sort<THREADS>(chunk, own);
                } else {
                    for (u32 s = CHUNK_LOG; s > 0; s--) disperse<THREADS>(chunk, own, s - 1);
                }
                copy<THREADS>(list + begin, chunk, own);
            }
        }
    }
}

// How many neighbours each vertex has.
extern "C" __global__ void __launch_bounds__(THREADS) count_neighbors(Lists l, u32* neighbors) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v < l.vertices) neighbors[v] = l.ends[v] - l.starts[v];
}

// Leaves in each list, which ascends, every target once, without the vertex itself unless `own`; counts what it left
// out. Targets have `sides` more bits than vertices. A warp a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) keep_distinct(
    Lists l, u32 sides, u32 own, u32* left_out) {
    u32 lane = threadIdx.x % WARP, out = 0;
    for (u32 v = warp_number(); v < l.vertices; v += warps()) {
        u32 start = l.starts[v], end = l.ends[v], kept = start, last = 0;
        for (u32 at = start; at < end; at += WARP) {
            u32 w = at + lane < end ? l.targets[at + lane] : ALL;
            u32 before = __shfl_up_sync(ALL, w, 1);
            if (lane == 0) before = last;
            last = __shfl_sync(ALL, w, WARP - 1);
            bool is_new = at + lane == start || w != before;
            bool is_kept = at + lane < end && is_new && (own || w >> sides != v);
            u32 keeps = __ballot_sync(ALL, is_kept);
            // What is written was read already: by this step, or one before.
            if (is_kept) l.targets[kept + __popc(keeps & ((1u << lane) - 1))] = w;
            kept += __popc(keeps);
            __syncwarp();
        }
        if (lane == 0) l.ends[v] = kept;
        out += end - kept;
    }
    if (lane == 0 && out) atomicAdd(left_out, out);
}

// Makes one target of the two sides of a neighbour, in lists whose targets are distinct: the neighbour, and BOTH if arcs
// lead there and back. A warp a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) join_sides(Lists l) {
    u32 lane = threadIdx.x % WARP;
    for (u32 v = warp_number(); v < l.vertices; v += warps()) {
        u32 start = l.starts[v], end = l.ends[v], kept = start;
        bool was_first = false;  // The last target, of a neighbour of two.
        for (u32 at = start; at < end; at += WARP) {
            u32 i = at + lane, w = i < end ? l.targets[i] >> 1 : ALL;
            bool has_next = i + 1 < end && l.targets[i + 1] >> 1 == w;
            bool is_second = __shfl_up_sync(ALL, (u32)has_next, 1);
            if (lane == 0) is_second = was_first;
            was_first = __shfl_sync(ALL, (u32)has_next, WARP - 1);
            bool is_kept = i < end && !is_second;
            u32 keeps = __ballot_sync(ALL, is_kept);
            // What is written was read already: by this step, or one before.
            u32 target = has_next ? w | BOTH : w;
            if (is_kept) l.targets[kept + __popc(keeps & ((1u << lane) - 1))] = target;
            kept += __popc(keeps);
            __syncwarp();
        }
        if (lane == 0) l.ends[v] = kept;
    }
}

// Counts in lists of both sides, whose targets are distinct, the neighbours that arcs lead to and from, of each vertex;
// and of all the targets that arcs lead to. A warp a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) count_mutual(Lists l, u32* mutual, u64* out) {
    u32 lane = threadIdx.x % WARP, leaving = 0;
    for (u32 v = warp_number(); v < l.vertices; v += warps()) {
        u32 start = l.starts[v], end = l.ends[v], both = 0;
        for (u32 i = start + lane; i < end; i += WARP) {
            u32 target = l.targets[i];
            leaving += !(target & 1);
            both += i + 1 < end && !(target & 1) && l.targets[i + 1] == target + 1;
        }
        both = __reduce_add_sync(ALL, both);
        if (lane == 0) mutual[v] = both;
    }
    leaving = __reduce_add_sync(ALL, leaving);
    if (lane == 0 && leaving) atomicAdd(out, (u64)leaving);
}
