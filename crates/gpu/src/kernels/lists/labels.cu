// Label propagation: each vertex takes the label that most of its neighbours have, the least of several.
//
// Candidates are ordered as numbers: how often a label comes, and then the complement of the label. CPU
// twin: analytics::structure::label_propagation.

static const u32 FEW = 32;       // Neighbours that a warp has at once.
static const u32 TABLE = 4096;   // Places of a block's table of labels.
static const u32 TRIES = 64;     // Places that are looked at before a table counts as full.
static const u32 EMPTY = 0xffffffff;

struct Labels {
    const u32* before;
    u32* after;
    u32* changed;
};

__device__ inline u64 candidate(u32 count, u32 label) { return (u64)count << 32 | (u32)~label; }

// Sets the labels of vertices with at most FEW neighbours. A warp a vertex.
extern "C" __global__ void __launch_bounds__(THREADS) label_few(Lists l, Labels n) {
    u32 lane = threadIdx.x % WARP, changed = 0;
    for (u32 v = warp_number(); v < l.vertices; v += warps()) {
        u32 start = l.starts[v], count = l.ends[v] - start;
        if (count > FEW) continue;
        u32 label = lane < count ? n.before[l.targets[start + lane]] : EMPTY, same = 0;
        for (u32 other = 0; other < count; other++) same += __shfl_sync(ALL, label, other) == label;
        u64 best = lane < count ? candidate(same, label) : 0;
#pragma unroll
        for (u32 by = WARP / 2; by; by /= 2) {
            u64 other = __shfl_xor_sync(ALL, best, by);
            best = other > best ? other : best;
        }
        if (lane == 0) {
            u32 own = n.before[v], next = count ? ~(u32)best : own;
            n.after[v] = next;
            changed += next != own;
        }
    }
    if (changed) atomicAdd(n.changed, changed);
}

// Sets the labels of `vertices`, of more neighbours. A block a vertex: its table has the labels of one part
// of the hashes at a time, and where that fills it, there are twice as many parts.
extern "C" __global__ void __launch_bounds__(THREADS) label_many(
    Lists l, Labels n, const u32* vertices, u32 count) {
    __shared__ u32 labels[TABLE];
    __shared__ u32 counts[TABLE];
    __shared__ u64 best;
    __shared__ u32 is_full;
    for (u32 i = blockIdx.x; i < count; i += gridDim.x) {
        u32 v = vertices[i], start = l.starts[v], end = l.ends[v];
        if (threadIdx.x == 0) best = 0;
        u32 parts = 1, part = 0;
        while (part < parts) {
            for (u32 at = threadIdx.x; at < TABLE; at += THREADS) {
                labels[at] = EMPTY;
                counts[at] = 0;
            }
            if (threadIdx.x == 0) is_full = 0;
            __syncthreads();
            for (u32 at = start + threadIdx.x; at < end; at += THREADS) {
                u32 label = n.before[l.targets[at]];
                u32 hash = label * 0x9e3779b1u;
                hash ^= hash >> 15;
                if ((hash & (parts - 1)) != part) continue;
                u32 place = (hash * 0x85ebca6bu) >> 20, tries = 0;
                while (true) {
                    u32 there = atomicCAS(labels + place, EMPTY, label);
                    if (there == EMPTY || there == label) break;
                    place = (place + 1) % TABLE;
                    if (++tries == TRIES) break;
                }
                if (tries == TRIES) {
                    is_full = 1;
                    break;
                }
                atomicAdd(counts + place, 1u);
            }
            __syncthreads();
            bool again = is_full;
            if (!again) {
                for (u32 at = threadIdx.x; at < TABLE; at += THREADS) {
                    if (counts[at]) atomicMax(&best, candidate(counts[at], labels[at]));
                }
            }
            __syncthreads();
            if (again) {
                parts *= 2;
                part = 0;
                if (threadIdx.x == 0) best = 0;
            } else {
                part++;
            }
        }
        if (threadIdx.x == 0) {
            u32 next = ~(u32)best;
            n.after[v] = next;
            if (next != n.before[v]) atomicAdd(n.changed, 1u);
        }
        __syncthreads();
    }
}
