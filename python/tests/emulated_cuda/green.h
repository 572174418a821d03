// Green contexts of the emulated driver: what they are told, how many there are, and which kernels
// were given to their streams. Included by driver.cpp.
//
//   EMULATED_CUDA_MULTIPROCESSORS=NUMBER  the device's (2); groups have 4 of them, 6, 8 and so on.

namespace {

const unsigned SMALLEST_GROUP = 4, GROUP_STEP = 2;
const int SM_RESOURCE = 1, INVALID_RESOURCE_TYPE = 914, NO_SUCH_DIVISION = 915;

// CUdevResource, 144 bytes; the driver uses `internal` as it likes.
struct Resource {
    int type;
    unsigned char internal[92];
    unsigned multiprocessors;
    unsigned char others[44];
};

struct GreenContext {
    unsigned multiprocessors;
    int streams;
};

int green_contexts = 0, green_launches = 0, launches = 0;

unsigned multiprocessors() { return unsigned(from_environment("EMULATED_CUDA_MULTIPROCESSORS", 2)); }

void count_launch(const Stream* stream) {
    launches++;
    if (stream && stream->green) green_launches++;
}

}  // namespace

extern "C" {

// Green contexts that are not destroyed yet.
int emulatedGreenContexts() { return green_contexts; }

// Kernels that streams of green contexts were given, and all.
int emulatedGreenLaunches() { return green_launches; }
int emulatedLaunches() { return launches; }

int cuDeviceGetDevResource(int, Resource* resource, int type) {
    FAULTS;
    if (type != SM_RESOURCE) return INVALID_RESOURCE_TYPE;
    *resource = {type, {}, multiprocessors(), {}};
    return 0;
}

// Rounds up; divides no group again.
int cuDevSmResourceSplitByCount(Resource* groups, unsigned* count, const Resource* from, Resource*, unsigned,
                                unsigned least) {
    FAULTS;
    if (from->type != SM_RESOURCE || from->internal[0] || *count != 1) return INVALID_VALUE;
    unsigned rounded = std::max(SMALLEST_GROUP, (least + GROUP_STEP - 1) / GROUP_STEP * GROUP_STEP);
    if (rounded > from->multiprocessors) return NO_SUCH_DIVISION;
    groups[0] = {SM_RESOURCE, {1}, rounded, {}};
    return 0;
}

int cuDevResourceGenerateDesc(const Resource** description, const Resource* resources, unsigned count) {
    FAULTS;
    if (count != 1 || !resources[0].internal[0]) return NO_SUCH_DIVISION;
    static thread_local Resource last;
    last = resources[0];
    *description = &last;
    return 0;
}

int cuGreenCtxCreate(GreenContext** green, const Resource* description, int, unsigned flags) {
    FAULTS;
    if (flags != 1) return INVALID_VALUE;
    *green = new GreenContext{description->multiprocessors, 0};
    green_contexts++;
    return 0;
}

// The driver would let streams outlive it, of no use to anybody: here, it stays.
int cuGreenCtxDestroy(GreenContext* green) {
    FAULTS;
    if (green->streams > 0) return INVALID_VALUE;
    delete green;
    green_contexts--;
    return 0;
}

int cuGreenCtxStreamCreate(Stream** stream, GreenContext* green, unsigned flags, int) {
    FAULTS;
    if (flags != 1) return INVALID_VALUE;
    green->streams++;
    *stream = made(new Stream{green, {}});
    return 0;
}
}
