// A subscription that keeps what it is told, by whatever thread.
#pragma once

#include <orrery/prof.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/umd/api_test.h"

namespace orrery::umd::test {

class Heard {
  public:
    // Not the work of cards by itself, which is told at any time.
    explicit Heard(std::uint64_t want = orrProfWantCalls | orrProfWantRanges) {
        orrProfOptions options = ORR_INIT(orrProfOptions);
        options.want = want;
        EXPECT_OK(orrProfSubscribe(&subscription_, &told, this, &options));
    }
    ~Heard() { end(); }
    Heard(const Heard&) = delete;
    Heard& operator=(const Heard&) = delete;

    void end() {
        if (subscription_ != nullptr) EXPECT_OK(orrProfUnsubscribe(subscription_));
        subscription_ = nullptr;
    }
    orrProfSubscription_t subscription() const { return subscription_; }

    // To be read when no other thread calls the API.
    std::vector<std::string> words;  // "+orrMalloc", "-orrMalloc", "[text", "]", "!text"
    std::vector<orrProfRecord> records;
    std::function<void(const orrProfRecord&)> and_then;

  private:
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<Heard*>(user);
        const std::string_view marks = "?+-[]!";
        const char mark = record->kind < marks.size() ? marks[record->kind] : '?';
        {
            const std::lock_guard lock(self.mutex_);
            self.words.push_back(mark + std::string(record->name == nullptr ? "" : record->name));
            self.records.push_back(*record);
        }
        if (self.and_then) self.and_then(*record);
    }
    std::mutex mutex_;
    orrProfSubscription_t subscription_ = nullptr;
};

using Words = std::vector<std::string>;

}  // namespace orrery::umd::test
