// Streams and events of the emulated driver. Included by driver.cpp.
//
//   EMULATED_CUDA_LATE=1  work is done when somebody waits for it, and not before, each stream's by
//                         itself: what forgets to wait for another stream finds nothing done.
//                         Otherwise streams finish at once, and what waits for them never waits.

namespace {

const int NOT_READY = 600;

struct GreenContext;

struct Stream {
    GreenContext* green;
    std::deque<std::function<void()>> given;
};

// When an event happened, how many of its records are still to come, and how many have come.
struct Moment {
    Clock::time_point at;
    int left, come;
};

struct Event {
    Stream* stream;
    // Outlives the event in a stream's order.
    std::shared_ptr<Moment> moment;
    int asked;
};

std::set<Stream*> streams;
std::map<uintptr_t, size_t> pinned;

bool is_late() {
    static const bool late = getenv("EMULATED_CUDA_LATE") != nullptr;
    return late;
}

// Whether the driver copies from or to `host` by itself, later.
bool is_pinned(const void* host) {
    auto after = pinned.upper_bound(uintptr_t(host));
    if (after == pinned.begin()) return false;
    const auto& [start, bytes] = *std::prev(after);
    return uintptr_t(host) < start + bytes;
}

Stream* made(Stream* stream) {
    std::lock_guard guard(lock);
    streams.insert(stream);
    return stream;
}

void give(Stream* stream, std::function<void()> work) {
    std::lock_guard guard(lock);
    if (!stream || !is_late()) return work();
    stream->given.push_back(std::move(work));
}

void step(Stream* stream) {
    auto work = std::move(stream->given.front());
    stream->given.pop_front();
    work();
}

void finish(Stream* stream) {
    std::lock_guard guard(lock);
    while (stream && !stream->given.empty()) step(stream);
}

void finish_all() {
    std::lock_guard guard(lock);
    for (Stream* stream : streams) finish(stream);
}

void finish(Event* event) {
    std::lock_guard guard(lock);
    while (event->moment->left > 0) step(event->stream);
}

}  // namespace

extern "C" {

int cuStreamCreateWithPriority(Stream** stream, unsigned, int) {
    FAULTS;
    *stream = made(new Stream{nullptr, {}});
    return 0;
}

int cuStreamSynchronize(Stream* stream) {
    FAULTS;
    finish(stream);
    return 0;
}

int cuEventCreate(Event** event, unsigned) {
    FAULTS;
    *event = new Event{nullptr, std::make_shared<Moment>(Moment{Clock::now(), 0, 0}), 0};
    return 0;
}

int cuEventRecord(Event* event, Stream* stream) {
    FAULTS;
    std::lock_guard guard(lock);
    event->stream = stream;
    event->moment->left++;
    give(stream, [moment = event->moment] {
        moment->at = Clock::now();
        moment->left--;
        moment->come++;
    });
    return 0;
}

// The stream's later work waits for the records of the event so far.
int cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
    FAULTS;
    std::lock_guard guard(lock);
    int come = event->moment->come + event->moment->left;
    give(stream, [=, from = event->stream, moment = event->moment] {
        while (moment->come < come) step(from);
    });
    return 0;
}

int cuEventQuery(Event* event) {
    FAULTS;
    std::lock_guard guard(lock);
    if (event->moment->left > 0 && event->asked++ % 2 == 0) return NOT_READY;
    finish(event);
    return 0;
}

int cuEventSynchronize(Event* event) {
    FAULTS;
    finish(event);
    return 0;
}

int cuEventElapsedTime(float* milliseconds, Event* from, Event* to) {
    FAULTS;
    *milliseconds = std::chrono::duration<float, std::milli>(to->moment->at - from->moment->at).count();
    return 0;
}

int cuEventDestroy_v2(Event* event) {
    FAULTS;
    std::lock_guard guard(lock);
    delete event;
    return 0;
}
}
