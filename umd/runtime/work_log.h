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
#include <vector>

#include <orrery/prof.h>

#include "umd/prof/profiler.h"
#include "umd/prof/range_work.h"
#include "umd/prof/steps.h"
#include "umd/runtime/look_pause.h"
#include "umd/runtime/stream_trails.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Context;
class Stream;

// Of a card. Threads: any.
class WorkLog {
  public:
    explicit WorkLog(Context& context) : context_(context) {}
    // Work is submitted, and records are wanted from now on, until no subscriber wants any. False: the card
    // makes none.
    bool want() noexcept {
        if (!makes_records()) return false;
        // Counts of two threads may become one: then it is looked a little later.
        const std::size_t own = own_.load(std::memory_order_relaxed) + 1;
        own_.store(own, std::memory_order_relaxed);
        if (own >= LookPause::kManyOwn && !hurrying_.load(std::memory_order_relaxed)) hurry();
        return true;
    }
    // Goes up whenever records begin to be wanted: what was submitted in an earlier life was for others.
    std::uint64_t life() const noexcept { return life_.load(); }
    // The card makes records; for a fraction of a second longer than somebody wants them.
    bool is_on() const noexcept { return is_on(state_.load()); }
    // It hardly looks for them, as nothing is under way: who submits work has it look again (want()).
    bool dozes() const noexcept { return state_.load() == State::kDozing; }
    // Tells all that the card has recorded until now. It waits for others who do so 10 s at most. From
    // inside of a callback of work it does nothing; inside of another, all is told a little later, by the
    // log's own thread. An error: the card records nothing.
    Status drain();
    // No more callbacks after this; before its context goes.
    void end();

  private:
    enum class State : std::uint8_t { kOff, kOn, kDozing, kRefused };
    static bool is_on(State state) noexcept { return state == State::kOn || state == State::kDozing; }

    bool makes_records() noexcept;
    void hurry() noexcept;  // its thread looks now
    void count_own_anew() noexcept;
    void run(const std::stop_token& stop);
    // With mutex_, which it lets go: until there may be something again.
    void doze(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
    bool under_way();  // or done, and not told yet
    Status tell_all();
    // What is to be told of a record of the card's, with all that it points to; the stream's name only where
    // it is kept.
    struct Kept {
        orrProfRecord record = ORR_INIT(orrProfRecord);
        orrProfWork work = ORR_INIT(orrProfWork);
        std::optional<orrProfSignal> signal{};  // then it is that, and no work
        std::string stream_name{}, semaphore_name{};
        std::optional<orrProfWorkCounters> counters{};
        HeldRanges ranges{};
        // For the next record: what only some have. To make all anew is a tenth of what one takes.
        void clear();
    };
    // False: nothing of it.
    bool read_one(const drm_orr_work_record& record, Stream& stream, Kept& one);
    void keep(Kept one);
    void tell(Kept& one, const std::string& stream_name, ThreadMarks& marks);
    void tell_backlog(ThreadMarks& marks);
    void tell_lost(std::uint64_t lost);
    void tell_mark(const StreamMarkNote& mark) const;
    static constexpr std::size_t kMostBacklog = std::size_t{1} << 16;  // then the oldest go

    Context& context_;
    Profiler& profiler_ = Profiler::get();
    std::atomic<State> state_{State::kOff};
    std::atomic<std::uint64_t> life_{0};
    std::atomic<bool> counters_{false};  // while it is on: what jobs did has been asked for
    std::atomic<bool> overrun_{false};   // the card said that some were gone before they were read
    std::atomic<std::size_t> found_{0};  // records that the card gave since its thread asked last
    std::atomic<std::size_t> own_{0};    // submitted since it last looked, while its pauses are long
    std::atomic<bool> hurrying_{false};  // it was told that this is much
    std::mutex mutex_;                   // of the next three, and of changes of these
    bool hurried_ = false;
    Error refused_;
    std::jthread thread_;
    std::condition_variable_any wake_;
    std::timed_mutex drain_mutex_;            // of what follows, and held while work is told
    std::vector<drm_orr_work_counters> did_;  // of the records that are read at once, if that is asked for
    std::deque<Kept> backlog_;
    std::deque<StepNote> steps_;         // that are done and not told yet
    std::deque<StreamMarkNote> marks_;   // likewise
    std::optional<std::uint64_t> lost_;  // some, so many at least beside those that trails count
};

}  // namespace orrery::umd
