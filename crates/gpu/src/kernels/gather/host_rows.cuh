// The rows of a batch that are in host memory, listed by parts of it.

static const u32 NOT_RESIDENT = 0xffffffff;  // The location of a row that is in neither memory.

struct Ordering {
    const u32* location;  // Of each vertex's row: below `before` it is in device memory; NOT_RESIDENT: in
                          // neither memory; else in host memory, behind those numbers. Or null: a vertex's
                          // row is its number.
    const u32* n_id;
    uint2* list;  // (row in host memory, index in the batch).
    u32* ends;    // Of each part of the list, and then the number of rows.
    u32 before;
    u32 count;  // Of n_id.
    u32 shift;  // A part has 2^shift rows.
    u32 reserved;
};

// The row in host memory of node `i`, or NOT_RESIDENT.
__device__ inline u32 host_row(const Ordering& a, u32 i) {
    u32 vertex = a.n_id[i], location = a.location ? a.location[vertex] : vertex;
    return location != NOT_RESIDENT && location >= a.before ? location - a.before : NOT_RESIDENT;
}

// The part of the row of node `i`.
__device__ inline u32 part_of_row(const Ordering& a, u32 i) {
    u32 row = host_row(a, i);
    return row == NOT_RESIDENT ? NOWHERE : row >> a.shift;
}

extern "C" __global__ void __launch_bounds__(LISTING) count_rows(Ordering a) {
    count_by_parts(0, a.count, a.ends, [&](u32 i) { return part_of_row(a, i); });
}

extern "C" __global__ void __launch_bounds__(LISTING) list_rows(Ordering a) {
    auto put = [&](u32 place, u32 i) { a.list[place] = make_uint2(host_row(a, i), i); };
    list_by_parts(0, a.count, a.ends, [&](u32 i) { return part_of_row(a, i); }, put);
}
