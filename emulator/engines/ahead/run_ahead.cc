#include "emulator/engines/ahead/run_ahead.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <span>
#include <utility>

namespace orrery::emu {

namespace {

// Pages of all cores together that may be copied, 16 MiB, twice that with what stood there before, and that
// may be touched, of some 100 bytes each.
constexpr std::size_t kFrames = 4096, kPages = 128 << 10;
// What is handed over to be written back takes copies of its own; cards with more cores have too many.
constexpr std::uint32_t kHandOverCores = 64;
constexpr std::size_t kLeastFrames = 24, kMostFrames = 512, kLeastPages = 512;
// A thread looks so often for work, some 10 us, before it sleeps or goes to look at other things. While the
// card plays what is computed, after which there is more, it lets others have the CPU so often before it
// sleeps: to be woken may take 100 us.
constexpr unsigned kLooks = 500, kYields = 200;

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

bool conflict(std::span<const Posted> a, std::span<const Posted> b) {
    return std::ranges::any_of(a, [&](const Posted& one) {
        return std::ranges::any_of(b, [&](const Posted& other) { return Posted::conflict(one, other); });
    });
}

// What the first has changed matters to the second.
bool meet(const Stretch& changes, const Stretch& other) {
    return std::ranges::any_of(changes.changed(), [&](std::uint16_t number) {
        const TouchedPage& page = changes.page(number);
        const TouchedPage* const theirs = other.find(page.host);
        return theirs != nullptr && TouchedPage::conflict(page, page.small, *theirs, theirs->small);
    });
}

}  // namespace

RunAhead::RunAhead(unsigned threads, std::uint32_t cores, std::uint64_t quantum)
    : quantum_(quantum), hands_over_(threads != 0 && cores <= kHandOverCores) {
    const std::size_t frames = std::clamp(kFrames / cores, kLeastFrames, kMostFrames);
    const auto add = [&] {
        all_.push_back(std::make_unique<Job>(frames, std::max(kPages / cores, kLeastPages)));
        return all_.back().get();
    };
    for (std::uint32_t i = 0; i < cores; ++i) {
        Job* const job = jobs_.emplace_back(add());
        if (!hands_over_) continue;
        job->twin = add();
        job->twin->twin = job;
    }
    // Signals are for the threads that expect them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned n = 0; n < threads; ++n)
        threads_.emplace_back([this] { work(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RunAhead::~RunAhead() {
    pause_ = true;
    {
        const std::scoped_lock lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_)
        thread.join();
}

void RunAhead::forget(std::uint32_t number) {
    jobs_[number]->odd = false;
    jobs_[number]->all_quanta = 0;
}

bool RunAhead::idle(std::uint32_t number) const {
    const Job& job = *jobs_[number];
    return job.state.load(std::memory_order_relaxed) == State::kNone && !job.odd;
}

void RunAhead::start(std::uint32_t number, VectorCore& core, std::uint64_t cut) {
    start(*jobs_[number], core, cut);
}

void RunAhead::start(Job& job, VectorCore& core, std::uint64_t cut) {
    job.core = &core;
    job.cut = cut;
    ++at_work_;
    post(job);
}

void RunAhead::post(Job& job) {
    job.begun = job.in_play = job.odd = false;
    job.quanta.clear();
    job.open = {.budget = quantum_ - job.cut};
    job.end = End::kOpen;
    job.played = 0;
    // What is not written back yet has not been done before.
    job.since = job.own_since = serial_;
    if (writing_ != 0) {
        for (const auto& other : all_)
            if (other->writes) job.since = std::min(job.since, other->write_serial);
    }
    posted_.fetch_add(1);
    job.state.store(State::kPosted, std::memory_order_release);
    if (asleep_.load() == 0) return;
    {
        const std::scoped_lock lock(mutex_);
    }
    wake_.notify_one();
}

bool RunAhead::take(Job& job) {
    State expected = State::kPosted;
    if (!job.state.compare_exchange_strong(expected, State::kRunning, std::memory_order_acquire))
        return false;
    posted_.fetch_sub(1);
    return true;
}

void RunAhead::give(Job& job) {
    const bool ready = job.end != End::kOpen;
    if (!ready) posted_.fetch_add(1);
    job.state.store(ready ? State::kReady : State::kPosted, std::memory_order_release);
    job.state.notify_all();
}

void RunAhead::compute(Job& job) {
    if (!job.begun) {
        // Its core goes on from what it has written.
        write_first(job);
        if (job.twin != nullptr) write_first(*job.twin);
        job.core->begin_ahead(job.mark, job.stretch);
        job.begun = true;
    }
    const bool whole = job.core->compute(job.open);
    if (job.core->held()) {
        job.end = End::kHeld;
    } else if (whole) {
        job.quanta.push_back(job.open);
        if (job.open.end != Quantum::End::kMore)
            job.end = End::kGroup;
        else if (job.quanta.size() == kMostQuanta || job.stretch.nearly_full())
            job.end = End::kFull;
        job.cut = job.open.full ? job.cut + job.open.cycles : 0;
        job.open = {.budget = quantum_ - job.cut};
    }
}

void RunAhead::work() {
    for (;;) {
        for (unsigned look = 0; look < kLooks || (look < kLooks + kYields && at_work_.load() != 0); ++look) {
            if (look < kLooks)
                pause();
            else
                std::this_thread::yield();
            if (posted_.load(std::memory_order_relaxed) == 0 || pause_.load()) {
                if (to_write_.load(std::memory_order_relaxed) == 0) continue;
                for (const auto& job : all_)
                    if (try_write(*job)) look = 0;
                continue;
            }
            for (const auto& job : all_) {
                if (job->dropped.load() || !take(*job)) continue;
                look = 0;
                job->by_card = false;
                do {
                    compute(*job);
                } while (job->end == End::kOpen && !pause_.load() && !job->dropped.load());
                give(*job);
                if (pause_.load()) break;
            }
        }
        std::unique_lock lock(mutex_);
        asleep_.fetch_add(1);
        wake_.wait(lock, [this] { return stop_ || (posted_.load() != 0 && !pause_.load()); });
        asleep_.fetch_sub(1);
        if (stop_) return;
    }
}

void RunAhead::help(Job& job) {
    if (own_ == nullptr && take(job)) own_ = &job;
    for (const bool guessed : {false, true}) {
        for (auto other = all_.begin(); own_ == nullptr && other != all_.end(); ++other)
            if ((*other)->guessed == guessed && take(**other)) own_ = other->get();
    }
    if (own_ != nullptr) {
        own_->by_card = true;
        compute(*own_);
        if (own_->end != End::kOpen) give(*std::exchange(own_, nullptr));
        return;
    }
    for (unsigned look = 0; look < kLooks && job.state.load(std::memory_order_acquire) == State::kRunning;
         ++look)
        pause();
    // Whoever has it may wait for this CPU.
    if (job.state.load(std::memory_order_acquire) == State::kRunning) std::this_thread::yield();
}

RunAhead::Next RunAhead::next(std::uint32_t number, Quantum& quantum) {
    Job& job = *jobs_[number];
    if (job.odd) {
        job.odd = false;
        quantum = job.open;
        return Next::kPlay;
    }
    State state = job.state.load(std::memory_order_acquire);
    if (state == State::kNone) return Next::kNone;
    if (state != State::kReady) {
        help(job);
        if (job.state.load(std::memory_order_acquire) != State::kReady) return Next::kWait;
    }
    if (!job.in_play) {
        if (job.writes) finish_write(job);
        if (meets_others(number)) {
            settle();
            return Next::kOrder;
        }
        job.in_play = true;
    }
    if (job.played == job.quanta.size()) {  // held
        quantum = job.open;
        commit(number);
        settle();
        return Next::kGoOn;
    }
    Quantum& played = job.quanta[job.played++];
    played.began = quantum.began;
    quantum = played;
    ++job.all_quanta;
    if (job.played == job.quanta.size() && job.end != End::kHeld) {
        const bool full = job.end == End::kFull;
        commit(number);
        if (full) start(number, *job.core, job.cut);
    }
    return Next::kPlay;
}

bool RunAhead::meets_others(std::uint32_t number) const {
    const Job& job = *jobs_[number];
    for (const Done& done : done_) {
        if (done.serial < (done.core == number ? job.own_since : job.since)) continue;
        const TouchedPage* const mine = job.stretch.find(done.page.host);
        if (mine == nullptr) continue;
        if (TouchedPage::conflict(*mine, mine->small, done.page, &done.small) ||
            conflict(job.stretch.posted(), done.posted))
            return true;
    }
    for (const auto& other : all_) {
        if (other.get() == &job || !other->in_play || other->state.load() == State::kNone) continue;
        if (meet(job.stretch, other->stretch) || meet(other->stretch, job.stretch)) return true;
        if (conflict(job.stretch.posted(), other->stretch.posted())) return true;
    }
    return false;
}

void RunAhead::commit(std::uint32_t number) {
    Job& job = *jobs_[number];
    if (!has_guess(number)) job.core->end_ahead();
    if (job.writes) finish_write(job);
    job.state.store(State::kNone, std::memory_order_relaxed);
    --at_work_;
    for (const std::uint16_t each : job.stretch.changed()) {
        const TouchedPage& page = job.stretch.page(each);
        done_.push_back({serial_, number, page, {}, {}});
        if (page.exact && page.frame != nullptr) done_.back().small = *page.small;
        if (page.posted == 0) continue;
        std::ranges::copy_if(job.stretch.posted(), std::back_inserter(done_.back().posted),
                             [&](const Posted& each) { return each.host == page.host; });
    }
    // What this thread has computed is in this CPU's caches.
    if (!hands_over_ || job.by_card || !job.stretch.hand_over(job.write_back)) {
        job.stretch.commit();
    } else {
        job.writes = true;
        job.write_serial = serial_;
        ++writing_;
        to_write_.fetch_add(1);
        job.write.store(Write::kAsked, std::memory_order_release);
    }
    ++serial_;
    forget_done();
}

// What was done before all that are not compared yet.
void RunAhead::forget_done() {
    std::uint64_t oldest = serial_;
    for (const auto& job : all_) {
        if (job->state.load(std::memory_order_relaxed) != State::kNone && !job->in_play)
            oldest = std::min(oldest, job->since);
        // A stretch that is posted meanwhile may read what stood there before.
        if (job->writes && job->write.load(std::memory_order_acquire) != Write::kNone)
            oldest = std::min(oldest, job->write_serial);
    }
    const auto first = std::ranges::find_if(done_, [&](const Done& done) { return done.serial >= oldest; });
    // Not one by one, as the others have to be moved.
    if (first - done_.begin() >= done_.end() - first) done_.erase(done_.begin(), first);
}

void RunAhead::write_first(Job& job) {
    while (job.write.load(std::memory_order_acquire) != Write::kNone) {
        if (!try_write(job)) job.write.wait(Write::kRunning, std::memory_order_acquire);
    }
}

// False: nobody has asked, or somebody else does it.
bool RunAhead::try_write(Job& job) {
    Write expected = Write::kAsked;
    if (!job.write.compare_exchange_strong(expected, Write::kRunning, std::memory_order_acquire))
        return false;
    to_write_.fetch_sub(1);
    job.write_back.carry_out();
    job.write.store(Write::kNone, std::memory_order_release);
    job.write.notify_all();
    return true;
}

void RunAhead::finish_write(Job& job) {
    write_first(job);
    job.writes = false;
    --writing_;
}

void RunAhead::join() {
    for (auto job = all_.begin(); writing_ != 0; ++job)
        if ((*job)->writes) finish_write(**job);
}

void RunAhead::settle() {
    join();
    if (at_work_ == 0) return;
    pause_.store(true);
    if (own_ != nullptr) give(*std::exchange(own_, nullptr));
    for (const auto& job : all_)
        take_away(*job);
    for (const auto& job : all_)
        if (job->guessed) undo_guess(*job);
    for (const auto& job : all_) {
        if (job->state.load(std::memory_order_relaxed) != State::kNone) go_back(*job);
        job->state.store(State::kNone, std::memory_order_relaxed);
    }
    at_work_ = 0;
    done_.clear();
    pause_.store(false);
}

void RunAhead::take_away(Job& job) {
    for (;;) {
        const State state = job.state.load(std::memory_order_acquire);
        if (state == State::kRunning) {
            job.state.wait(State::kRunning, std::memory_order_acquire);
        } else if (state != State::kPosted || take(job)) {
            return;
        }
    }
}

bool RunAhead::may_guess(std::uint32_t number) const {
    const Job& job = *jobs_[number];
    return job.twin != nullptr && job.in_play && job.state.load(std::memory_order_relaxed) == State::kReady &&
           job.played == 1 && job.end == End::kGroup && job.quanta.back().end == Quantum::End::kGroupDone &&
           !has_guess(number);
}

void RunAhead::guess(std::uint32_t number, const KernelLaunch& launch, std::uint64_t group) {
    Job& job = *jobs_[number]->twin;
    VectorCore& core = *jobs_[number]->core;
    if (!core.begin_next(job.before, launch, group)) return;
    job.guessed = true;
    job.launch = launch.serial;
    job.group = group;
    job.all_quanta = 0;
    start(job, core, 0);
}

bool RunAhead::has_guess(std::uint32_t number) const {
    const Job* const next = jobs_[number]->twin;
    return next != nullptr && next->guessed;
}

bool RunAhead::confirm(std::uint32_t number, const KernelLaunch& launch, std::uint64_t group,
                       std::uint32_t place) {
    if (!has_guess(number)) return false;
    Job& next = *jobs_[number]->twin;
    if (next.launch != launch.serial || next.group != group || next.core->place() != place) {
        drop_guess(number);
        return false;
    }
    next.guessed = false;
    jobs_[number] = &next;
    return true;
}

void RunAhead::drop_guess(std::uint32_t number) {
    if (!has_guess(number)) return;
    Job& job = *jobs_[number]->twin;
    job.dropped.store(true);
    if (own_ == &job) give(*std::exchange(own_, nullptr));
    take_away(job);
    job.dropped.store(false);
    undo_guess(job);
    --at_work_;
}

void RunAhead::undo_guess(Job& job) {
    job.core->leave_next(job.before, job.begun ? &job.stretch : nullptr);
    job.guessed = false;
    job.state.store(State::kNone, std::memory_order_relaxed);
}

void RunAhead::go_back(Job& job) {
    if (!job.begun) return;
    VectorCore& core = *job.core;
    core.end_ahead();
    core.go_back(job.mark, job.stretch);
    for (std::size_t i = 0; i < job.played; ++i) {
        Quantum again{.began = job.quanta[i].began, .budget = job.quanta[i].budget};
        while (!core.compute(again)) {
        }
        if (again.end == job.quanta[i].end) continue;
        // Somebody outside of the card has written what it reads: it may be either, but not more than one.
        job.open = again;
        job.odd = true;
        break;
    }
    core.forget_stretch();
}

}  // namespace orrery::emu
