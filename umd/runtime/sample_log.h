// Samples of a card's counters at a period of its model time, for profilers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <orrery/prof.h>

#include "umd/prof/holders.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Context;

// Of a card. Threads: any. What is taken by a thread that is inside of a callback is told a little later, by
// another one.
class SampleLog {
  public:
    explicit SampleLog(Context& context) : context_(context) {}
    // Of these counters, for this subscription: instead of what it has asked for before, or what others have,
    // if that is the same. It fails if others have something else.
    Status start(orrProfSubscription_t who, std::uint64_t period_ns, std::vector<orrCounter_t> counters);
    // It has them no more; tells what there is. Nothing if it had none.
    Status stop(orrProfSubscription_t who);
    // There are some: they take the room that all records share.
    bool any();
    // Tells all that the card has taken until now. From inside of a callback of samples it does nothing.
    Status drain();
    // No more callbacks after this; before its context goes.
    void end();

  private:
    static constexpr std::chrono::milliseconds kPause{5};
    static constexpr std::chrono::seconds kDrainLimit{10};

    void run(const std::stop_token& stop);
    // Tells the last ones and ends them, unless somebody has them.
    Status end_unless_held();
    // Locks drain_mutex_, and waits for it 10 s at most.
    Status enter(std::unique_lock<std::timed_mutex>& telling);
    // Tells what there is, or keeps it for later; last: other samples are asked for behind it, or none.
    Status take_all(bool last);
    void tell_backlog();
    void tell(std::span<const std::uint64_t> words, std::span<const orrCounter_t> counters,
              std::uint64_t period_ns, bool lost);
    void tell_end(std::span<const orrCounter_t> counters, std::uint64_t period_ns);
    void tell_one(orrProfSample& sample);

    struct Batch {
        std::vector<std::uint64_t> words;
        std::vector<orrCounter_t> counters;
        std::uint64_t period_ns = 0;
        bool lost = false;  // some behind it
        bool last = false;  // of what was asked for
    };
    static constexpr std::size_t kMostBatches = 256;

    Context& context_;
    std::mutex mutex_;  // of the next four; inside of drain_mutex_
    bool on_ = false;
    Holders holders_;    // it comes to be more only under drain_mutex_ as well
    bool owes_ = false;  // there is a backlog
    std::jthread thread_;
    std::condition_variable_any wake_;
    // Held while samples are told. What follows is looked at and changed with it, or by who is told.
    std::timed_mutex drain_mutex_;
    std::vector<orrCounter_t> counters_;  // in the order of their numbers; empty: none are wanted
    std::uint64_t period_ns_ = 0;
    std::vector<std::uint64_t> words_;
    std::deque<Batch> backlog_;
    // Of what has been told: the number of the last one; some were lost behind it; who was told has ended
    // them.
    std::uint64_t last_ = 0;
    bool lost_ = false, ended_ = false;
};

}  // namespace orrery::umd
