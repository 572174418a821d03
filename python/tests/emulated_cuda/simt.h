// CUDA C++ on a CPU: what a kernel's source is compiled behind, so that tests run kernels without a
// GPU. The threads of a block are fibers that take turns; a warp's collectives and the block's
// barrier are where they wait for each other. Checks what hardware does not: a lane that leaves, or
// goes another way, while its warp waits ends the process with a message.
//
// One kernel runs at a time (the driver sees to it), so atomics are plain operations. What is shown
// is that the arithmetic and the addressing are right, not that concurrent threads are. Words that a
// kernel shares with threads of the process, as with a drive, are really atomic; a thread that waits
// for them must nap (`__nanosleep`), and others go on meanwhile.

#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include <type_traits>
#include <utility>

#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)
#define __shared__ static
#define asm(...) ((void)0)  // Prefetches.

struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct float4 { float x, y, z, w; };
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

struct Index { unsigned x; };
static Index threadIdx, blockIdx, blockDim, gridDim;

namespace simt {

const unsigned LANES = 32, MOST = 1024, STACK = 64 << 10;

// Where threads wait for each other: a warp, or a block.
struct Meeting {
    unsigned live, arrived, phase;
    unsigned char values[2][LANES][16];
};

struct Fiber {
    ucontext_t start;
    jmp_buf resume;
    bool done;
};

static Fiber fibers[MOST];
static Meeting warps[MOST / LANES], block;
static jmp_buf scheduler;
static unsigned current;
static bool progress;
static void (*body)(void*);
static void* argument;

[[noreturn]] static void fail(const char* what) {
    fprintf(stderr, "emulated CUDA: block %u, thread %u: %s\n", blockIdx.x, current, what);
    abort();
}

static void pause() {
    if (!_setjmp(fibers[current].resume)) _longjmp(scheduler, 1);
}

static void arrive(Meeting& meeting) {
    unsigned phase = meeting.phase;
    progress = true;
    if (++meeting.arrived == meeting.live) {
        meeting.arrived = 0;
        meeting.phase++;
    }
    while (meeting.phase == phase) pause();
}

static void leave(Meeting& meeting, bool may_leave_others) {
    meeting.live--;
    if (meeting.arrived == 0) return;
    if (!may_leave_others) fail("a lane left while its warp waits in a collective");
    if (meeting.arrived == meeting.live) {
        meeting.arrived = 0;
        meeting.phase++;
    }
}

static void run() {
    while (true) {
        body(argument);
        leave(warps[current / LANES], false);
        leave(block, true);
        fibers[current].done = progress = true;
        pause();
    }
}

// Runs a thread until it waits or ends; on a stack of its own, which its first call makes.
static void resume(unsigned thread) {
    static bool started[MOST];
    Fiber& fiber = fibers[thread];
    current = threadIdx.x = thread;
    if (_setjmp(scheduler)) return;
    if (started[thread]) _longjmp(fiber.resume, 1);
    started[thread] = true;
    getcontext(&fiber.start);
    fiber.start.uc_stack = {malloc(STACK), 0, STACK};
    makecontext(&fiber.start, run, 0);
    setcontext(&fiber.start);
}

static void run_block(unsigned threads) {
    block = {threads, 0, 0, {}};
    for (unsigned w = 0; w < threads / LANES; w++) warps[w] = {LANES, 0, 0, {}};
    for (unsigned t = 0; t < threads; t++) fibers[t].done = false;
    do {
        progress = false;
        for (unsigned t = 0; t < threads; t++) {
            if (!fibers[t].done) resume(t);
        }
        if (!progress && block.live > 0) fail("threads wait for others that never come");
    } while (block.live > 0);
}

template <class... A, size_t... I>
void launch(void (*kernel)(A...), unsigned blocks, unsigned threads, void** parameters,
            std::index_sequence<I...>) {
    if (threads > MOST || threads % LANES) fail("a block of whole warps is expected");
    auto call = [&] { kernel(*(A*)parameters[I]...); };
    body = [](void* c) { (*static_cast<decltype(call)*>(c))(); };
    argument = &call;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) run_block(threads);
}

template <class... A>
void launch(void (*kernel)(A...), unsigned blocks, unsigned threads, void** parameters) {
    launch(kernel, blocks, threads, parameters, std::index_sequence_for<A...>());
}

template <class... A>
size_t sizes(void (*)(A...), size_t* to) {
    size_t all[] = {sizeof(A)...};
    for (size_t size : all) *to++ = size;
    return sizeof...(A);
}

// Lets the others go on: those of the block, and threads of the process.
static void nap() {
    progress = true;
    if (current % LANES == 0) sched_yield();
    pause();
}

// Gives `value` to the warp; `visit` sees, by lane, what all gave.
template <class T, class Visit>
void exchange(unsigned mask, T value, Visit visit) {
    static_assert(sizeof(T) <= 16);
    if (mask != ~0u) fail("a collective of a part of a warp is not emulated");
    Meeting& warp = warps[current / LANES];
    auto& values = warp.values[warp.phase & 1];
    memcpy(values[current % LANES], &value, sizeof value);
    arrive(warp);
    visit([&](unsigned lane) {
        T other;
        memcpy(&other, values[lane % LANES], sizeof other);
        return other;
    });
}

