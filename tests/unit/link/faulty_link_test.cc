// A link port with a fault plan: what its peer gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {
namespace {

using testing::ElementsAre;

class FaultyLink : public testing::Test {
  protected:
    FaultyLink() : a(0xa, true, folder.file("link")), b(0xb, false, folder.file("link")) {
        a.port.reset();
        a.config.faults = &faults;
        a.open();
    }
    void bring_up(std::string_view rules) {
        ASSERT_TRUE(faults.add(rules));
        ASSERT_TRUE(connect(a, b));
        ASSERT_TRUE(b.port->set_grant(0, 0, 1 << 20, kA));
    }
    void deliver() {
        while (b.idle_round() || a.idle_round()) {
        }
    }
    LinkSend write(std::uint64_t offset, std::uint64_t value) {
        const std::vector<std::uint64_t> data(512, value);
        return a.port->write(kB, offset, std::as_bytes(std::span(data)));
    }

    TempFolder folder;
    LinkCard a;
    LinkCard b;
    std::uint64_t signals = 0;
    Faults faults{{}, a.events, {.die = [] {}, .struck = {}}};
};

TEST_F(FaultyLink, LosesAMessageAndGoesOn) {
    bring_up("link port=0 first=2 drop");
    for (std::uint64_t i = 0; i < 3; ++i)
        ASSERT_EQ(write(i * 0x1000, 7).fault, ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x8000, 42), ORR_FAULT_NONE);
    deliver();
    EXPECT_EQ(b.words(0)[0], 7u);
    EXPECT_EQ(b.words(0x1000)[0], 0u);
    EXPECT_EQ(b.words(0x2000)[0], 7u);
    EXPECT_EQ(b.words(0x8000)[0], 42u);
    EXPECT_EQ(a.port->state(), ORR_LINK_UP);
}

TEST_F(FaultyLink, LosesAWriteAndTheSignalBehindItArrives) {
    bring_up("link drop");
    ASSERT_EQ(write(0, 7).fault, ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x8000, 42), ORR_FAULT_NONE);
    ASSERT_EQ(write(0x1000, 8).fault, ORR_FAULT_NONE);
    deliver();
    EXPECT_EQ(b.words(0)[0], 0u);
    EXPECT_EQ(b.words(0x8000)[0], 42u);
    EXPECT_EQ(b.words(0x1000)[511], 8u);
    EXPECT_EQ(b.port->state(), ORR_LINK_UP) << b.port->down_reason();
}

TEST_F(FaultyLink, DelaysAMessageAndThoseBehindIt) {
    bring_up("link delay=1ms");
    ASSERT_EQ(a.port->signal(kB, 0x8000, 1), ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x9000, 2), ORR_FAULT_NONE);
    deliver();
    EXPECT_GE(b.words(0x8000)[1], 1'000'000 * kPsPerNs);
    EXPECT_GT(b.words(0x9000)[1], b.words(0x8000)[1]);
    EXPECT_EQ(a.port->state(), ORR_LINK_UP);
}

TEST_F(FaultyLink, SendsAMessageTwice) {
    bring_up("link duplicate");
    ASSERT_EQ(a.port->signal(kB, 0x8000, 1), ORR_FAULT_NONE);
    ASSERT_EQ(write(0, 7).fault, ORR_FAULT_NONE);
    deliver();
    EXPECT_THAT(b.pokes, ElementsAre(0x8000u, 0x8000u));
    EXPECT_EQ(b.words(0)[511], 7u);
    EXPECT_EQ(a.port->state(), ORR_LINK_UP);
}

TEST_F(FaultyLink, SendsAWriteTwice) {
    bring_up("link count=all duplicate");
    // Three times round the payload area, and across its end in all ways.
    constexpr std::uint64_t kWords = 25'000;
    for (std::uint64_t i = 0; i < 64; ++i) {
        const std::vector<std::uint64_t> data(kWords, i + 1);
        std::span<const std::byte> rest = std::as_bytes(std::span(data));
        while (!rest.empty()) {
            const LinkSend sent = a.port->write(kB, data.size() * 8 - rest.size(), rest);
            ASSERT_EQ(sent.fault, ORR_FAULT_NONE);
            rest = rest.subspan(sent.bytes);
            deliver();
        }
        ASSERT_EQ(b.words(0)[0], i + 1);
        ASSERT_EQ(b.words(0)[kWords - 1], i + 1);
    }
    ASSERT_EQ(a.port->signal(kB, 0x80000, 1), ORR_FAULT_NONE);
    deliver();
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_RX_BYTES), 2 * (64 * kWords * 8 + 16));
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_RX_MESSAGES) % 2, 0u);
    EXPECT_EQ(b.port->state(), ORR_LINK_UP) << b.port->down_reason();
}

TEST_F(FaultyLink, TurnsABitOver) {
    bring_up("link count=2 corrupt");
    ASSERT_EQ(write(0, 0).fault, ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x8000, 0), ORR_FAULT_NONE);
    deliver();
    int bits = 0;
    for (unsigned i = 0; i < 512; ++i)
        bits += std::popcount(b.words(0)[i]);
    EXPECT_EQ(bits, 1);
    EXPECT_EQ(std::popcount(b.words(0x8000)[0]), 1);
}

TEST_F(FaultyLink, GoesDown) {
    bring_up("link first=2 fail");
    ASSERT_EQ(write(0, 7).fault, ORR_FAULT_NONE);
    static_cast<void>(a.port->signal(kB, 0x8000, 1));
    ASSERT_TRUE(settle(a, b, [&] { return b.states.size() > 2 && b.states[2] == ORR_LINK_DOWN; }));
    EXPECT_NE(a.port->down_reason().find("the fault plan cut it"), std::string::npos);
}

// The cable is pulled out at either end, and both stay down until it is in again.
TEST_F(FaultyLink, IsUnpluggedAndPluggedIn) {
    bring_up("link first=1000 drop");
    for (LinkCard* end : {&a, &b}) {
        ASSERT_EQ(a.port->signal(kB, 0x8000, ++signals), ORR_FAULT_NONE);
        end->port->unplug();
        const auto down = [&] {
            return a.port->state() == ORR_LINK_DOWN && b.port->state() == ORR_LINK_DOWN;
        };
        ASSERT_TRUE(settle(a, b, down));
        EXPECT_EQ(end->port->down_reason(), "the cable was pulled out");
        EXPECT_EQ(a.port->signal(kB, 0x8000, 9), ORR_FAULT_PEER_DOWN);
        deliver();
        EXPECT_EQ(b.words(0x8000)[0], signals) << "what was on the wire arrives";
        const std::size_t changes = a.states.size() + b.states.size();
        for (int i = 0; i < 15; ++i) {
            a.wait(5);
            b.wait(5);
        }
        EXPECT_EQ(a.states.size() + b.states.size(), changes) << "nobody tries";
        ASSERT_TRUE(end->port->plug());
        ASSERT_TRUE(connect(a, b));
    }
}

}  // namespace
}  // namespace orrery::emu::test
