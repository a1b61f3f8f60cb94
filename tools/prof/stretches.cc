#include "tools/prof/stretches.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace orrery::prof {
namespace {

// Times are of anybody's file: that later ones can be subtracted.
std::int64_t held(std::uint64_t ns) {
    return static_cast<std::int64_t>(std::min(ns, std::uint64_t{1} << 62));
}
// At most 2^64 / 1000.
std::int64_t whole_ns(std::uint64_t ps) {
    return static_cast<std::int64_t>(ps / 1000);
}

// Of the host's moments at which work may begin.
struct Window {
    std::int64_t least = 0, most = 0;
};

Window window_of(const HostClock& clock, const TimedWork& work) {
    const HostClock::Moment begin = *clock.host_of(work.begin_ps), end = *clock.host_of(work.end_ps);
    const std::int64_t length = whole_ns(work.end_ps - work.begin_ps);
    const Window window{std::max(held(begin.least_ns), held(end.least_ns) - length),
                        std::min(held(begin.most_ns), held(end.most_ns) - length)};
    if (window.least <= window.most) return window;
    // The host took longer for it, or less: then it is its begin that is right.
    const std::int64_t at = window.least == held(begin.least_ns) ? held(begin.least_ns) : held(begin.most_ns);
    return {at, at};
}

// When it ended; no earlier than that it begins when it was submitted, if that can be.
Window end_of_wait(const HostClock& clock, const TimedWork& wait) {
    const HostClock::Moment end = *clock.host_of(wait.end_ps);
    const std::int64_t submitted = held(wait.submitted_ns) + whole_ns(wait.end_ps - wait.begin_ps);
    return {std::max(held(end.least_ns), std::min(submitted, held(end.most_ns))), held(end.most_ns)};
}

// Takes all in the order of the card's time.
class Placer {
  public:
    void add(std::uint64_t begin_ps, std::uint64_t end_ps, const Window& window) {
        if (begin_ps < busy_ps_) {
            const std::int64_t behind = whole_ns(begin_ps - now_.begin_ps);
            const Window here{std::max(window_.least, window.least - behind),
                              std::min(window_.most, window.most - behind)};
            // The card's time has gone faster than the host's: what overlaps cannot come earlier than that.
            const bool too_early = window.most - behind < window_.least;
            if (here.least <= here.most || too_early) {
                if (!too_early) window_ = here;
                busy_ps_ = std::max(busy_ps_, end_ps);
                until(end_ps);
                return;
            }
        }
        close();
        open_ = true;
        now_.begin_ps = begin_ps;
        window_ = window;
        busy_ps_ = end_ps;
        until(end_ps);
    }
    // Something lasts so long, whatever becomes of it.
    void until(std::uint64_t end_ps) { reached_ps_ = std::max(reached_ps_, end_ps); }

    std::vector<Stretch> finish() {
        close();
        return std::move(all_);
    }

  private:
    void close() {
        if (!open_) return;
        std::int64_t at = window_.least + (window_.most - window_.least) / 2;
        if (!all_.empty()) {
            // Behind all that has ended on the card by then, and at least as late as what has not; as far
            // behind it as on the card, if that can be.
            const Stretch& last = all_.back();
            const auto behind = [&](std::uint64_t ps) {
                const std::uint64_t by = ps - last.begin_ps;
                return held(last.begin_ns) + whole_ns(by) + (by % 1000 != 0 ? 1 : 0);
            };
            at = std::max({at, behind(std::min(now_.begin_ps, last.end_ps)),
                           std::min(behind(now_.begin_ps), window_.most)});
        }
        now_.begin_ns = static_cast<std::uint64_t>(at);
        now_.end_ps = reached_ps_;
        all_.push_back(now_);
    }

    std::vector<Stretch> all_;
    Stretch now_;
    Window window_;
    bool open_ = false;
    std::uint64_t busy_ps_ = 0;     // work of this stretch lasts so long
    std::uint64_t reached_ps_ = 0;  // anything does
};

}  // namespace

const Stretch& Stretches::of(std::uint64_t begin_ps, std::uint64_t end_ps, bool waits) const {
    const auto behind = std::ranges::upper_bound(all, waits ? end_ps : begin_ps, {}, &Stretch::begin_ps);
    return behind == all.begin() ? all.front() : *std::prev(behind);
}

std::optional<std::uint64_t> Stretches::ns(const HostClock& clock, std::uint64_t ps) const {
    const auto next = std::ranges::upper_bound(all, ps, {}, &Stretch::begin_ps);
    if (next == all.begin() || (next == all.end() && ps > all.back().end_ps)) {
        const auto moment = clock.host_of(ps);
        if (!moment) return {};
        return next == all.begin() ? std::min(moment->at_ns(), all.front().begin_ns)
                                   : std::max(moment->at_ns(), all.back().ns(all.back().end_ps));
    }
    const Stretch& last = *std::prev(next);
    if (ps <= last.end_ps) return last.ns(ps);
    const std::uint64_t from = last.ns(last.end_ps);
    if (next->begin_ns <= from) return from;  // of nobody's times
    const double share =
        static_cast<double>(ps - last.end_ps) / static_cast<double>(next->begin_ps - last.end_ps);
    return from + static_cast<std::uint64_t>(share * static_cast<double>(next->begin_ns - from));
}

Stretches stretches_of(const HostClock& clock, const std::vector<TimedWork>& work) {
    // By the card's time: work where it begins, waits there and where they end.
    std::vector<std::pair<std::uint64_t, const TimedWork*>> moments;
    for (const TimedWork& one : work) {
        moments.emplace_back(one.begin_ps, &one);
        if (one.waits && one.end_ps > one.begin_ps) moments.emplace_back(one.end_ps, &one);
    }
    std::ranges::sort(moments);
    Placer placer;
    for (const auto& [ps, one] : moments) {
        if (!one->waits) {
            placer.add(ps, one->end_ps, window_of(clock, *one));
        } else if (ps < one->end_ps) {
            placer.until(one->end_ps);
        } else {
            placer.add(ps, ps, end_of_wait(clock, *one));
        }
    }
    Stretches made{placer.finish()};
    for (const TimedWork& one : work) {
        const std::uint64_t ps = one.waits ? one.end_ps : one.begin_ps;
        const HostClock::Moment moment = *clock.host_of(ps);
        const std::uint64_t ns = made.of(one.begin_ps, one.end_ps, one.waits).ns(ps);
        for (const std::uint64_t bound : {moment.least_ns, moment.most_ns})
            made.worst_ns = std::max(made.worst_ns, ns > bound ? ns - bound : bound - ns);
    }
    return made;
}

}  // namespace orrery::prof
