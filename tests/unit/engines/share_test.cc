// Who gets a free core: priorities, weights, and dispatches that want all their cores at once.
#include <algorithm>

#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr ModelTime kUs = 1'000'000;

class ShareTest : public VectorUnitTest {
  protected:
    EnginePort& port(std::uint32_t number) { return unit->port(number); }
    void start(std::uint32_t number, const orr_desc_kernel& d, std::uint32_t tag = 1) {
        ASSERT_TRUE(port(number).start(Rig::words_of(d), tag));
    }
    void run_until(ModelTime time) {
        while (rig.events.run_next(time)) {
        }
        rig.events.advance_to(time);
    }
    // A kernel whose groups take about `rounds` * 6 cycles, for ever.
    orr_desc_kernel spin(unsigned slot, std::uint64_t rounds) {
        data(64 * slot)[0] = rounds;
        return desc(kSpin, kData + 64 * slot, 100'000'000, 1);
    }
    std::vector<double> shares(const std::vector<std::uint32_t>& ports, ModelTime from_used[4]) {
        std::vector<double> all;
        double sum = 0;
        for (const std::uint32_t p : ports) {
            all.push_back(static_cast<double>(port(p).used() - from_used[p]));
            sum += all.back();
        }
        for (double& share : all)
            share /= sum;
        return all;
    }
    void note(ModelTime used[4]) {
        for (unsigned p = 0; p < 4; ++p)
            used[p] = port(p).used();
    }
};

TEST_F(ShareTest, CoreTimeGoesByWeight) {
    port(0).set_weight(1);
    port(1).set_weight(2);
    port(2).set_weight(4);
    start(0, spin(0, 300));
    start(1, spin(1, 300));
    start(2, spin(2, 300));
    run_until(20'000 * kUs);
    ModelTime used[4] = {};
    const auto share = shares({0, 1, 2}, used);
    EXPECT_NEAR(share[0], 1.0 / 7, 0.02 / 7);
    EXPECT_NEAR(share[1], 2.0 / 7, 0.04 / 7);
    EXPECT_NEAR(share[2], 4.0 / 7, 0.08 / 7);
    // The sum is all there is.
    const double all = static_cast<double>(port(0).used() + port(1).used() + port(2).used());
    EXPECT_NEAR(all / (8.0 * 20'000 * kUs), 1.0, 0.01);
}

TEST_F(ShareTest, TheLengthOfGroupsBuysNothing) {
    // Equal weights: groups of 2, 20 and 200 us get the same time.
    start(0, spin(0, 300));
    start(1, spin(1, 3'000));
    start(2, spin(2, 30'000));
    run_until(60'000 * kUs);
    ModelTime used[4] = {};
    for (const double share : shares({0, 1, 2}, used))
        EXPECT_NEAR(share, 1.0 / 3, 0.02 / 3);
}

TEST_F(ShareTest, ANewcomerIsOwedNothingAndOwesNothing) {
    start(0, spin(0, 2'000));
    run_until(5'000 * kUs);
    start(1, spin(1, 2'000));
    run_until(5'100 * kUs);
    ModelTime used[4] = {};
    note(used);
    run_until(10'000 * kUs);
    for (const double share : shares({0, 1}, used))
        EXPECT_NEAR(share, 0.5, 0.01);
    // Weights may change while they run.
    port(0).set_weight(3);
    run_until(10'100 * kUs);
    note(used);
    run_until(20'000 * kUs);
    const auto share = shares({0, 1}, used);
    EXPECT_NEAR(share[0], 0.75, 0.015);
    EXPECT_NEAR(share[1], 0.25, 0.005);
}

TEST_F(ShareTest, AHigherPriorityGoesFirst) {
    port(2).set_priority(1);
    start(0, spin(0, 300));
    run_until(100 * kUs);
    start(2, spin(2, 300));
    run_until(150 * kUs);
    const ModelTime before = port(0).used();
    run_until(1'000 * kUs);
    EXPECT_EQ(port(0).used(), before) << "it waits while the higher has groups";
    EXPECT_EQ(port(2).active(), 8u);
    // Raised above the other while both run: their roles change.
    port(0).set_priority(3);
    run_until(1'010 * kUs);
    EXPECT_EQ(port(0).active(), 8u);
    EXPECT_EQ(port(2).active(), 0u);
    port(0).set_priority(0);
    run_until(1'020 * kUs);
    EXPECT_EQ(port(2).active(), 8u);
}

TEST_F(ShareTest, ResidentGroupsComeTogether) {
    start(0, spin(0, 3'000));  // groups of about 20 us
    run_until(100 * kUs);
    orr_desc_kernel d = spin(1, 300);
    d.grid_x = 6;
    d.flags = ORR_DESC_F_RESIDENT;
    start(1, d, 7);
    // It takes none until it can have all; the other starts no new ones meanwhile.
    std::uint32_t seen = 0;
    while (rig.done.empty()) {
        ASSERT_TRUE(rig.events.run_next(200 * kUs));
        if (port(1).active() > seen) {
            EXPECT_EQ(port(1).active(), 6u) << "all or none";
        }
        seen = port(1).active();
    }
    EXPECT_EQ(rig.done[0].tag, 7u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    EXPECT_EQ(port(0).active(), 8u);
}

TEST_F(ShareTest, AWaitingResidentHoldsBackItsEqualsAndNotItsBetters) {
    start(0, desc(kLoop, 0, 4, 1));  // four cores, for ever
    run_until(100 * kUs);
    orr_desc_kernel d = spin(1, 300);
    d.grid_x = 5;
    d.flags = ORR_DESC_F_RESIDENT;
    port(1).set_priority(1);
    start(1, d);
    start(2, spin(2, 300));
    run_until(200 * kUs);
    EXPECT_EQ(port(1).active(), 0u);
    EXPECT_EQ(port(2).active(), 0u) << "a lower one is held back";
    port(2).set_priority(1);
    EXPECT_EQ(port(2).active(), 0u) << "an equal, too";
    port(2).set_priority(2);
    EXPECT_EQ(port(2).active(), 4u);
    port(2).abort();
    port(1).abort();
    rig.run(4);
    EXPECT_EQ(rig.done.size(), 2u);
    // More groups than cores, or unknown flags, are no descriptor.
    d.grid_x = 9;
    rig.done.clear();
    start(3, d);
    rig.run(20);
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_BAD_DESC);
}

TEST_F(ShareTest, ResidentsCanBePreemptedAndComeBackTogether) {
    orr_desc_kernel d = desc(kLoop, 0, 6, 1);
    d.flags = ORR_DESC_F_RESIDENT;
    start(0, d);
    run_until(50 * kUs);
    ASSERT_EQ(port(0).active(), 6u);
    ASSERT_TRUE(port(0).preempt(Preempt::kNow, 32 << 20));
    run_until(60 * kUs);
    ASSERT_EQ(rig.done.size(), 1u);
    ASSERT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
    start(1, desc(kLoop, 0, 3, 1));
    run_until(70 * kUs);
    ASSERT_TRUE(port(2).resume(32 << 20, 5));
    run_until(100 * kUs);
    EXPECT_EQ(port(2).active(), 0u) << "five are free, it needs six";
    port(1).abort();
    EXPECT_EQ(port(2).active(), 6u);
}

}  // namespace
}  // namespace orrery::emu::test
