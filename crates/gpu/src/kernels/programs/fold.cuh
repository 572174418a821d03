// y[row] = ⊕ weight · x[column], where ⊕ is a sum, a minimum or a maximum: Graph.propagate's pass.
//
// A vertex has WIDTH values side by side: one, or as many as one load of 16 bytes has. Minima and
// maxima are the CPU's bit for bit; sums are the CPU's but for their order. One value that is NaN makes
// the result NaN. CPU twin: analytics::propagate. Reads 4 to 16 bytes of x an arc, and adds as many
// of y a row of a slice.

// `#define`d by the launcher: the type of a value, and how many a vertex has.
typedef VALUE Value;

struct __align__(WIDTH * sizeof(Value)) Values {
    Value at[WIDTH];
};

__device__ inline bool is_nan(Value value) { return value != value; }

__device__ inline Values shuffle_xor(Values values, u32 mask) {
    for (u32 i = 0; i < WIDTH; i++) values.at[i] = __shfl_xor_sync(ALL, values.at[i], mask);
    return values;
}

// Floats without their sign order as integers do, with it the other way round.
__device__ inline void lower(float* to, float value) {
    int bits = __float_as_int(value);
    if (bits >= 0) atomicMin((int*)to, bits); else atomicMax((u32*)to, (u32)bits);
}
__device__ inline void lower(double* to, double value) {
    long long bits = __double_as_longlong(value);
    if (bits >= 0) atomicMin((long long*)to, bits); else atomicMax((u64*)to, (u64)bits);
}
__device__ inline void raise(float* to, float value) {
    int bits = __float_as_int(value);
    if (bits >= 0) atomicMax((int*)to, bits); else atomicMin((u32*)to, (u32)bits);
}
__device__ inline void raise(double* to, double value) {
    long long bits = __double_as_longlong(value);
    if (bits >= 0) atomicMax((long long*)to, bits); else atomicMin((u64*)to, (u64)bits);
}

// The NaN that comes before or after all numbers in this order.
__device__ inline void make_nan(float* to, bool first) {
    *to = __int_as_float(first ? (int)0xffffffff : 0x7fffffff);
}
__device__ inline void make_nan(double* to, bool first) {
    *to = __longlong_as_double(first ? (long long)0xffffffffffffffffull : 0x7fffffffffffffffll);
}

struct Program : EveryArc {
    const Values* x;
    Values* y;       // The operation's identity before the pass.
    u32 operation;   // Sum, minimum, maximum.

    static const u32 SUM = 0, MIN = 1;

    typedef Values Source;
    typedef Values Message;
    typedef Values Row;

    __device__ Source load(u32 vertex) const { return x[vertex]; }
    __device__ Message along(Source source, double weight) const {
#if WEIGHT_BYTES > 0
        for (u32 i = 0; i < WIDTH; i++) source.at[i] *= (Value)weight;
#endif
        for (u32 i = 0; operation != SUM && i < WIDTH; i++) {
            if (is_nan(source.at[i])) make_nan(&source.at[i], operation == MIN);
        }
        return source;
    }
    __device__ Row empty() const {
        Value infinity = (Value)__longlong_as_double(0x7ff0000000000000ll);
        Row row;
        for (u32 i = 0; i < WIDTH; i++) {
            row.at[i] = operation == SUM ? (Value)0 : operation == MIN ? infinity : -infinity;
        }
        return row;
    }
    __device__ Row merge(Row a, Row b) const {
        for (u32 i = 0; i < WIDTH; i++) {
            if (operation == SUM) a.at[i] += b.at[i];
            else if (is_nan(b.at[i])) a.at[i] = b.at[i];
            else if (operation == MIN) a.at[i] = b.at[i] < a.at[i] ? b.at[i] : a.at[i];
            else a.at[i] = b.at[i] > a.at[i] ? b.at[i] : a.at[i];
        }
        return a;
    }
    __device__ void take(Row& row, Message message, u32) const { row = merge(row, message); }
    __device__ void apply(u32 vertex, Row row, bool alone) const {
        if (alone) y[vertex] = row; else scatter(vertex, row);
    }
    __device__ void scatter(u32 vertex, Message message) const {
        for (u32 i = 0; i < WIDTH; i++) {
            Value* to = &y[vertex].at[i];
            Value value = message.at[i];
            if (operation == SUM) {
                atomicAdd(to, value);
                continue;
            }
            Value now = *(volatile Value*)to;
            if (operation == MIN && !(value >= now)) lower(to, value);
            if (operation != MIN && !(value <= now)) raise(to, value);
        }
    }
};