template <class T>
T shuffle(unsigned mask, T value, unsigned from) {
    exchange(mask, value, [&](auto of) { value = of(from); });
    return value;
}

template <class T, class Op>
T reduce(unsigned mask, T value, Op op) {
    exchange(mask, value, [&](auto of) {
        T all = of(0);
        for (unsigned lane = 1; lane < LANES; lane++) all = op(all, of(lane));
        value = all;
    });
    return value;
}

template <class T, class Op>
T update(T* at, Op op) {
    T old = *at;
    *at = op(old);
    return old;
}

template <class To, class From>
To bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

}  // namespace simt

#define SIMT_KERNEL(name)                                                               \
    extern "C" void simt_##name(unsigned blocks, unsigned threads, void** parameters) { \
        simt::launch(name, blocks, threads, parameters);                                \
    }                                                                                   \
    extern "C" size_t simt_sizes_##name(size_t* to) { return simt::sizes(name, to); }

inline void __syncthreads() { simt::arrive(simt::block); }
inline void __syncwarp(unsigned mask = ~0u) { simt::shuffle(mask, 0, 0); }
template <class T> T __shfl_sync(unsigned m, T v, unsigned lane) { return simt::shuffle(m, v, lane); }
template <class T> T __shfl_xor_sync(unsigned m, T v, unsigned x) { return simt::shuffle(m, v, simt::current % simt::LANES ^ x); }
template <class T> T __shfl_up_sync(unsigned m, T v, unsigned by) {
    unsigned lane = simt::current % simt::LANES;
    return simt::shuffle(m, v, lane < by ? lane : lane - by);
}
inline unsigned __ballot_sync(unsigned m, bool v) {
    unsigned own = (unsigned)v << simt::current % simt::LANES;
    return simt::reduce(m, own, [](unsigned a, unsigned b) { return a | b; });
}
inline bool __any_sync(unsigned m, bool v) { return __ballot_sync(m, v) != 0; }
inline bool __all_sync(unsigned m, bool v) { return __ballot_sync(m, v) == ~0u; }
inline unsigned __reduce_add_sync(unsigned m, unsigned v) { return simt::reduce(m, v, [](unsigned a, unsigned b) { return a + b; }); }
inline unsigned __reduce_xor_sync(unsigned m, unsigned v) { return simt::reduce(m, v, [](unsigned a, unsigned b) { return a ^ b; }); }

template <class A, class B> std::common_type_t<A, B> min(A a, B b) { std::common_type_t<A, B> x = a, y = b; return y < x ? y : x; }
template <class A, class B> std::common_type_t<A, B> max(A a, B b) { std::common_type_t<A, B> x = a, y = b; return x < y ? y : x; }
template <class T> T atomicAdd(T* at, std::common_type_t<T> v) { return simt::update(at, [&](T old) { return old + v; }); }
template <class T> T atomicMin(T* at, std::common_type_t<T> v) { return simt::update(at, [&](T old) { return v < old ? v : old; }); }
template <class T> T atomicMax(T* at, std::common_type_t<T> v) { return simt::update(at, [&](T old) { return old < v ? v : old; }); }
template <class T> T atomicOr(T* at, std::common_type_t<T> v) { return simt::update(at, [&](T old) { return old | v; }); }
template <class T> T atomicXor(T* at, std::common_type_t<T> v) { return simt::update(at, [&](T old) { return old ^ v; }); }
template <class T> T atomicExch(T* at, std::common_type_t<T> v) { return simt::update(at, [&](T) { return v; }); }
template <class T> T atomicCAS(T* at, std::common_type_t<T> is, std::common_type_t<T> v) { return simt::update(at, [&](T old) { return old == is ? v : old; }); }

inline unsigned __vmaxu4(unsigned a, unsigned b) {
    unsigned most = 0;
    for (int at = 0; at < 32; at += 8) most |= std::max(a >> at & 255, b >> at & 255) << at;
    return most;
}
template <class T> T __ldg(const T* at) { return *at; }
template <class T> T __ldcv(const T* at) { return *at; }
template <class T> T __ldcs(const T* at) { return *at; }
template <class T> void __stcs(T* at, T v) { *at = v; }
inline unsigned load_acquire_system(const unsigned* at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
inline unsigned load_acquire(const unsigned* at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
template <class T> T look_at(const T* at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
template <class T> void show(T* at, std::common_type_t<T> v) { __atomic_store_n(at, v, __ATOMIC_SEQ_CST); }
inline void store_release(unsigned* at, unsigned v) { __atomic_store_n(at, v, __ATOMIC_RELEASE); }
inline void store_release_system(unsigned* at, unsigned v) { __atomic_store_n(at, v, __ATOMIC_RELEASE); }
inline void __threadfence_block() {}
inline void __threadfence() {}
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { simt::nap(); }
inline unsigned long long nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31)); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(unsigned v) { return __builtin_ffs((int)v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }
inline double __hiloint2double(int high, int low) { return simt::bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low); }
inline long long __double_as_longlong(double v) { return simt::bits<long long>(v); }
inline double __longlong_as_double(long long v) { return simt::bits<double>(v); }
inline int __float_as_int(float v) { return simt::bits<int>(v); }
inline unsigned __float_as_uint(float v) { return simt::bits<unsigned>(v); }
inline float __uint_as_float(unsigned v) { return simt::bits<float>(v); }
inline float __int_as_float(int v) { return simt::bits<float>(v); }
