// What a program says of rows and columns if it wants every arc.

struct EveryArc {
    // Whether a program leaves rows out, or ends them early: it says by itself what is below.
    static const bool SELECTIVE = false;

    // Whether a row takes from columns of the tile of `column`, or, scattered, gives to them.
    __device__ static bool takes(u32 row, u32 column) { return true; }
    __device__ static bool gives(u32 row, u32 column) { return true; }
    // Whether a column may want what rows give it.
    template <class Source>
    __device__ static bool lacks(const Source&) { return true; }
    // Whether a row wants no more messages.
    template <class Row>
    __device__ static bool is_done(const Row&) { return false; }
};

// What a program says that has done its work when it took a message, which is the column's number.
struct EachArc : EveryArc {
    typedef u32 Source;
    typedef u32 Message;
    struct Row {};

    __device__ Source load(u32 vertex) const { return vertex; }
    __device__ Message along(Source source, double) const { return source; }
    __device__ static Row empty() { return Row(); }
    __device__ static Row merge(Row a, Row) { return a; }
    __device__ void apply(u32, Row, bool) const {}
    __device__ void scatter(u32, Message) const {}
};
