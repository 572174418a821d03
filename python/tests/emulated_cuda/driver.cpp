// libcuda for tests: one device in host memory, whose kernels the CPU runs (simt.h).
//
// Faults and sizes are the environment's:
//   EMULATED_CUDA_FAULT=FUNCTION:N:CODE  the N-th call of FUNCTION (`*`: of any) gives CODE. A code
//                                        that loses a context is then given by every call, as
//                                        CUDA does.
//   EMULATED_CUDA_MEMORY=BYTES           the device's memory (1 GiB).
//   EMULATED_CUDA_VERSION=NUMBER         the driver's version (13000).

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
using Kernel = void (*)(unsigned, unsigned, void**);
// Writes the bytes of each parameter, and says how many there are.
using Sizes = size_t (*)(size_t*);

const size_t PAGE = 4096, ALIGNMENT = 256;
const int INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, NOT_FOUND = 500;

struct Allocation {
    char* start;
    size_t mapped, bytes;
};

std::recursive_mutex lock;
std::map<uint64_t, Allocation> allocations;
int calls = 0;
std::map<void*, Sizes> parameter_sizes;
size_t allocated = 0;
int lost = 0;

size_t from_environment(const char* name, size_t otherwise) {
    const char* text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

size_t memory() { return from_environment("EMULATED_CUDA_MEMORY", size_t(1) << 30); }

bool loses_context(int code) { return code == 46 || code == 214 || (code >= 700 && code < 800) || code == 999; }

// What this call of `name` fails with, or 0.
int fault(const std::string& name) {
    std::lock_guard guard(lock);
    if (lost) return lost;
    const char* wanted = getenv("EMULATED_CUDA_FAULT");
    if (!wanted) return 0;
    std::string text = wanted;
    size_t first = text.find(':'), second = text.find(':', first + 1);
    std::string function = text.substr(0, first);
    if (function != "*" && function != name) return 0;
    if (++calls != atoi(text.c_str() + first + 1)) return 0;
    int code = atoi(text.c_str() + second + 1);
    if (loses_context(code)) lost = code;
    return code;
}

// Bytes of an ELF file: its section headers are its end.
size_t elf_bytes(const void* image) {
    const auto* head = static_cast<const Elf64_Ehdr*>(image);
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_machine == EM_CUDA) return 0;
    return head->e_shoff + size_t(head->e_shnum) * head->e_shentsize;
}

}  // namespace

#define FAULTS \
    if (int code = fault(__func__)) return code

#include "streams.h"

#include "green.h"

extern "C" {

// A device as good as new, on which nothing was called yet.
void emulatedReset() {
    std::lock_guard guard(lock);
    lost = calls = 0;
}

// Calls that the wanted fault counted.
int emulatedCalls() { return calls; }

// Whether these bytes lie in one allocation.
bool emulatedHolds(uint64_t address, size_t bytes) {
    std::lock_guard guard(lock);
    auto after = allocations.upper_bound(address);
    if (after == allocations.begin()) return false;
    const auto& [start, allocation] = *std::prev(after);
    return address + bytes <= start + allocation.bytes;
}

int cuInit(unsigned) {
    FAULTS;
    return 0;
}

int cuDriverGetVersion(int* version) {
    FAULTS;
    *version = int(from_environment("EMULATED_CUDA_VERSION", 13000));
    return 0;
}

int cuDeviceGetCount(int* count) {
    FAULTS;
    *count = 1;
    return 0;
}

int cuDeviceGet(int* device, int ordinal) {
    FAULTS;
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char* name, int length, int) {
    FAULTS;
    strncpy(name, "emulated", size_t(length));
    return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
    FAULTS;
    *value = attribute == 16 ? int(multiprocessors()) : attribute == 75 ? 9 : 0;
    return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int) {
    FAULTS;
    *context = &lock;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int) {
    FAULTS;
    return 0;
}

int cuCtxSetCurrent(void*) {
    FAULTS;
    return 0;
}

int cuCtxSynchronize() {
    FAULTS;
    finish_all();
    return 0;
}

int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    FAULTS;
    *least = *greatest = 0;
    return 0;
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
    FAULTS;
    std::lock_guard guard(lock);
    *total = memory();
    *free = *total - std::min(*total, allocated);
    return 0;
}

// An allocation ends at a page that nobody may touch.
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    FAULTS;
    std::lock_guard guard(lock);
    if (bytes == 0) return INVALID_VALUE;
    if (allocated + bytes > memory()) return OUT_OF_MEMORY;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t pages = (rounded + PAGE - 1) / PAGE * PAGE, mapped = pages + PAGE;
    void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return OUT_OF_MEMORY;
    char* first = static_cast<char*>(start);
    mprotect(first + pages, PAGE, PROT_NONE);
    memset(first, 0xa5, pages);
    *address = uint64_t(first + pages - rounded);
    allocations[*address] = {first, mapped, bytes};
    allocated += bytes;
    return 0;
}

int cuMemFree_v2(uint64_t address) {
    FAULTS;
    std::lock_guard guard(lock);
    finish_all();
    auto found = allocations.find(address);
    if (found == allocations.end()) return INVALID_VALUE;
    munmap(found->second.start, found->second.mapped);
    allocated -= found->second.bytes;
    allocations.erase(found);
    return 0;
}

