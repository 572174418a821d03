// Asynchronous copies into shared memory: what is on its way takes no registers, which the kernels that
// go on meanwhile need. By words, of a thread's own (all GPUs here), and by bulk, of as many bytes as
// there are at once (BULK: from sm_90 on).

#ifdef __CUDACC_RTC__
#if __CUDA_ARCH__ >= 900
#define BULK 1
#endif

// Starts a copy to shared memory; both sides lie at a multiple of BYTES.
template <u32 BYTES>
__device__ inline void start_copy(void* to, const void* from) {
    u32 at = (u32)__cvta_generic_to_shared(to);
    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    } else if (BYTES >= 4) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES) : "memory");
    } else {
        *(u8*)to = *(const u8*)from;
    }
}

// The copies of a thread since its last group are another one.
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most so many groups of the thread are on their way.
template <u32 OTHERS>
__device__ inline void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(OTHERS) : "memory");
}

#ifdef BULK

// Makes a word of shared memory one that bytes arrive at, for this thread; others need `show_arrivals`.
__device__ inline void make_arrivals(u64* arrivals) {
    u32 at = (u32)__cvta_generic_to_shared(arrivals);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
}

// Shows what `make_arrivals` made to the engine that copies.
__device__ inline void show_arrivals() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// So many bytes will arrive: by one thread, before any copy is started.
__device__ inline void expect_bytes(u64* arrivals, u32 bytes) {
    u32 at = (u32)__cvta_generic_to_shared(arrivals);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

// Starts a copy to shared memory; both sides, and the number of bytes, are multiples of 16.
__device__ inline void start_bulk_copy(void* to, const void* from, u32 bytes, u64* arrivals) {
    u32 at = (u32)__cvta_generic_to_shared(to), word = (u32)__cvta_generic_to_shared(arrivals);
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at),
        "l"(from), "r"(bytes), "r"(word)
        : "memory");
}

// Waits until all bytes arrived that were expected for the `turn`th time, from 0 on; of it, its last bit counts.
__device__ inline void wait_for_bytes(u64* arrivals, u32 turn) {
    u32 at = (u32)__cvta_generic_to_shared(arrivals), is_done = 0;
    while (!is_done) {
        asm volatile(
            "{ .reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;"
            " selp.u32 %0, 1, 0, done; }"
            : "=r"(is_done)
            : "r"(at), "r"(turn & 1)
            : "memory");
    }
}

// Starts a copy from shared memory; as `start_bulk_copy`.
__device__ inline void start_bulk_write(void* to, const void* from, u32 bytes) {
    u32 at = (u32)__cvta_generic_to_shared(from);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(at), "r"(bytes)
                 : "memory");
}

// The writes of a thread since its last group are another one.
__device__ inline void end_bulk_writes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until all groups of writes of the thread, but the last OTHERS, need their shared memory no longer.
template <u32 OTHERS>
__device__ inline void wait_for_bulk_writes() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(OTHERS) : "memory");
}

#endif

#else  // The emulated GPU of the tests, which copies at once.

#define BULK 1
template <u32 BYTES>
inline void start_copy(void* to, const void* from) { __builtin_memcpy(to, from, BYTES); }
inline void end_group() {}
template <u32 OTHERS>
inline void wait_for_groups() {}
inline void make_arrivals(u64* arrivals) { *arrivals = 0; }
inline void show_arrivals() {}
inline void expect_bytes(u64*, u32) {}
inline void start_bulk_copy(void* to, const void* from, u32 bytes, u64*) { __builtin_memcpy(to, from, bytes); }
inline void wait_for_bytes(u64*, u32) {}
inline void start_bulk_write(void* to, const void* from, u32 bytes) { __builtin_memcpy(to, from, bytes); }
inline void end_bulk_writes() {}
template <u32 OTHERS>
inline void wait_for_bulk_writes() {}

#endif
