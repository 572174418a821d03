// Weakly connected components: a lock-free union-find over the arcs, each seen once.
// Roots are hooked to smaller roots, paths halved (Jaiganesh and Burtscher, HPDC 2018, after
// Anderson and Woll, STOC 1991). CPU twin: analytics::components.

struct Program : EveryArc {
    u32* parent;

    typedef u32 Source;
    typedef u32 Message;
    struct Row {};

    __device__ Source load(u32 vertex) const { return vertex; }
    __device__ Message along(Source source, double) const { return source; }
    __device__ static Row empty() { return Row(); }
    __device__ static Row merge(Row a, Row) { return a; }
    __device__ void apply(u32, Row, bool) const {}
    __device__ void scatter(u32, Message) const {}

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