int cuMemHostAlloc(void** start, size_t bytes, unsigned) {
    FAULTS;
    if (posix_memalign(start, PAGE, bytes)) return OUT_OF_MEMORY;
    std::lock_guard guard(lock);
    pinned[uintptr_t(*start)] = bytes;
    return 0;
}

int cuMemFreeHost(void* start) {
    FAULTS;
    std::lock_guard guard(lock);
    finish_all();
    pinned.erase(uintptr_t(start));
    free(start);
    return 0;
}

static const int ALREADY_REGISTERED = 712, NOT_REGISTERED = 713;

int cuMemHostRegister_v2(void* start, size_t bytes, unsigned) {
    FAULTS;
    std::lock_guard guard(lock);
    for (auto [other, size] : pinned) {
        if (other < uintptr_t(start) + bytes && uintptr_t(start) < other + size) {
            return ALREADY_REGISTERED;
        }
    }
    pinned[uintptr_t(start)] = bytes;
    return 0;
}

int cuMemHostUnregister(void* start) {
    FAULTS;
    std::lock_guard guard(lock);
    finish_all();
    return pinned.erase(uintptr_t(start)) ? 0 : NOT_REGISTERED;
}

int cuMemHostGetDevicePointer_v2(uint64_t* address, void* start, unsigned) {
    FAULTS;
    *address = uint64_t(start);
    return 0;
}

// Pieces of pinned memory that exist now.
size_t emulatedPinned() {
    std::lock_guard guard(lock);
    return pinned.size();
}

// What is not pinned is copied before this returns; what is pinned only in part is refused.
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
    FAULTS;
    std::lock_guard guard(lock);
    if (is_pinned(from) && !is_pinned(static_cast<const char*>(from) + bytes - 1)) {
        return INVALID_VALUE;
    }
    auto* start = static_cast<const char*>(from);
    std::vector<char> copy;
    if (!is_pinned(from)) copy.assign(start, start + bytes);
    give(stream, [=, copy = std::move(copy)] {
        memcpy(reinterpret_cast<void*>(to), copy.empty() ? start : copy.data(), bytes);
    });
    return 0;
}

int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
    FAULTS;
    std::lock_guard guard(lock);
    give(stream, [=] { memcpy(to, reinterpret_cast<const void*>(from), bytes); });
    if (!is_pinned(to)) finish(stream);
    return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
    FAULTS;
    give(stream, [=] { memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
    return 0;
}

int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, Stream* stream) {
    FAULTS;
    give(stream, [=] { memset(reinterpret_cast<void*>(to), byte, bytes); });
    return 0;
}

int cuStreamDestroy_v2(Stream* stream) {
    FAULTS;
    std::lock_guard guard(lock);
    finish(stream);
    streams.erase(stream);
    if (stream->green) stream->green->streams--;
    delete stream;
    return 0;
}

int cuModuleLoadData(void** module, const void* image) {
    FAULTS;
    size_t bytes = elf_bytes(image);
    if (bytes == 0) return INVALID_IMAGE;
    char path[] = "/tmp/emulated-cuda-XXXXXX";
    int file = mkstemp(path);
    if (file < 0 || write(file, image, bytes) != ssize_t(bytes)) return INVALID_IMAGE;
    *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    close(file);
    unlink(path);
    return *module ? 0 : INVALID_IMAGE;
}

int cuModuleUnload(void* module) {
    FAULTS;
    finish_all();
    return dlclose(module);
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
    FAULTS;
    *function = dlsym(module, ("simt_" + std::string(name)).c_str());
    auto sizes = reinterpret_cast<Sizes>(dlsym(module, ("simt_sizes_" + std::string(name)).c_str()));
    if (!*function || !sizes) return NOT_FOUND;
    std::lock_guard guard(lock);
    parameter_sizes[*function] = sizes;
    return 0;
}

int cuFuncSetAttribute(void*, int, int) {
    FAULTS;
    return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t) {
    FAULTS;
    *blocks = 2;
    return 0;
}

int cuLaunchKernel(void* function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty,
                   unsigned tz, unsigned, Stream* stream, void** parameters, void**) {
    FAULTS;
    if (y * z * ty * tz != 1) return INVALID_VALUE;
    std::lock_guard guard(lock);
    count_launch(stream);
    size_t sizes[16], count = parameter_sizes.at(function)(sizes);
    std::vector<std::vector<char>> copies;
    for (size_t i = 0; i < count; i++) {
        auto* start = static_cast<char*>(parameters[i]);
        copies.emplace_back(start, start + sizes[i]);
    }
    give(stream, [=]() mutable {
        void* own[16];
        for (size_t i = 0; i < count; i++) own[i] = copies[i].data();
        reinterpret_cast<Kernel>(function)(blocks, threads, own);
    });
    return 0;
}

int cuGetErrorName(int code, const char** name) {
    static std::map<int, std::string> names;
    std::lock_guard guard(lock);
    *name = names.emplace(code, "CUDA_ERROR_" + std::to_string(code)).first->second.c_str();
    return 0;
}

int cuGetErrorString(int, const char** text) {
    *text = "an injected fault";
    return 0;
}
}
