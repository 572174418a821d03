// Triangles: at each vertex, the lists of its neighbours of higher rank against its own.
//
// CPU twin: analytics::structure::triangles.

// How many arcs the edge to a target is, in lists whose edges count arcs.
template <bool ARCS> __device__ inline u32 arcs_of(u32 target) { return ARCS ? 1 + (target >> 31) : 1; }

// Where vertices come by descending degree: ends each list before the vertex itself, behind the neighbours of
// smaller numbers.
template <bool ARCS> __device__ inline void end_before(Lists l, u32* ends) {
    u32 v = blockIdx.x * THREADS + threadIdx.x;
    if (v >= l.vertices) return;
    u32 start = l.starts[v];
    ends[v] = start + first_from<ARCS>(l.targets + start, l.ends[v] - start, v);
}

// Copies of each list the neighbours of higher rank: of more neighbours, or of as many and a larger number. They begin
// where the list does. A warp a vertex.
template <bool ARCS>
__device__ inline void copy_higher(Lists l, const u32* neighbors, u32* ends, u32* targets) {
    u32 lane = threadIdx.x % WARP;
    for (u32 v = warp_number(); v < l.vertices; v += warps()) {
        u32 start = l.starts[v], end = l.ends[v], own = neighbors[v], kept = start;
        for (u32 at = start; at < end; at += WARP) {
            u32 target = at + lane < end ? l.targets[at + lane] : v, w = plain<ARCS>(target);
            u32 others = at + lane < end ? neighbors[w] : 0;
            bool is_higher = others > own || (others == own && w > v);
            u32 higher = __ballot_sync(ALL, is_higher);
            if (is_higher) targets[kept + __popc(higher & ((1u << lane) - 1))] = target;
            kept += __popc(higher);
        }
        if (lane == 0) ends[v] = kept;
    }
}

// The target of `list`, which ascends, that is w; ALL if there is none.
template <bool ARCS> __device__ inline u32 find(const u32* list, u32 count, u32 w) {
    u32 low = first_from<ARCS>(list, count, w);
    return plain<ARCS>(list[low]) == w ? list[low] : ALL;
}

// Adds, at each vertex, the edges that close its wedges, or their arcs. A warp takes a vertex after the other; a
// triangle is found at its vertex of least rank. `next` is 0.
template <bool ARCS> __device__ inline void close_wedges(Lists l, u64* closed, u32* next) {
    u32 lane = threadIdx.x % WARP;
    while (true) {
        u32 v = lane == 0 ? atomicAdd(next, 1u) : 0;
        v = __shfl_sync(ALL, v, 0);
        if (v >= l.vertices) return;
        const u32* own = l.targets + l.starts[v];
        u32 count = l.ends[v] - l.starts[v], at_v = 0;
        if (count < 2) continue;
        for (u32 i = 0; i < count; i++) {
            u32 u = plain<ARCS>(own[i]), of_edge = arcs_of<ARCS>(own[i]);
            const u32* other = l.targets + l.starts[u];
            u32 others = l.ends[u] - l.starts[u], at_u = 0;
            if (others == 0) continue;
            // Each of the shorter list is looked for in the longer one.
            bool is_shorter = others < count;
            const u32* each = is_shorter ? other : own;
            const u32* in = is_shorter ? own : other;
            u32 steps = is_shorter ? others : count, among = is_shorter ? count : others;
            u32 first = plain<ARCS>(in[0]), last = plain<ARCS>(in[among - 1]);
            for (u32 at = lane; at < steps; at += WARP) {
                u32 target = each[at], w = plain<ARCS>(target);
                if (w < first || w > last) continue;
                u32 found = find<ARCS>(in, among, w);
                if (found == ALL) continue;
                at_u += arcs_of<ARCS>(is_shorter ? found : target);
                if (ARCS) at_v += arcs_of<ARCS>(is_shorter ? target : found);
                atomicAdd(closed + w, (u64)of_edge);
            }
            if (!ARCS) at_v += at_u;
            at_u = __reduce_add_sync(ALL, at_u);
            if (lane == 0 && at_u) atomicAdd(closed + u, (u64)at_u);
        }
        at_v = __reduce_add_sync(ALL, at_v);
        if (lane == 0 && at_v) atomicAdd(closed + v, (u64)at_v);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) end_before_of_edges(
    Lists l, u32* ends) {
    end_before<false>(l, ends);
}
extern "C" __global__ void __launch_bounds__(THREADS) end_before_of_arcs(
    Lists l, u32* ends) {
    end_before<true>(l, ends);
}
extern "C" __global__ void __launch_bounds__(THREADS) copy_higher_of_edges(
    Lists l, const u32* n, u32* ends, u32* targets) {
    copy_higher<false>(l, n, ends, targets);
}
extern "C" __global__ void __launch_bounds__(THREADS) copy_higher_of_arcs(
    Lists l, const u32* n, u32* ends, u32* targets) {
    copy_higher<true>(l, n, ends, targets);
}
extern "C" __global__ void __launch_bounds__(THREADS) close_wedges_of_edges(
    Lists l, u64* closed, u32* next) {
    close_wedges<false>(l, closed, next);
}
extern "C" __global__ void __launch_bounds__(THREADS) close_wedges_of_arcs(
    Lists l, u64* closed, u32* next) {
    close_wedges<true>(l, closed, next);
}
