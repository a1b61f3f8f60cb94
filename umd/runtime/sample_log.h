// Samples of a card's counters at a period of its model time, for profilers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include <orrery/prof.h>

#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Context;

// Of a card. Threads: any.
class SampleLog {
  public:
    explicit SampleLog(Context& context) : context_(context) {}
    // Of these counters, instead of what was asked for before.
    Status start(std::uint64_t period_ns, std::vector<orrCounter_t> counters);
    // Tells the last ones. Nothing if there are none.
    Status stop();
    // Tells all that the card has taken until now. Not from inside of a callback: then it does nothing.
    Status drain();
    // No more callbacks after this; before its context goes.
    void end();

  private:
    static constexpr std::chrono::milliseconds kPause{5};
    static constexpr std::chrono::seconds kDrainLimit{1};

    void run(const std::stop_token& stop);
    // Locks drain_mutex_, and waits for it a second at most.
    Status enter(std::unique_lock<std::timed_mutex>& telling);
    Status tell_all();

    Context& context_;
    std::mutex mutex_;  // of thread_ and on_; inside of drain_mutex_
    bool on_ = false;
    std::jthread thread_;
    std::condition_variable_any wake_;
    // Held while samples are told. What follows is looked at and changed with it, or by who is told.
    std::timed_mutex drain_mutex_;
    std::vector<orrCounter_t> counters_;  // in the order of their numbers; empty: none are wanted
    std::uint64_t period_ns_ = 0, last_ = 0;
    std::vector<std::uint64_t> words_;
};

}  // namespace orrery::umd
