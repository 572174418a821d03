// Values of vertices, of 4 or 8 bytes each: filling, moving from one order of vertices to another, and
// finding one.

static const u32 THREADS = 256;

struct Fill {
    void* to;
    u64 value;  // Its low bytes.
    u64 count;
    u32 value_bytes;
};

extern "C" __global__ void __launch_bounds__(THREADS) fill(Fill f) {
    u64 i = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= f.count) return;
    if (f.value_bytes == 4) {
        ((u32*)f.to)[i] = (u32)f.value;
    } else {
        ((u64*)f.to)[i] = f.value;
    }
}

// Some columns of rows in the user's order, beside a panel of vertices in the graph's.
struct Move {
    void* rows;
    void* panel;
    const u32* positions;  // The row of each vertex; or null: that of its own number.
    u64 stride;            // Values of a row.
    u32 first;             // The first column.
    u32 columns;           // At most the panel's width.
    u32 vertices;
    u32 row_count;
    u32 width_log2;  // Values of a vertex in the panel.
    u32 value_bytes;
};

// Whether value i of the panel has a place in the rows; `at` becomes its index there.
static __device__ bool is_in_rows(const Move& m, u64 i, u64* at) {
    u32 v = (u32)(i >> m.width_log2), column = (u32)i & ((1u << m.width_log2) - 1);
    u32 row = m.positions ? m.positions[v] : v;
    *at = row * m.stride + m.first + column;
    return column < m.columns && row < m.row_count;
}

// Panel to rows: reads 8 bytes or more a value in order, and writes 4 or 8 anywhere.
// CPU twin: Graph::to_user_order.
extern "C" __global__ void __launch_bounds__(THREADS) panel_to_rows(Move m) {
    u64 i = (u64)blockIdx.x * THREADS + threadIdx.x, at;
    if (i >> m.width_log2 >= m.vertices || !is_in_rows(m, i, &at)) return;
    if (m.value_bytes == 4) {
        ((u32*)m.rows)[at] = ((const u32*)m.panel)[i];
    } else {
        ((u64*)m.rows)[at] = ((const u64*)m.panel)[i];
    }
}

// Rows to panel, zeros where there is no such column. CPU twin: Graph::from_user_order.
extern "C" __global__ void __launch_bounds__(THREADS) rows_to_panel(Move m) {
    u64 i = (u64)blockIdx.x * THREADS + threadIdx.x, at;
    if (i >> m.width_log2 >= m.vertices) return;
    bool is_there = is_in_rows(m, i, &at);
    if (m.value_bytes == 4) {
        ((u32*)m.panel)[i] = is_there ? ((const u32*)m.rows)[at] : 0;
    } else {
        ((u64*)m.panel)[i] = is_there ? ((const u64*)m.rows)[at] : 0;
    }
}

struct Search {
    const u32* values;
    u32* found;
    u32 count;
    u32 value;
};

// Where a value is, of those that are there once.
extern "C" __global__ void __launch_bounds__(THREADS) find(Search s) {
    u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < s.count && s.values[i] == s.value) *s.found = i;
}
