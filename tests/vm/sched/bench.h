// What the scheduling tests share: streams with attributes, kernels of a known length, and moments of model
// time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/vm/umd/helpers.h"

namespace orrery::sched_test {

using umd::vm::Card;

// 1.0 us of a vector core, as far as one can say; what counts is always compared with a run alone.
inline constexpr std::uint64_t kIterationsPerUs = 250;

class Stream {
  public:
    explicit Stream(const char* name, int priority = 0, std::uint32_t weight = 0, std::uint32_t slice_us = 0,
                    std::uint32_t limit_us = 0);
    ~Stream() { destroy(); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    orrStream_t get() const { return stream_; }
    orrStreamStats stats() const;
    void destroy();

  private:
    orrStream_t stream_ = nullptr;
};

class Semaphore {
  public:
    explicit Semaphore(const char* name);
    ~Semaphore() { EXPECT_OK(orrSemaphoreDestroy(semaphore_)); }
    Semaphore(const Semaphore&) = delete;
    Semaphore& operator=(const Semaphore&) = delete;
    void wait_on(const Stream& stream, std::uint64_t value = 1) const {
        EXPECT_OK(orrStreamWaitSemaphore(stream.get(), semaphore_, value, nullptr));
    }
    void signal_on(const Stream& stream, std::uint64_t value = 1) const {
        EXPECT_OK(orrStreamSignalSemaphore(stream.get(), semaphore_, value));
    }
    void signal(std::uint64_t value = 1) const { EXPECT_OK(orrSemaphoreSignal(semaphore_, value)); }

  private:
    orrSemaphore_t semaphore_ = nullptr;
};

// A moment in a stream.
class Mark {
  public:
    explicit Mark(const Stream& stream);
    ~Mark() {
        if (event_ != nullptr) EXPECT_OK(orrEventDestroy(event_));
    }
    Mark(Mark&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Mark& operator=(Mark&&) = delete;
    // Picoseconds of model time; the stream has come past it.
    std::uint64_t ps() const;

  private:
    orrEvent_t event_ = nullptr;
};

// `groups` work-groups that count for about `us` microseconds each, and what they wrote.
class Count {
  public:
    Count(const Card& card, std::uint32_t groups, std::uint64_t us);
    ~Count() { EXPECT_OK(orrFreeHost(words_)); }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
    void launch(const Stream& stream) const;
    // The first so many groups have begun, for a kernel whose end nobody waits for.
    void wait_for_begin(std::uint32_t groups) const;
    // Every group came to the right end.
    bool right() const;

  private:
    orrFunction_t kernel_;
    std::uint32_t groups_;
    std::uint64_t iterations_;
    std::uint64_t* words_ = nullptr;
};

}  // namespace orrery::sched_test
