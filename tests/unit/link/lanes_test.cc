// Lanes: what both ends have is used, and a lane that fails makes the link narrower.
#include <gtest/gtest.h>

#include "emulator/time/rate.h"
#include "tests/unit/link/faulty_pair.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kLane = 12'500'000'000;  // bytes a second
constexpr ModelTime kRetrain = 20'000 * kPsPerNs;

TEST(Lanes, AreTheFewerOfBothEnds) {
    FaultyPair pair("", "", 4, 2);
    ASSERT_TRUE(pair.up());
    EXPECT_EQ(pair.a.port->state(), ORR_LINK_DEGRADED);
    EXPECT_EQ(pair.b.port->state(), ORR_LINK_UP) << "it has no more";
    for (LinkCard* card : {&pair.a, &pair.b}) {
        EXPECT_EQ(card->port->lanes(), 2u);
        EXPECT_EQ(card->port->mbps(), 200'000u);
        EXPECT_EQ(card->port->bytes_per_second(), 2 * kLane);
    }
    EXPECT_EQ(pair.write(0, 1 << 18, 3), duration_ps(1 << 18, 2 * kLane));
    pair.deliver();
    EXPECT_EQ(pair.b.words(0)[100], 0x0303030303030303u);
}

TEST(Lanes, AreAsFastAsTheSlowerEndHasThem) {
    FaultyPair pair("", "");
    pair.b.port.reset();
    pair.b.config.gbps = 97;
    pair.b.config.lanes = 2;
    pair.b.open();
    ASSERT_TRUE(pair.up());
    EXPECT_EQ(pair.a.port->mbps(), 97'000u);
    EXPECT_EQ(pair.b.port->mbps(), 97'000u);
}

TEST(Lanes, SomeAreBadAsItTrains) {
    for (const bool at_a : {true, false}) {
        FaultyPair pair(at_a ? "training lanes=3" : "", at_a ? "" : "training lanes=3");
        ASSERT_TRUE(pair.up());
        for (LinkCard* card : {&pair.a, &pair.b}) {
            EXPECT_EQ(card->port->state(), ORR_LINK_DEGRADED);
            EXPECT_EQ(card->port->lanes(), 3u);
            EXPECT_EQ(card->port->bytes_per_second(), 3 * kLane);
        }
        // The next time they are good.
        pair.a.port->unplug();
        ASSERT_TRUE(settle(pair.a, pair.b, [&] { return pair.b.port->state() == ORR_LINK_DOWN; }));
        ASSERT_TRUE(pair.a.port->plug());
        ASSERT_TRUE(pair.up());
        EXPECT_EQ(pair.a.port->state(), ORR_LINK_UP);
        EXPECT_EQ(pair.a.port->lanes(), 4u);
        EXPECT_EQ(pair.a.port->bytes_per_second(), 4 * kLane);
    }
}

TEST(Lanes, FailUnderWay) {
    FaultyPair pair("wire first=2 lanes=1; wire first=4 lanes=2", "");
    ASSERT_TRUE(pair.up());
    const std::size_t told = pair.a.states.size();
    const std::uint64_t changes = pair.a.port->counts().changes.get();
    ModelTime at = duration_ps(4096, 4 * kLane);
    EXPECT_EQ(pair.write(0, 4096, 1), at);
    EXPECT_EQ(pair.a.port->state(), ORR_LINK_UP);
    at += duration_ps(4096, kLane) + kRetrain;
    EXPECT_EQ(pair.write(0x1000, 4096, 2), at);
    EXPECT_EQ(pair.a.port->state(), ORR_LINK_DEGRADED);
    EXPECT_EQ(pair.a.port->lanes(), 1u);
    EXPECT_EQ(pair.a.port->mbps(), 100'000u);
    EXPECT_EQ(pair.a.states.size(), told + 1);
    at += duration_ps(4096, kLane);
    EXPECT_EQ(pair.write(0x2000, 4096, 3), at);
    // No lane comes back by a rule that leaves more.
    at += duration_ps(4096, kLane);
    EXPECT_EQ(pair.write(0x3000, 4096, 4), at);
    EXPECT_EQ(pair.a.port->counts().retrains.get(), 1u);
    EXPECT_EQ(pair.a.port->counts().changes.get(), changes + 1);
    pair.deliver();
    for (unsigned n = 0; n < 4; ++n)
        EXPECT_EQ(pair.b.vram.data()[n * 0x1000 + 4095], n + 1);
    EXPECT_EQ(pair.b.port->state(), ORR_LINK_UP) << "its own direction is as it was";
}

}  // namespace
}  // namespace orrery::emu::test
