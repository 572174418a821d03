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
