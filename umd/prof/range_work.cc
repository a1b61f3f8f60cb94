#include "umd/prof/range_work.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace orrery::umd {

struct RangeSums {
    std::uint64_t number = 0;
    std::uint64_t holders = 1;
    std::uint64_t life = 0;     // see prof_range_life
    std::uint64_t process = 0;  // goes up in a child after fork()
    RangeSums* around = nullptr;
    RangeSums* next = nullptr;  // of those that have ended
    std::string text;
    const char* domain = nullptr;
    std::uint64_t depth = 0, correlation = 0, external = 0, thread = 0;
    orrProfRangeWork work = ORR_INIT(orrProfRangeWork);
    orrProfWorkCounters counters = ORR_INIT(orrProfWorkCounters);
};

namespace {

constexpr std::size_t kMaxText = 1023;
// As long as others wait for whoever is told of work.
constexpr std::chrono::seconds kTellLimit{10};
// Whoever ends a range, or looks for the card's records, is not kept by others who end more and more.
constexpr std::size_t kMostAtOnce = 4'096;

void add_counters(orrProfWorkCounters& sum, const orrProfWorkCounters& more) noexcept {
    using Words = std::array<std::uint64_t, sizeof(orrProfWorkCounters) / sizeof(std::uint64_t)>;
    auto all = std::bit_cast<Words>(sum);
    const auto own = std::bit_cast<Words>(more);
    all[0] = std::min(all[0], own[0]);  // the size: what not all of them know is not known
    const std::size_t known = all[0] / sizeof(std::uint64_t);
    for (std::size_t i = 1; i < all.size(); ++i)
        all.at(i) = i < known ? all.at(i) + own.at(i) : 0;
    const auto cores = std::max(sum.cores, more.cores), ports = sum.link_ports | more.link_ports;
    sum = std::bit_cast<orrProfWorkCounters>(all);
    const auto knows = [&](std::size_t offset) { return known > offset / sizeof(std::uint64_t); };
    sum.cores = knows(offsetof(orrProfWorkCounters, cores)) ? cores : 0;
    sum.link_ports = knows(offsetof(orrProfWorkCounters, link_ports)) ? ports : 0;
}

void add_work(RangeSums& to, const orrProfWork& one) noexcept {
    orrProfRangeWork& sum = to.work;
    const bool kernel = one.operation == orrProfOperationKernel;
    ++sum.records;
    (kernel ? sum.kernel_ps : sum.copy_ps) += one.end_ps - one.begin_ps;
    sum.used_ps += one.used_ps;
    if (one.counters != nullptr) {
        ++sum.counted;
        add_counters(to.counters, *one.counters);
    }
    if (one.outcome == orrProfOutcomePreempted) return;
    ++(kernel ? sum.kernels : one.operation == orrProfOperationFill ? sum.fills : sum.copies);
    sum.failed += one.outcome == orrProfOutcomeFailed ? 1 : 0;
}

void add_range(RangeSums& to, const RangeSums& within) noexcept {
    const orrProfRangeWork& more = within.work;
    to.work.kernels += more.kernels;
    to.work.copies += more.copies;
    to.work.fills += more.fills;
    to.work.failed += more.failed;
    to.work.missing += more.missing;
    to.work.records += more.records;
    to.work.counted += more.counted;
    to.work.kernel_ps += more.kernel_ps;
    to.work.copy_ps += more.copy_ps;
    to.work.used_ps += more.used_ps;
    if (more.counted != 0) add_counters(to.counters, within.counters);
}

// All ranges of the process that somebody wants to know of. Nothing is called while mutex_ is held.
class RangeBook {
  public:
    static RangeBook& get() {
        static RangeBook* const book = std::make_unique<RangeBook>().release();  // threads may end late
        return *book;
    }
    RangeBook() {
        // A thread that forks holds the mutex meanwhile, so the child finds it in order.
        (void)::pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                               [] {
                                   get().enter_child();
                                   get().mutex_.unlock();
                               });
    }

    RangeSums* begin(const RangeBegun& begun) noexcept {
        std::unique_ptr<RangeSums> made;
        try {
            made = std::make_unique<RangeSums>();
            made->text = std::string_view(begun.text).substr(0, kMaxText);
        } catch (const std::exception&) {
            made = nullptr;
        }
        // Both may call the system, which a fork of another thread may hold meanwhile.
        const ThreadMarks& marks = thread_marks();
        const std::uint64_t thread = prof_thread();
        const std::lock_guard lock(mutex_);
        // Of those who wanted it before nobody is told any more.
        if (const std::uint64_t life = prof_range_life.load(); std::exchange(untold_life_, life) != life)
            untold_ = 0;
        if (made == nullptr || count_ >= kMostRanges) {
            ++untold_;
            return nullptr;
        }
        ++count_;
        made->number = ++last_;
        made->life = untold_life_;
        made->process = process_;
        made->domain = begun.domain;
        made->depth = begun.depth;
        made->correlation = marks.correlation;
        made->external = marks.external;
        made->thread = thread;
        made->work.begin_ns = begun.begin_ns;
        // What began for others is told to nobody.
        if (begun.around != nullptr && told(*begun.around)) {
            made->around = begun.around;
            ++made->around->holders;
            made->work.around = made->around->number;
        }
        return made.release();
    }
    void end(RangeSums* range, std::uint64_t end_ns, bool popped) noexcept {
        const std::lock_guard lock(mutex_);
        range->work.end_ns = end_ns;
        range->work.ended = popped ? 1 : 0;
        let_go(range);
    }
    void hold(const std::vector<RangeSums*>& ranges) noexcept {
        const std::lock_guard lock(mutex_);
        for (RangeSums* range : ranges)
            ++range->holders;
    }
    void let_go_of(const std::vector<RangeSums*>& ranges) noexcept {
        const std::lock_guard lock(mutex_);
        for (RangeSums* range : ranges)
            let_go(range);
    }
    template <typename What>
    void of_each(const std::vector<RangeSums*>& ranges, const What& what) noexcept {
        const std::lock_guard lock(mutex_);
        for (RangeSums* range : ranges)
            what(*range);
    }
    // One thread tells them at a time, so they are told in the order in which they ended.
    bool begin_telling() noexcept { return !telling_.exchange(true, std::memory_order_acquire); }
    void end_telling() noexcept { telling_.store(false, std::memory_order_release); }
    bool has_done() noexcept {
        const std::lock_guard lock(mutex_);
        return first_ != nullptr;
    }
    // The one that has ended first; null: none has. *untold: how many began since the last one that is told
    // and are not; no value: those whom this one is for have gone, or it is the parent's.
    RangeSums* take_done(std::optional<std::uint64_t>& untold) noexcept {
        const std::lock_guard lock(mutex_);
        RangeSums* const range = first_;
        if (range == nullptr) return nullptr;
        first_ = range->next;
        if (first_ == nullptr) last_done_ = nullptr;
        untold.reset();
        if (told(*range)) untold = range->life == untold_life_ ? std::exchange(untold_, 0) : 0;
        return range;
    }
    // 0: it will not be told.
    std::uint64_t number_of(const RangeSums& range) noexcept {
        const std::lock_guard lock(mutex_);
        return told(range) ? range.number : 0;
    }
    // Of one that was taken.
    void forget(RangeSums* range) noexcept {
        const std::unique_ptr<RangeSums> gone(range);
        const std::lock_guard lock(mutex_);
        count_ -= range->process == process_ ? 1 : 0;
    }

