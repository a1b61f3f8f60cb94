#include "umd/scheduler/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace orrery::umd {
namespace {

class CostFile : public ::testing::Test {
  protected:
    ~CostFile() override { std::remove(path_.c_str()); }
    Status load(const std::string& lines) {
        std::ofstream(path_) << "orrery-task-costs-2\n" << lines;
        return costs_.load(path_);
    }
    std::string path_ = ::testing::TempDir() + "/orrery_cost_model" + std::to_string(::getpid());
    CostModel costs_;
};

TEST_F(CostFile, SlownessIsWithinReason) {
    ASSERT_TRUE(load("fast k 1 1\nslow k 1e15 1\n"));
    EXPECT_EQ(costs_.slowness(costs_.sku("slow"), costs_.sku("fast")), kMostSlowness);
    EXPECT_EQ(costs_.slowness(costs_.sku("fast"), costs_.sku("slow")), 1 / kMostSlowness);
}

TEST_F(CostFile, MeansThatNothingTakesAreRefused) {
    for (const char* mean : {"0", "-1", "1e-300", "0.5", "1.1e15", "1e300", "nan", "inf"}) {
        const Status loaded = load(std::string("sku k ") + mean + " 1\n");
        ASSERT_FALSE(loaded) << mean;
        EXPECT_THAT(loaded.error().text, ::testing::HasSubstr(":2: a SKU, a footprint, a mean"));
    }
}

TEST_F(CostFile, WhatWasMeasuredCanBeReadAgain) {
    const auto sku = costs_.sku("sku");
    costs_.measured(sku, costs_.key("endless"), INT64_MAX);
    costs_.measured(sku, costs_.key("none"), 0);
    ASSERT_TRUE(costs_.save(path_));
    CostModel again;
    const Status loaded = again.load(path_);
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(again.expect(again.sku("sku"), again.key("endless")), kLongest);
    EXPECT_EQ(again.expect(again.sku("sku"), again.key("none")), 1);
}

}  // namespace
}  // namespace orrery::umd
