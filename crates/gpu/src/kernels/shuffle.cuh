// Shuffles of the types that rows are.

__device__ inline float shuffle_xor(float v, u32 m) { return __shfl_xor_sync(ALL, v, m); }
__device__ inline double shuffle_xor(double v, u32 m) { return __shfl_xor_sync(ALL, v, m); }
__device__ inline bool shuffle_xor(bool v, u32 m) { return __shfl_xor_sync(ALL, (int)v, m); }

// A row without state: what it does, it did while it took its messages.
template <class Row>
__device__ inline Row shuffle_xor(Row row, u32) { return row; }
