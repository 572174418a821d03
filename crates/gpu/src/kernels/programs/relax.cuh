// Bellman-Ford: distances (float64 bits, which order as the floats do) fall in place.
// CPU twin: analytics::sssp. The fixed point does not depend on the order.

struct Program : EveryArc {
    u64* distance;
    u8* lowered;  // A flag for every 2^log2 vertices: what the next pass reads.
    u32* count;   // Distances that fell.
    u32 log2;

    typedef double Source;
    typedef double Message;
    typedef double Row;

    __device__ Source load(u32 vertex) const {
        return __longlong_as_double((long long)((volatile u64*)distance)[vertex]);
    }
    __device__ Message along(Source source, double weight) const { return source + weight; }
    __device__ static Row empty() { return __longlong_as_double(0x7ff0000000000000ll); }
    __device__ void take(Row& row, Message message, u32) const { row = fmin(row, message); }
    __device__ static Row merge(Row a, Row b) { return fmin(a, b); }
    __device__ void apply(u32 vertex, Row row, bool) const { scatter(vertex, row); }
    __device__ void scatter(u32 vertex, Message message) const {
        u64 bits = (u64)__double_as_longlong(message);
        if (bits >= ((volatile u64*)distance)[vertex]) return;
        if (bits < atomicMin(distance + vertex, bits)) {
            atomicAdd(count, 1);
            lowered[vertex >> log2] = 1;
        }
    }
};
