// A subscription that keeps what it is told of work, and a stream to have some.
#pragma once

#include <gtest/gtest.h>
#include <orrery/prof.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/prof/stream_fixture.h"
#include "tests/unit/prof/subscription.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {

struct Done {
    std::string name, stream, from_name;
    orrProfRecord record;
    orrProfWork work;
    std::optional<orrProfWorkCounters> counters;
};

// Records of work come on other threads.
class Watched {
  public:
    explicit Watched(std::uint64_t want = orrProfWantWork) : subscription_(want, &told, this) {}

    // All there is now.
    std::vector<Done> flushed() {
        EXPECT_OK(orrProfFlush());
        const std::lock_guard lock(mutex_);
        return done_;
    }
    std::vector<Done> wait_for(std::size_t count) {
        std::unique_lock lock(mutex_);
        more_.wait(lock, [&] { return done_.size() >= count; });
        return done_;
    }
    std::uint64_t last_call() {
        const std::lock_guard lock(mutex_);
        return last_call_;
    }
    std::size_t count() {
        const std::lock_guard lock(mutex_);
        return done_.size();
    }
    int lost() {
        const std::lock_guard lock(mutex_);
        return lost_;
    }
    std::uint64_t lost_work() {
        const std::lock_guard lock(mutex_);
        return lost_work_;
    }
    std::function<void()> and_then;
    std::function<void(const orrProfRecord&)> at_leave;

  private:
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<Watched*>(user);
        if (record->kind == orrProfLeave && self.at_leave) self.at_leave(*record);
        {
            const std::lock_guard lock(self.mutex_);
            if (record->kind == orrProfEnter) self.last_call_ = record->correlation;
            if (record->kind == orrProfWorkLost) {
                ++self.lost_;
                self.lost_work_ += static_cast<const orrProfWork*>(record->params)->lost;
            }
            if (record->kind != orrProfWorkDone) return;
            const auto& work = *static_cast<const orrProfWork*>(record->params);
            self.done_.push_back({record->name,
                                  work.stream_name,
                                  work.from_name == nullptr ? "" : work.from_name,
                                  *record,
                                  work,
                                  {}});
            if (work.counters != nullptr) self.done_.back().counters = *work.counters;
        }
        self.more_.notify_all();
        if (self.and_then) self.and_then();
    }
    std::mutex mutex_;
    std::condition_variable more_;
    std::vector<Done> done_;
    std::uint64_t last_call_ = 0;
    int lost_ = 0;
    std::uint64_t lost_work_ = 0;
    Subscription subscription_;
};

class Work : public NamedStream {};

}  // namespace orrery::umd::test
