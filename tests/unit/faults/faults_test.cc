// When a rule strikes, and that the same seed always strikes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "emulator/faults/faults.h"

namespace orrery::emu {
namespace {

class Striking : public testing::Test {
  protected:
    std::unique_ptr<Faults> make(std::string_view text) {
        return std::make_unique<Faults>(*FaultPlan::parse(text), events_,
                                        Faults::Hooks{.die = [this] { ++deaths_; },
                                                      .struck =
                                                          [this](const Faults::Struck& fault) {
                                                              const std::scoped_lock lock(mutex_);
                                                              struck_.push_back(fault.pass);
                                                              numbers_.insert(fault.number);
                                                          }});
    }
    // The passes at which something happens, of so many.
    static std::vector<unsigned> strikes(Faults& faults, unsigned passes, std::uint64_t subject = 0) {
        std::vector<unsigned> at;
        for (unsigned i = 1; i <= passes; ++i)
            if (faults.at(FaultPoint::kMsi, subject)) at.push_back(i);
        return at;
    }

    EventQueue events_;
    unsigned deaths_ = 0;
    std::mutex mutex_;
    std::vector<std::uint64_t> struck_;
    std::set<std::uint64_t> numbers_;
};

using Passes = std::vector<unsigned>;

TEST_F(Striking, ByCount) {
    EXPECT_EQ(strikes(*make(""), 5), Passes());
    EXPECT_EQ(strikes(*make("walk fail"), 5), Passes()) << "another point";
    EXPECT_EQ(strikes(*make("msi drop"), 5), Passes({1}));
    EXPECT_EQ(strikes(*make("msi first=3 drop"), 5), Passes({3}));
    EXPECT_EQ(strikes(*make("msi first=2 count=2 drop"), 5), Passes({2, 3}));
    EXPECT_EQ(strikes(*make("msi first=2 every=3 count=all drop"), 9), Passes({2, 5, 8}));
    EXPECT_EQ(strikes(*make("msi vector=1 drop"), 5, 2), Passes());
    EXPECT_EQ(strikes(*make("msi vector=1 first=2 drop"), 5, 1), Passes({2}));
}

// The I/O thread passes `register`, the card's all else: each strike has a number of its own.
TEST_F(Striking, OnTwoThreads) {
    constexpr unsigned kPasses = 20'000;
    const auto faults = make("register count=all corrupt; dma-read count=all corrupt");
    const auto pass = [&](FaultPoint point) {
        for (unsigned i = 0; i < kPasses; ++i)
            EXPECT_TRUE(faults->at(point));
    };
    {
        const std::jthread io([&] { pass(FaultPoint::kRegister); });
        pass(FaultPoint::kDmaRead);
    }
    EXPECT_EQ(numbers_.size(), 2 * kPasses);
    EXPECT_EQ(*numbers_.rbegin(), 2 * kPasses);
}

TEST_F(Striking, EachRuleCountsForItselfAndTheFirstWins) {
    const auto faults = make("msi first=2 count=2 drop\nmsi first=3 count=2 duplicate");
    EXPECT_FALSE(faults->at(FaultPoint::kMsi));
    EXPECT_EQ(faults->at(FaultPoint::kMsi).action, FaultAction::kDrop);
    EXPECT_EQ(faults->at(FaultPoint::kMsi).action, FaultAction::kDrop);
    EXPECT_EQ(faults->at(FaultPoint::kMsi).action, FaultAction::kDuplicate)
        << "it lost its third to the first";
    EXPECT_EQ(
        faults->hits(),
        "0 passed=4 struck=2 msi first=2 count=2 drop\n1 passed=4 struck=1 msi first=3 count=2 duplicate\n");
}

TEST_F(Striking, ByChanceOfTheSeed) {
    const char* const text = "seed 5\nmsi count=all chance=0.1 drop";
    const Passes first = strikes(*make(text), 1000);
    EXPECT_EQ(strikes(*make(text), 1000), first);
    EXPECT_GT(first.size(), 60u);
    EXPECT_LT(first.size(), 140u);
    EXPECT_NE(strikes(*make("seed 6\nmsi count=all chance=0.1 drop"), 1000), first);
    // These numbers are the same on every host.
    EXPECT_EQ(first.front(), 2u);
    Fault fault = make("seed 7\ndispatch corrupt")->at(FaultPoint::kDispatch);
    EXPECT_EQ(Faults::bit_of(fault, 512), 224u);
}

TEST_F(Striking, HangsAndDies) {
    const auto faults = make("msi first=2 hang\nmsi first=3 die");
    EXPECT_FALSE(faults->at(FaultPoint::kMsi));
    EXPECT_FALSE(faults->hung());
    EXPECT_FALSE(faults->at(FaultPoint::kMsi));
    EXPECT_TRUE(faults->hung());
    EXPECT_EQ(deaths_, 0u);
    faults->at(FaultPoint::kMsi);
    EXPECT_EQ(deaths_, 1u);
    EXPECT_EQ(struck_, (std::vector<std::uint64_t>{2, 3}));
    faults->reset();
    EXPECT_FALSE(faults->hung());
}

TEST_F(Striking, WhatIsLateComesAtItsModelTimeOrNotAtAll) {
    const auto faults = make("");
    std::vector<ModelTime> came;
    faults->later(500, [&] {
        came.push_back(events_.now());
        faults->later(100, [&] { came.push_back(events_.now()); });
    });
    while (events_.run_next(kNever - 1)) {
    }
    EXPECT_EQ(came, (std::vector<ModelTime>{500, 600}));
    faults->later(10, [&] { came.push_back(0); });
    faults->reset();
    EXPECT_TRUE(events_.empty());
}

TEST_F(Striking, RulesCanComeAndGo) {
    const auto faults = make("");
    EXPECT_FALSE(faults->at(FaultPoint::kMsi));
    EXPECT_FALSE(faults->add("msi explode"));
    ASSERT_TRUE(faults->add("msi first=2 drop"));
    EXPECT_EQ(strikes(*faults, 3), Passes({2})) << "counted from now on";
    faults->clear();
    EXPECT_EQ(faults->hits(), "");
    EXPECT_EQ(strikes(*faults, 3), Passes());
}

// Who asks when does not matter, only for which frame.
TEST_F(Striking, OnAWireItIsTheFramesNumberThatIsDrawn) {
    const auto struck = [&](const char* plan, std::uint64_t port, std::uint64_t bits, bool backwards) {
        const auto faults = make(plan);
        std::vector<bool> hits(4000);
        for (std::uint64_t n = 0; n < hits.size(); ++n) {
            const std::uint64_t number = backwards ? hits.size() - 1 - n : n;
            const Fault fault = faults->on_wire(port, {.bits = bits, .number = number, .try_number = 0});
            hits[number] = fault.action == FaultAction::kCorrupt;
        }
        return hits;
    };
    const char* plan = "seed 5; wire count=all ber=1e-5 corrupt";
    const auto hits = struck(plan, 1, 10'000, false);
    const auto number = std::ranges::count(hits, true);
    EXPECT_NEAR(static_cast<double>(number), 4000 * 0.0952, 60) << "1 - (1 - ber)^bits";
    EXPECT_EQ(struck(plan, 1, 10'000, true), hits);
    EXPECT_NE(struck(plan, 2, 10'000, false), hits);
    EXPECT_NE(struck("seed 6; wire count=all ber=1e-5 corrupt", 1, 10'000, false), hits);
    EXPECT_EQ(std::ranges::count(struck("wire count=all ber=1e-18 corrupt", 1, 1 << 21, false), true), 0);
    EXPECT_EQ(std::ranges::count(struck("wire count=all ber=0.5 corrupt", 1, 2000, false), true), 4000);
    EXPECT_EQ(std::ranges::count(struck("wire port=3 count=all ber=0.5 corrupt", 1, 2000, false), true), 0);
}

}  // namespace
}  // namespace orrery::emu
