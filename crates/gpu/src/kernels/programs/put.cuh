// Puts the ends of each arc into each other's neighbour lists, in any order: see lists/order.cu.
//
// `ends` says where each vertex's next neighbour goes, and in the end where its list ends. Reads and writes 8
// bytes a neighbour.

struct Program : EachArc {
    u32* ends;
    u32* targets;
    u32 vertices;
    u32 room;  // Of `targets`. Damaged blocks may have more arcs, and of other vertices.
    u32 ways;

    // Of `ways`: columns into the lists of rows, rows into those of columns, and the latter for loops, too. A target is
    // doubled, and odd where the arc leads to the list's vertex; arcs lead from rows to columns.
    static const u32 ROWS = 1, COLUMNS = 2, LOOPS = 4, SIDES = 8, FROM_ROWS = 16;

    __device__ void put(u32 vertex, u32 target, bool enters) const {
        if (vertex >= vertices) return;
        if (ways & SIDES) target = target * 2 + enters;
        u32 at = atomicAdd(ends + vertex, 1u);
        if (at < room) targets[at] = target;
    }
    __device__ void take(Row&, Message column, u32 row) const {
        bool leaves = ways & FROM_ROWS;
        if (ways & ROWS) put(row, column, !leaves);
        if (ways & COLUMNS && (row != column || ways & LOOPS)) put(column, row, leaves);
    }
};
