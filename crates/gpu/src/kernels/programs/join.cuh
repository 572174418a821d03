// Weakly connected components: a lock-free union-find over the arcs, each seen once.
// Roots are hooked to smaller roots, paths halved (Jaiganesh and Burtscher, HPDC 2018, after
// Anderson and Woll, STOC 1991). CPU twin: analytics::components.

struct Program : EachArc {
    u32* parent;

    __device__ u32 find(u32 vertex) const {
        volatile u32* above = parent;
        u32 own = above[vertex];
        while (true) {
            u32 next = above[own];
            if (next == own) return own;
            above[vertex] = next;  // Above `vertex` whatever others do: no root is lost.
            vertex = own;
            own = next;
        }
    }

    __device__ void take(Row&, Message other, u32 vertex) const {
        if (((volatile u32*)parent)[vertex] == ((volatile u32*)parent)[other]) return;
        u32 a = find(vertex), b = find(other);
        while (a != b) {
            u32 low = min(a, b), high = max(a, b);
            u32 seen = atomicCAS(parent + high, high, low);
            if (seen == high) return;
            a = find(seen);
            b = low;
        }
    }
};
