// What the card did and when, for profilers: what streams have it do is remembered while somebody wants to
// know, and found again when the card's record of it comes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <orrery/prof.h>

#include "umd/prof/profiler.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Context;
class Stream;

// A stream's packets of which the card may still have something to say. Threads: any.
class WorkTrail {
  public:
    // Of this thread's call. name: as OpNote has it.
    void add(std::uint64_t index, orrProfOperation operation, const char* name) noexcept;
    // What to tell of a record. False: nothing, as nobody wanted it, or it is half of a wait.
    bool find(const drm_orr_work_record& record, orrProfRecord& told, orrProfWork& work);
    // The card has said all that it will of packets below.
    void drop(std::uint64_t below);
    std::uint64_t number() const { return number_; }

  private:
    static constexpr std::size_t kMost = std::size_t{1} << 20;  // then the oldest go

    struct Entry {
        std::uint64_t index = 0, correlation = 0, external = 0, thread = 0, submitted_ns = 0;
        orrProfOperation operation = orrProfOperationOther;
        const char* name = nullptr;
    };
    static std::uint64_t next_number();

    const std::uint64_t number_ = next_number();
    std::mutex mutex_;
    std::deque<Entry> entries_;  // by index
    std::optional<drm_orr_work_record> wait_;
};

// Of a card. Threads: any.
class WorkLog {
  public:
    explicit WorkLog(Context& context) : context_(context) {}
    // Records are wanted from now on, until no subscriber wants any. False: the card makes none.
    bool want() noexcept;
    // Tells all that the card has recorded until now. It waits for others who do so a second at most. Not
    // from inside of a callback: then it does nothing. An error: the card records nothing.
    Status drain();
    // No more callbacks after this; before its context goes.
    void end();

  private:
    static constexpr std::chrono::milliseconds kPause{5};
    enum class State : std::uint8_t { kOff, kOn, kRefused };

    void run(const std::stop_token& stop);
    Status tell_all();
    void tell_lost();

    Context& context_;
    std::atomic<State> state_{State::kOff};
    std::mutex mutex_;  // of the next two, and of state_'s changes
    Error refused_;
    std::jthread thread_;
    std::condition_variable_any wake_;
    std::timed_mutex drain_mutex_;
};

}  // namespace orrery::umd
