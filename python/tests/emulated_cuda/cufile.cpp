// libcufile for tests: reads files into the emulated driver's device memory (driver.cpp), as
// cuFile's compatibility mode does, through a buffer of its own.
//
// Faults and what it is are the environment's:
//   EMULATED_CUFILE_FAULT=FUNCTION:N:M:CODE  calls N to M - 1 of FUNCTION give CODE; below 5000 it
//                                            is the system's, of cuFileRead.
//   EMULATED_CUFILE_SHORT=BYTES              a read brings at most so many.
//   EMULATED_CUFILE_NVFS=NUMBER              nvidia-fs of this major version is loaded (0: not).

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

namespace {

struct Status {
    int code, cuda;
};

struct Properties {
    unsigned major, minor;
    size_t poll, largest;
    unsigned status, control, features, rest[5];
};

struct Descriptor {
    int kind;
    union {
        int fd;
        void* handle;
    };
    const void* operations;
};

struct Opened {
    int fd;
};

const int PAGE = 4096, NOT_INITIALIZED = 5001, INVALID_POINTER = 5012, INVALID_VALUE = 5022,
          ALREADY_REGISTERED = 5023, NOT_REGISTERED = 5024, ALREADY_OPEN = 5026, FILE_ALREADY_REGISTERED = 5028;

std::mutex lock;
bool is_open = false;
std::set<uint64_t> buffers;
std::map<int, Opened*> files;
std::map<std::string, int> calls;
std::atomic<long> reads{0};

int number(const char* name) {
    const char* text = getenv(name);
    return text ? atoi(text) : 0;
}

// What this call of `name` fails with, or 0.
int fault(const std::string& name) {
    std::lock_guard guard(lock);
    if (!is_open && name != "cuFileDriverOpen") return NOT_INITIALIZED;
    const char* wanted = getenv("EMULATED_CUFILE_FAULT");
    if (!wanted) return 0;
    char function[64];
    int begin, end, code;
    if (sscanf(wanted, "%63[^:]:%d:%d:%d", function, &begin, &end, &code) != 4) abort();
    if (function != name) return 0;
    int call = ++calls[name];
    return call >= begin && call < end ? code : 0;
}

// Whether these are bytes of one allocation on the emulated device.
bool is_on_device(const void* start, size_t bytes) {
    static auto holds = reinterpret_cast<bool (*)(uint64_t, size_t)>(
        dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "emulatedHolds"));
    return holds(uint64_t(start), bytes);
}

}  // namespace

#define FAULTS \
    if (int code = fault(__func__)) return {code, 0}

extern "C" {

// Files and buffers that are registered still, and reads so far.
int emulatedFiles() { return int(files.size()); }
int emulatedBuffers() { return int(buffers.size()); }
long emulatedReads() { return reads; }

Status cuFileDriverOpen() {
    FAULTS;
    std::lock_guard guard(lock);
    if (is_open) return {ALREADY_OPEN, 0};
    is_open = true;
    return {0, 0};
}

Status cuFileDriverGetProperties(Properties* properties) {
    FAULTS;
    *properties = {};
    properties->major = unsigned(number("EMULATED_CUFILE_NVFS"));
    return {0, 0};
}

Status cuFileHandleRegister(void** handle, const Descriptor* descriptor) {
    FAULTS;
    std::lock_guard guard(lock);
    if (descriptor->kind != 1 || fcntl(descriptor->fd, F_GETFL) < 0) return {INVALID_VALUE, 0};
    if (files.count(descriptor->fd)) return {FILE_ALREADY_REGISTERED, 0};
    *handle = files[descriptor->fd] = new Opened{descriptor->fd};
    return {0, 0};
}

void cuFileHandleDeregister(void* handle) {
    std::lock_guard guard(lock);
    auto* opened = static_cast<Opened*>(handle);
    // Before the file is closed: afterwards its number may be another's.
    if (fcntl(opened->fd, F_GETFL) < 0) abort();
    files.erase(opened->fd);
    delete opened;
}

Status cuFileBufRegister(const void* start, size_t bytes, int) {
    FAULTS;
    std::lock_guard guard(lock);
    if (!is_on_device(start, bytes)) return {INVALID_POINTER, 0};
    return {buffers.insert(uint64_t(start)).second ? 0 : ALREADY_REGISTERED, 0};
}

Status cuFileBufDeregister(const void* start) {
    FAULTS;
    std::lock_guard guard(lock);
    // Before the memory is freed.
    if (!is_on_device(start, 1)) abort();
    return {buffers.erase(uint64_t(start)) ? 0 : NOT_REGISTERED, 0};
}

ssize_t cuFileRead(void* handle, void* base, size_t bytes, off_t offset, off_t at) {
    reads++;
    if (int code = fault(__func__)) {
        errno = code;
        return code < 5000 ? -1 : -code;
    }
    char* to = static_cast<char*>(base) + at;
    if (!is_on_device(to, bytes)) return -INVALID_POINTER;
    if (int most = number("EMULATED_CUFILE_SHORT")) bytes = std::min(bytes, size_t(most));
    // Direct I/O is by pages.
    off_t skip = offset % PAGE;
    size_t rounded = (size_t(skip) + bytes + PAGE - 1) / PAGE * PAGE;
    void* buffer = nullptr;
    if (posix_memalign(&buffer, PAGE, rounded)) return -1;
    ssize_t count = pread(static_cast<Opened*>(handle)->fd, buffer, rounded, offset - skip);
    if (count > 0) {
        count = std::clamp(count - ssize_t(skip), ssize_t(0), ssize_t(bytes));
        memcpy(to, static_cast<char*>(buffer) + skip, size_t(count));
    }
    int error = errno;
    free(buffer);
    errno = error;
    return count;
}
}
