// Vertices in the order in which they come: those of few neighbours from the front of the queue, for a warp each, those of
// many from its back, for a block each.

static const u32 SHORT = 512;  // Neighbours that a warp goes over.

struct Queue {
    u32* items;
    u32* counts;  // Vertices from the front, and from the back.
    u32 room;
    u32 reserved;
};

__device__ inline void push(Queue q, Lists l, u32 v) {
    bool is_short = l.ends[v] - l.starts[v] <= SHORT;
    u32 at = atomicAdd(q.counts + (is_short ? 0 : 1), 1u);
    q.items[is_short ? at : q.room - 1 - at] = v;
}

// The vertex at a place of the front, or of the back.
template <u32 WIDTH> __device__ inline u32 item(Queue q, u32 at) {
    return q.items[WIDTH == WARP ? at : q.room - 1 - at];
}
