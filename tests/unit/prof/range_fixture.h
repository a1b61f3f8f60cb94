// A subscription that keeps what it is told of ranges and their work, and a stream to have some.
#pragma once

#include <gtest/gtest.h>
#include <orrery/prof.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/prof/stream_fixture.h"
#include "tests/unit/prof/subscription.h"

namespace orrery::umd::test {

inline constexpr std::uint64_t kAllRanges = orrProfWantWork | orrProfWantCounters | orrProfWantRangeWork;

// Of an orrProfRangeWork, with what does not outlive its callback.
struct Range {
    std::string name, domain;
    orrProfRecord record;
    orrProfRangeWork work;
    std::optional<orrProfWorkCounters> counters;
    std::size_t behind;  // so much work had been told before
};

// Told by any thread.
class Listener {
  public:
    explicit Listener(std::uint64_t want = kAllRanges) : subscription_(want, &told, this) {}

    std::vector<Range> flushed() {
        EXPECT_OK(orrProfFlush());
        return ranges();
    }
    std::vector<Range> ranges() {
        const std::lock_guard lock(mutex_);
        return ranges_;
    }
    // The only one of this name.
    Range flushed(const std::string& name) {
        const auto all = flushed();
        EXPECT_EQ(std::ranges::count(all, name, &Range::name), 1) << name;
        const auto found = std::ranges::find(all, name, &Range::name);
        return found == all.end() ? Range{} : *found;
    }
    // What work of it was told.
    std::vector<orrProfWork> work() {
        const std::lock_guard lock(mutex_);
        return work_;
    }
    std::vector<orrProfWorkCounters> counters() {
        const std::lock_guard lock(mutex_);
        return counters_;
    }
    std::vector<std::pair<std::uint32_t, std::uint64_t>> begins_and_ends() {
        const std::lock_guard lock(mutex_);
        return begins_and_ends_;
    }
    std::function<void(const orrProfRecord&)> and_then;

  private:
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<Listener*>(user);
        {
            const std::lock_guard lock(self.mutex_);
            if (record->kind == orrProfWorkDone) {
                const auto& work = *static_cast<const orrProfWork*>(record->params);
                self.work_.push_back(work);
                if (work.counters != nullptr) self.counters_.push_back(*work.counters);
            } else if (record->kind == orrProfRangeDone) {
                const auto& work = *static_cast<const orrProfRangeWork*>(record->params);
                self.ranges_.push_back({record->name,
                                        record->domain == nullptr ? "" : record->domain,
                                        *record,
                                        work,
                                        {},
                                        self.work_.size()});
                if (work.counters != nullptr) self.ranges_.back().counters = *work.counters;
            } else if (record->kind == orrProfRangeBegin || record->kind == orrProfRangeEnd) {
                self.begins_and_ends_.emplace_back(record->kind, record->range);
            }
        }
        if (self.and_then) self.and_then(*record);
    }
    std::mutex mutex_;
    std::vector<Range> ranges_;
    std::vector<orrProfWork> work_;
    std::vector<orrProfWorkCounters> counters_;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> begins_and_ends_;
    Subscription subscription_;
};

class RangeWork : public NamedStream {};

inline void push(const char* text, orrProfDomain_t domain = nullptr) {
    ASSERT_OK(orrProfRangePush(domain, text));
}
inline void pop(orrProfDomain_t domain = nullptr) {
    ASSERT_OK(orrProfRangePop(domain));
}

}  // namespace orrery::umd::test