  private:
    bool told(const RangeSums& range) const {
        return range.process == process_ && range.life == prof_range_life.load() && range_work_wanted();
    }
    void let_go(RangeSums* range) noexcept {
        while (range != nullptr && --range->holders == 0) {
            RangeSums* const around = range->around;
            if (around != nullptr) add_range(*around, *range);
            if (told(*range)) {
                (last_done_ == nullptr ? first_ : last_done_->next) = range;
                last_done_ = range;
            } else {
                count_ -= range->process == process_ ? 1 : 0;
                const std::unique_ptr<RangeSums> gone(range);
            }
            range = around;
        }
    }
    // The parent's cards tell the parent.
    void enter_child() noexcept {
        ++process_;
        count_ = 0;
        untold_ = 0;
        telling_.store(false);  // that was another thread, or this one tells no more of what it had
        last_done_ = nullptr;
        while (first_ != nullptr) {
            const std::unique_ptr<RangeSums> gone(first_);
            first_ = gone->next;
        }
    }

    std::mutex mutex_;
    std::size_t count_ = 0;
    std::uint64_t last_ = 0, process_ = 0, untold_ = 0, untold_life_ = 0;
    std::atomic<bool> telling_{false};
    RangeSums *first_ = nullptr, *last_done_ = nullptr;
};

void tell(const RangeSums& range, std::uint64_t untold) noexcept {
    orrProfRangeWork work = range.work;
    work.untold = untold;
    work.counters = work.counted == 0 ? nullptr : &range.counters;
    orrProfRecord record = ORR_INIT(orrProfRecord);
    record.kind = orrProfRangeDone;
    record.name = range.text.c_str();
    record.params = &work;
    record.domain = range.domain;
    record.depth = range.depth;
    record.correlation = range.correlation;
    record.external = range.external;
    record.thread = range.thread;
    record.range = range.number;
    Profiler::get().tell_as_it_is(record, orrProfWantRangeWork);
}

}  // namespace

RangeSums* begin_range(const RangeBegun& begun) noexcept {
    return RangeBook::get().begin(begun);
}

void end_range(RangeSums* range, std::uint64_t end_ns, bool popped) noexcept {
    if (range != nullptr) RangeBook::get().end(range, end_ns, popped);
}

std::uint64_t range_number(const RangeSums* range) noexcept {
    return range == nullptr ? 0 : RangeBook::get().number_of(*range);
}

std::uint64_t range_depth(const RangeSums& range) noexcept {
    return range.depth;
}

RangesAround::RangesAround(std::vector<RangeSums*> innermost) noexcept : innermost_(std::move(innermost)) {
    RangeBook::get().hold(innermost_);
}

RangesAround::~RangesAround() {
    RangeBook::get().let_go_of(innermost_);
}

void RangesAround::add(const orrProfWork& work) const noexcept {
    RangeBook::get().of_each(innermost_, [&](RangeSums& range) { add_work(range, work); });
}

void RangesAround::miss() const noexcept {
    RangeBook::get().of_each(innermost_, [](RangeSums& range) { ++range.work.missing; });
}

bool tell_ranges_done(bool wait) noexcept {
    // Whoever is inside of a callback would tell them past it.
    if (!prof_has(orrProfWantRangeWork) || thread_marks().inside != 0) return true;
    RangeBook& book = RangeBook::get();
    const auto until = std::chrono::steady_clock::now() + kTellLimit;
    std::size_t left = wait ? kMostRanges : kMostAtOnce;
    for (bool once = wait; once || (left != 0 && book.has_done()); once = false) {
        while (!book.begin_telling()) {
            // Who tells looks once more when it has ended.
            if (!wait) return true;
            if (std::chrono::steady_clock::now() >= until) return false;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        std::optional<std::uint64_t> untold;
        for (; left != 0; --left) {
            RangeSums* const range = book.take_done(untold);
            if (range == nullptr) break;
            if (untold) tell(*range, *untold);
            book.forget(range);
        }
        book.end_telling();
    }
    return true;
}

}  // namespace orrery::umd
