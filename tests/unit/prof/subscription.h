// A subscription for as long as its owner lives.
#pragma once

#include <gtest/gtest.h>
#include <orrery/prof.h>

#include <cstdint>

#include "tests/unit/umd/api_test.h"

namespace orrery::umd::test {

// The last member of its owner, which is told by any thread.
class Subscription {
  public:
    Subscription(std::uint64_t want, orrProfCallback told, void* owner) {
        orrProfOptions options = ORR_INIT(orrProfOptions);
        options.want = want;
        EXPECT_OK(orrProfSubscribe(&subscription_, told, owner, &options));
    }
    ~Subscription() { EXPECT_OK(orrProfUnsubscribe(subscription_)); }
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

  private:
    orrProfSubscription_t subscription_ = nullptr;
};

}  // namespace orrery::umd::test
