/* SPDX-License-Identifier: MIT */
/** Semaphores, events and streams. Included by orrery.hpp. */
#ifndef ORRERY_CPP_STREAM_HPP
#define ORRERY_CPP_STREAM_HPP

#include <orrery/cpp/object.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace orrery {

class Semaphore : public Object<Semaphore, orrSemaphore_t, orrSemaphoreDestroy> {
  public:
    Semaphore() : Object(make()) {}
    explicit Semaphore(Empty e) : Object(e) {}
    void name(const std::string& text) const { check(orrSemaphoreSetName(get(), text.c_str())); }
    /** From the host. */
    void signal(std::uint64_t value) const { check(orrSemaphoreSignal(get(), value)); }
    std::uint64_t value() const {
        std::uint64_t value = 0;
        check(orrSemaphoreGetValue(&value, get()));
        return value;
    }
    /** This thread waits. */
    void wait(std::uint64_t value) const { check(orrSemaphoreWait(get(), value, ORR_NO_LIMIT)); }
    /** The same; false when limit_ns of the host's time were not enough. */
    bool wait_for(std::uint64_t value, std::uint64_t limit_ns) const {
        const orrError_t code = orrSemaphoreWait(get(), value, limit_ns);
        if (code != orrErrorTimeout) check(code);
        return code == orrSuccess;
    }

  private:
    static orrSemaphore_t make() {
        orrSemaphore_t semaphore{};
        check(orrSemaphoreCreate(&semaphore, 0));
        return semaphore;
    }
};

class Event;

/**
 * For the C API a null handle is the null stream of the current device; here that is Stream::null(). An empty
 * object, as moving leaves it, is no stream: its calls throw orrErrorInvalidHandle.
 */
class Stream : public Object<Stream, orrStream_t, orrStreamDestroy> {
  public:
    Stream() : Object(make(ORR_INIT(orrStreamAttributes))) {}
    explicit Stream(const orrStreamAttributes& attributes) : Object(make(attributes)) {}
    explicit Stream(Empty e) : Object(e) {}
    /** Not owned. Each call means the device that is current then. */
    static Stream null() {
        Stream stream(empty);
        stream.null_ = true;
        return stream;
    }
    Stream(Stream&& other) noexcept : Object(std::move(other)), null_(std::exchange(other.null_, false)) {}
    Stream& operator=(Stream&& other) noexcept {
        const bool null = std::exchange(other.null_, false);
        Object::operator=(std::move(other));
        null_ = null;
        return *this;
    }
    explicit operator bool() const { return get() != nullptr || null_; }
    void destroy() {
        null_ = false;
        Object::destroy();
    }
    orrStream_t release() {
        null_ = false;
        return Object::release();
    }
    /** A handle for calls of the C API; throws if this is empty. */
    orrStream_t handle() const {
        if (get() == nullptr && !null_)
            throw ApiError(orrErrorInvalidHandle,
                           "the orrery::Stream is empty: it was moved from, destroyed or never set");
        return get();
    }
    void synchronize() const { check(orrStreamSynchronize(handle())); }
    /** All its work is done. */
    bool done() const {
        const orrError_t code = orrStreamQuery(handle());
        if (code != orrErrorNotReady) check(code);
        return code == orrSuccess;
    }
    void abort() const { check(orrStreamAbort(handle())); }
    inline void wait(const Event& event) const;
    void wait(const Semaphore& semaphore, std::uint64_t value) const {
        check(orrStreamWaitSemaphore(handle(), semaphore.get(), value, nullptr));
    }
    void signal(const Semaphore& semaphore, std::uint64_t value) const {
        check(orrStreamSignalSemaphore(handle(), semaphore.get(), value));
    }
    orrStreamStats stats() const {
        orrStreamStats stats = ORR_INIT(orrStreamStats);
        check(orrStreamGetStats(&stats, handle()));
        return stats;
    }

  private:
    static orrStream_t make(const orrStreamAttributes& attributes) {
        orrStream_t stream{};
        check(orrStreamCreateWithAttributes(&stream, &attributes));
        return stream;
    }
    bool null_ = false;
};

class Event : public Object<Event, orrEvent_t, orrEventDestroy> {
  public:
    explicit Event(unsigned flags = orrEventDefault) : Object(make(flags)) {}
    explicit Event(Empty e) : Object(e) {}
    void record(const Stream& stream) const { check(orrEventRecord(get(), stream.handle())); }
    void synchronize() const { check(orrEventSynchronize(get())); }
    bool done() const {
        const orrError_t code = orrEventQuery(get());
        if (code != orrErrorNotReady) check(code);
        return code == orrSuccess;
    }
    double model_ns_since(const Event& start) const {
        double ns = 0;
        check(orrEventElapsedModelTime(&ns, start.get(), get()));
        return ns;
    }
    double host_ns_since(const Event& start) const {
        double ns = 0;
        check(orrEventElapsedHostTime(&ns, start.get(), get()));
        return ns;
    }

  private:
    static orrEvent_t make(unsigned flags) {
        orrEvent_t event{};
        check(orrEventCreate(&event, flags));
        return event;
    }
};

inline void Stream::wait(const Event& event) const {
    check(orrStreamWaitEvent(handle(), event.get(), nullptr));
}

}  // namespace orrery

#endif /* ORRERY_CPP_STREAM_HPP */
