// Rows that are wanted. Rust: kernels::queue_pairs.

// A row to be read, and the index in the destination at which it is wanted.
struct RowRequest {
    u32 row;
    u32 target;
};
