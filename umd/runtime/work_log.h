// What the card did and when, for profilers: what streams have it do is remembered while somebody wants to
// know, and found again when the card's record of it comes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <orrery/prof.h>

#include "umd/prof/profiler.h"
#include "umd/prof/ranges.h"
#include "umd/prof/steps.h"
#include "umd/runtime/mutex.h"
#include "umd/runtime/stream_trails.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Context;
class Stream;

// What is to be told of a packet, beside when it ran.
struct WorkNote {
    orrProfOperation operation = orrProfOperationOther;
    const char* name = nullptr;  // as OpNote has it
    std::uint64_t bytes = 0;
    std::int32_t source = orrProfPlaceUnknown, destination = orrProfPlaceUnknown;
    std::uint64_t groups = 0;
    std::uint32_t items = 0;
    std::uint64_t semaphore = 0, generation = 0, value = 0;  // of waits
};

// Who signals what in this process, so that a wait can be told with who ended it: where that is not sure,
// with nobody. Threads: any.
class SignalLog {
  public:
    struct Source {
        orrProfFrom from = orrProfFromUnknown;
        std::uint64_t stream = 0, index = 0;
    };
    static SignalLog& get();
    // A semaphore begins at this address; shared: others than this process may signal it.
    void begin(std::uint64_t semaphore, bool shared) noexcept;
    // Which of those at this address it is, for find().
    std::uint64_t generation(std::uint64_t semaphore) const;
    // The same, and from now on there is one. 0: no memory for it.
    std::uint64_t identify(std::uint64_t semaphore) noexcept;
    // Before anybody can see the signal.
    void note(std::uint64_t semaphore, std::uint64_t value, Source source) noexcept;
    // A signal was submitted that is not noted, as nobody wants to know of work.
    static void miss() noexcept {
        if (!missed_.load(std::memory_order_relaxed)) missed_.store(true, std::memory_order_relaxed);
    }
    // Not all signals of this process have been noted.
    static bool missed() { return missed_.load(std::memory_order_relaxed); }
    // Who raised it to so much; not what stands behind the wait in its own stream. Outside: nobody noted it,
    // and it is shared.
    Source find(std::uint64_t semaphore, std::uint64_t generation, std::uint64_t value, std::uint64_t stream,
                std::uint64_t index) const;

  private:
    static constexpr std::size_t kMostOfOne = 4'096;
    static constexpr std::size_t kMost = std::size_t{1} << 20;  // then all that is known is forgotten

    struct Signals {
        std::uint64_t generation = 0;
        bool shared = false;
        std::uint64_t dropped = 0;  // the highest value of which the source is forgotten
        std::map<std::uint64_t, Source> sources;
    };

    mutable std::mutex mutex_;
    std::unordered_map<std::uint64_t, Signals> signals_;
    std::size_t count_ = 0;
    std::uint64_t generations_ = 0;
    static inline std::atomic<bool> missed_{false};
};

// A stream's packets of which the card may still have something to say. Threads: any.
class WorkTrail {
  public:
    WorkTrail() = default;
    ~WorkTrail() { end_ranges(); }
    WorkTrail(const WorkTrail&) = delete;
    WorkTrail& operator=(const WorkTrail&) = delete;
    // Of this thread's call, in that life of the log.
    void add(std::uint64_t index, const WorkNote& note, std::uint64_t life) noexcept;
    // What to tell of a record. False: nothing, as nobody wanted it, or it is half of a wait. *semaphore:
    // that it waited for, or 0. *ranges: those it was submitted in; null: it will not be told as work.
    bool find(const drm_orr_work_record& record, orrProfRecord& told, orrProfWork& work,
              std::uint64_t& semaphore, HeldRanges* ranges);
    void add_signal(std::uint64_t index, std::uint64_t va, std::uint64_t value, std::uint64_t semaphore,
                    std::int32_t memory, std::uint64_t life) noexcept;
    // The same of a record of a signal; false: nobody wanted it.
    bool find_signal(const drm_orr_work_record& record, orrProfRecord& told, orrProfSignal& signal);
    void add_mark(StreamMarkNote note) noexcept;
    // Of packets below, of which the card has said all, the marks with their times go behind `marks`.
    void take_marks(std::uint64_t below, std::deque<StreamMarkNote>& marks);
    // Records were lost, maybe some of what is here now.
    void lose();
    // The card has said all that it will of packets below. How many of them were lost, since the last one.
    std::uint64_t drop(std::uint64_t below);
    // The card will say no more of what is here: its ranges need not wait for it.
    void end_ranges() noexcept;
    // These packets are a step, the first of the submission at `index`; before the card can come to them.
    void add_step(std::uint64_t index, const StepNote& note, std::uint64_t life) noexcept;
    // Of packets below, of which the card has said all, the steps with their times go behind `steps`.
    void take_steps(std::uint64_t below, std::deque<StepNote>& steps);
    std::uint64_t number() const { return number_; }

  private:
    static constexpr std::size_t kMost = std::size_t{1} << 20;  // then the oldest go
    static constexpr std::size_t kMostSteps = std::size_t{1} << 18;

    struct Entry {
        std::uint64_t index = 0, correlation = 0, external = 0, thread = 0, submitted_ns = 0;
        WorkNote note;
        bool told = false;    // its end
        HeldRanges ranges{};  // that it was submitted in; null: none, or its end is told with them
    };
    static std::uint64_t next_number();
    // What comes at this index is wanted in that life.
    void live(std::uint64_t index, std::uint64_t life);
    void forget_first() noexcept;  // which is lost if it is below, and was not told
    void note_step(const drm_orr_work_record& record);

    const std::uint64_t number_ = next_number();
    Mutex mutex_;
    std::deque<Entry> entries_;   // by index
    bool has_ranges_ = false;     // some of them may
    std::size_t next_ = 0;        // behind the one that was found last: most come in that order
    std::deque<StepNote> steps_;  // by index, too: none has a packet of another one
    std::optional<drm_orr_work_record> wait_;
    SignalTrail signals_;
    MarkTrail marks_;
    std::uint64_t life_ = 0;        // of what was added last
    std::uint64_t last_index_ = 0;  // that was noted, plus 1
    std::uint64_t lost_below_ = 0, lost_ = 0;
};

// Of a card. Threads: any.
class WorkLog {
  public:
    explicit WorkLog(Context& context) : context_(context) {}
    // Records are wanted from now on, until no subscriber wants any. False: the card makes none.
    bool want() noexcept;
    // Goes up whenever records begin to be wanted: what was submitted in an earlier life was for others.
    std::uint64_t life() const noexcept { return life_.load(); }
    // The card makes records; for a little longer than somebody wants them.
    bool is_on() const noexcept { return state_.load() == State::kOn; }
    // Tells all that the card has recorded until now. It waits for others who do so 10 s at most. From
    // inside of a callback of work it does nothing; inside of another, all is told a little later, by the
    // log's own thread. An error: the card records nothing.
    Status drain();
    // No more callbacks after this; before its context goes.
    void end();

  private:
    // From look to look. The card's room, for 43,000 records (6,000 with what jobs did), is for all
    // processes.
    static constexpr std::chrono::milliseconds kPause{5};
    enum class State : std::uint8_t { kOff, kOn, kRefused };

    void run(const std::stop_token& stop);
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
    std::mutex mutex_;                   // of the next two, and of changes of these
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
