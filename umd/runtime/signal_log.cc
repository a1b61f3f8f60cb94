#include "umd/runtime/signal_log.h"

#include <iterator>
#include <new>

#include "umd/prof/profiler.h"

namespace orrery::umd {

SignalLog& SignalLog::get() {
    static SignalLog* const log = new SignalLog;  // streams may go after static objects
    return *log;
}

void SignalLog::begin(std::uint64_t semaphore, bool shared) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = signals_.find(semaphore);
    // What nobody has asked for yet needs no entry.
    if (found == signals_.end() && !shared && !prof_has(orrProfWantWork)) return;
    try {
        Signals& own = found == signals_.end() ? signals_[semaphore] : found->second;
        count_ -= own.sources.size();
        own = {.generation = ++generations_, .shared = shared, .dropped = 0, .sources = {}};
    } catch (const std::bad_alloc&) {
        miss();
    }
}

std::uint64_t SignalLog::generation(std::uint64_t semaphore) const {
    const std::lock_guard lock(mutex_);
    const auto own = signals_.find(semaphore);
    return own == signals_.end() ? 0 : own->second.generation;
}

std::uint64_t SignalLog::identify(std::uint64_t semaphore) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        Signals& own = signals_[semaphore];
        if (own.generation == 0) own.generation = ++generations_;
        return own.generation;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

void SignalLog::note(std::uint64_t semaphore, std::uint64_t value, Source source) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        if (count_ == kMost) {
            for (auto& [va, own] : signals_) {
                if (own.sources.empty()) continue;
                own.dropped = std::prev(own.sources.end())->first;
                own.sources.clear();
            }
            count_ = 0;
        }
        Signals& own = signals_[semaphore];
        if (own.sources.insert_or_assign(value, source).second) ++count_;
        if (own.sources.size() <= kMostOfOne) return;
        own.dropped = own.sources.begin()->first;
        own.sources.erase(own.sources.begin());
        --count_;
    } catch (const std::bad_alloc&) {
        miss();
    }
}

SignalLog::Source SignalLog::find(std::uint64_t semaphore, std::uint64_t generation, std::uint64_t value,
                                  std::uint64_t stream, std::uint64_t index) const {
    const std::lock_guard lock(mutex_);
    const auto found = signals_.find(semaphore);
    if (found == signals_.end() || found->second.generation != generation) return {};
    const Signals& own = found->second;
    if (value <= own.dropped) return {};
    auto first = own.sources.lower_bound(value);
    while (first != own.sources.end() && first->second.from == orrProfFromStream &&
           first->second.stream == stream && first->second.index > index)
        ++first;
    if (first == own.sources.end()) return {own.shared ? orrProfFromOutside : orrProfFromUnknown};
    // One for more may have come after who is not known here.
    return first->first == value || (!own.shared && !missed()) ? first->second : Source{};
}

}  // namespace orrery::umd
