#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>

#include <random>

#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::vector<std::uint64_t>& words) {
    return std::as_bytes(std::span(words));
}

class LinkPortTest : public testing::Test {
  protected:
    LinkPortTest() : a(0xa, true, folder.file("link"), 2), b(0xb, false, folder.file("link"), 5) {}

    void bring_up() {
        ASSERT_TRUE(connect(a, b));
        ASSERT_TRUE(b.port->set_grant(0, 0, 1 << 20, kA));
    }
    void deliver() {
        while (a.idle_round() || b.idle_round()) {
        }
    }

    TempFolder folder;
    LinkCard a, b;
};

TEST(LinkConfig, IsReadFromText) {
    const auto config = LinkConfig::parse("3:connect:/tmp/x:y");
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->port, 3u);
    EXPECT_FALSE(config->listen);
    EXPECT_EQ(config->path, "/tmp/x:y");
    EXPECT_TRUE(LinkConfig::parse("0:listen:s")->listen);
    for (const char* bad : {"", "0", "0:listen", "0:listen:", "8:listen:x", "-1:listen:x", ":listen:x",
                            "1x:listen:x", "0:Listen:x", "99999999999:connect:x"}) {
        const auto parsed = LinkConfig::parse(bad);
        ASSERT_FALSE(parsed.has_value()) << bad;
        EXPECT_THAT(parsed.error(), HasSubstr("PORT:listen:PATH"));
    }
}

TEST_F(LinkPortTest, RefusesConfigurationsThatCannotWork) {
    LinkConfig config = a.config;
    const auto error_of = [&] {
        auto made = LinkPort::create(config, a.events, a.vram, a.counters, a.errors, {});
        return made ? std::string() : made.error();
    };
    EXPECT_THAT(error_of(), HasSubstr("another card")) << "the path is in use";
    config.path = std::string(200, 'x');
    EXPECT_THAT(error_of(), HasSubstr("path"));
    config.path = "/nonexistent/folder/link";
    EXPECT_THAT(error_of(), HasSubstr("cannot listen"));
    config = a.config;
    config.uid = 0;
    EXPECT_THAT(error_of(), HasSubstr("uid"));
    config = a.config;
    config.latency_ns = 1'000'000;
    EXPECT_THAT(error_of(), HasSubstr("latency"));
}

TEST_F(LinkPortTest, TrainsAndTellsOfItsPeer) {
    EXPECT_EQ(a.port->state(), ORR_LINK_DOWN);
    EXPECT_EQ(a.port->lanes(), 0u);
    ASSERT_TRUE(connect(a, b));
    EXPECT_THAT(a.states, ElementsAre(ORR_LINK_TRAINING, ORR_LINK_UP));
    EXPECT_THAT(b.states, ElementsAre(ORR_LINK_TRAINING, ORR_LINK_UP));
    EXPECT_EQ(a.port->peer_uid(), 0xbu);
    EXPECT_EQ(a.port->peer_port(), 5u);
    EXPECT_EQ(b.port->peer_uid(), 0xau);
    EXPECT_EQ(b.port->peer_port(), 2u);
    EXPECT_EQ(a.port->lanes(), a.config.lanes);
}

TEST_F(LinkPortTest, WritesLandInTheOwnersMemoryAtTheirArrival) {
    bring_up();
    std::vector<std::uint64_t> data(4096);
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = i * i;
    const LinkSend sent = a.port->write(kB, 0x1000, bytes_of(data));
    ASSERT_EQ(sent.fault, ORR_FAULT_NONE);
    ASSERT_EQ(sent.bytes, data.size() * 8);
    // 32 KiB at 400 Gbit/s, then the latency.
    EXPECT_EQ(sent.sent_ps, 32768u * 20);
    b.port->poll();
    EXPECT_EQ(b.words(0x1000)[1], 0u) << "not there yet, by the owner's clock";
    EXPECT_EQ(b.events.next_time(), sent.sent_ps + 500 * kPsPerNs);
    deliver();
    EXPECT_EQ(b.events.now(), sent.sent_ps + 500 * kPsPerNs);
    EXPECT_EQ(std::memcmp(b.vram.data() + 0x1000, data.data(), data.size() * 8), 0);
    EXPECT_EQ(a.counters.get(ORR_CTR_LINK_TX_MESSAGES), 1u);
    EXPECT_EQ(a.counters.get(ORR_CTR_LINK_TX_BYTES), 32768u);
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_RX_MESSAGES), 1u);
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_RX_BYTES), 32768u);
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_STRAGGLERS), 0u);
}

TEST_F(LinkPortTest, SignalsCarryTheirTimeBehindEarlierWrites) {
    bring_up();
    const std::vector<std::uint64_t> data(1024, 7);
    ASSERT_EQ(a.port->write(kB, 0, bytes_of(data)).fault, ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x8000, 42), ORR_FAULT_NONE);
    while (b.pokes.empty() && (b.idle_round() || a.idle_round())) {
    }
    ASSERT_THAT(b.pokes, ElementsAre(0x8000u));
    EXPECT_EQ(b.words(0)[1023], 7u);
    EXPECT_EQ(b.words(0x8000)[0], 42u);
    EXPECT_EQ(b.words(0x8000)[1], b.events.now());
    EXPECT_GT(b.events.now(), 8192u * 20 + 500 * kPsPerNs);
    EXPECT_EQ(a.port->signal(kB, 0x8008, 43), ORR_FAULT_MISALIGNED);
}

TEST_F(LinkPortTest, AFailureCrossesAndTheOwnerKeepsTheFirst) {
    bring_up();
    const auto signal = [&](std::uint64_t value) {
        ASSERT_EQ(a.port->signal(kB, 0x8000, value), ORR_FAULT_NONE);
        deliver();
    };
    signal(42);
    signal(41);
    EXPECT_EQ(b.words(0x8000)[0], 42u) << "values only grow";
    b.words(0x8000)[1] |= ORR_SEM_CLOSED;
    signal(ORR_SEM_FAILED | 5);
    EXPECT_EQ(b.words(0x8000)[1] & ORR_SEM_CLOSED, ORR_SEM_CLOSED);
    signal(ORR_SEM_FAILED | 7);
    signal(43);
    EXPECT_EQ(b.words(0x8000)[0], ORR_SEM_FAILED | 5);
    EXPECT_EQ(b.pokes.size(), 5u) << "the owner's core looks at each";
}

TEST_F(LinkPortTest, CountsStragglers) {
    bring_up();
    b.events.advance_to(kPsPerSecond);
    ASSERT_EQ(a.port->signal(kB, 0x8000, 1), ORR_FAULT_NONE);
    deliver();
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_STRAGGLERS), 1u);
    EXPECT_EQ(b.events.now(), kPsPerSecond);
    EXPECT_LT(b.words(0x8000)[1], kPsPerSecond) << "the time of the signal, not of its late execution";
}

TEST_F(LinkPortTest, NothingPassesWithoutAGrant) {
    ASSERT_TRUE(connect(a, b));
    const std::vector<std::uint64_t> data(1024, 7);
    EXPECT_EQ(a.port->write(kB, 0, bytes_of(data)).fault, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_PEER_DENIED);
    ASSERT_TRUE(b.port->set_grant(255, 0x1000, 0x2000, kA));
    EXPECT_EQ(a.port->write(kB, 0x1000, bytes_of(data)).fault, ORR_FAULT_NONE);
    EXPECT_EQ(a.port->write(kB, 0xff8, bytes_of(data)).fault, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(a.port->write(kB, 0x1008, bytes_of(std::vector<std::uint64_t>(1024, 7))).fault,
              ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(a.port->signal(kB, 0x2ff0, 1), ORR_FAULT_NONE);
    EXPECT_EQ(a.port->signal(kB, 0x3000, 1), ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(a.port->write(kB, ~0ull - 7, bytes_of({1, 2})).fault, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(a.counters.get(ORR_CTR_LINK_DENIED), 6u);
    // Two grants side by side cover a write across them, in any order.
    ASSERT_TRUE(b.port->set_grant(0, 0x3000, 0x1000, kA));
    EXPECT_EQ(a.port->write(kB, 0x2800, bytes_of(std::vector<std::uint64_t>(512, 7))).fault, ORR_FAULT_NONE);
}

TEST_F(LinkPortTest, WhatWasSentUnderAGrantIsDoneBeforeItIsCleared) {
    bring_up();
    ASSERT_EQ(a.port->write(kB, 0, bytes_of({1, 2, 3})).fault, ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x800, 7), ORR_FAULT_NONE);
    EXPECT_EQ(b.words(0)[0], 0u);
    ASSERT_TRUE(b.port->clear_grant(0));  // while it is on its way
    EXPECT_EQ(b.words(0)[0], 1u);
    EXPECT_EQ(b.words(0x800)[0], 7u) << "who sent it may be gone: nobody would say it again";
    ASSERT_THAT(b.pokes, ElementsAre(0x800u));
    EXPECT_EQ(a.port->signal(kB, 0x800, 8), ORR_FAULT_PEER_DENIED);
    deliver();
    EXPECT_EQ(b.words(0x800)[0], 7u);
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_DENIED), 0u);
    EXPECT_EQ(b.port->state(), ORR_LINK_UP);
}

TEST_F(LinkPortTest, ChecksGrants) {
    EXPECT_FALSE(b.port->set_grant(256, 0, 4096, kA));
    EXPECT_FALSE(b.port->set_grant(0, 1, 4096, kA));
    EXPECT_FALSE(b.port->set_grant(0, 0, 100, kA));
    EXPECT_FALSE(b.port->set_grant(0, 0, 0, kA));
    EXPECT_FALSE(b.port->set_grant(0, 8 << 20, 4096, kA));
    EXPECT_FALSE(b.port->set_grant(0, 4096, 8 << 20, kA));
    EXPECT_FALSE(b.port->set_grant(0, ~0ull - 4095, 8192, kA));
    EXPECT_FALSE(b.port->clear_grant(256));
    bring_up();
    b.port->reset();
    EXPECT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(b.port->state(), ORR_LINK_UP);
}

TEST_F(LinkPortTest, GrantsGivenWhileDownHoldOnceUp) {
    ASSERT_TRUE(b.port->set_grant(7, 0, 4096, kA));
    ASSERT_TRUE(connect(a, b));
    EXPECT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
}

TEST_F(LinkPortTest, NothingPassesWhileDown) {
    EXPECT_EQ(a.port->write(kB, 0, bytes_of({1})).fault, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_PEER_DOWN);
}

TEST_F(LinkPortTest, StopsAtFullBuffersAndGoesOn) {
    bring_up();
    ASSERT_TRUE(b.port->set_grant(1, 0, 8 << 20, kA));
    const std::vector<std::uint64_t> data(32768);
    std::size_t taken = 0;
    LinkSend sent;
    while ((sent = a.port->write(kB, 0, bytes_of(data))).bytes > 0)
        taken += sent.bytes;
    EXPECT_EQ(sent.fault, ORR_FAULT_NONE);
    EXPECT_EQ(taken, 4u << 20);
    // A signal has no payload: it goes, behind what is there.
    EXPECT_EQ(a.port->signal(kB, 0x100, 5), ORR_FAULT_NONE);
    deliver();
    EXPECT_GT(a.port->write(kB, 0, bytes_of(data)).bytes, 0u);
    deliver();
    EXPECT_THAT(b.pokes, ElementsAre(0x100u));
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_RX_BYTES), a.counters.get(ORR_CTR_LINK_TX_BYTES));
}

// The peer looks at its link, but its clock stands while this card's goes on.
TEST_F(LinkPortTest, AFullInboxIsForTheOneWhoSignalsToMind) {
    a.config.peer_silence_ms = 500;
    a.port.reset();
    a.open();
    bring_up();
    constexpr std::uint64_t kSignals = 20'000;
    std::uint64_t sent = 0;
    while (sent < kSignals && a.port->signal(kB, 16 * sent, 1) == ORR_FAULT_NONE) {
        ++sent;
        a.events.advance_to(a.events.now() + 250 * kPsPerNs);
        if (sent % 64 == 0) b.port->poll();
    }
    EXPECT_EQ(sent, 16384u) << "what was taken is in the peer's hands";
    EXPECT_EQ(a.port->signal(kB, 16 * sent, 1), ORR_FAULT_PEER_BUSY);
    EXPECT_TRUE(a.port->congested());
    for (int i = 0; i < 15; ++i) {
        for (int n = 0; n < 64; ++n)
            b.port->poll();
        a.wait(50);
        a.port->poll();
        EXPECT_EQ(a.port->signal(kB, 16 * sent, 1), ORR_FAULT_PEER_BUSY);
    }
    ASSERT_EQ(a.port->state(), ORR_LINK_UP) << a.port->down_reason();
    // Room comes back with its clock.
    while (sent < kSignals) {
        ASSERT_TRUE(b.idle_round() || a.idle_round());
        while (sent < kSignals && a.port->signal(kB, 16 * sent, 1) == ORR_FAULT_NONE)
            ++sent;
    }
    deliver();
    EXPECT_FALSE(a.port->congested());
    EXPECT_EQ(b.pokes.size(), kSignals);
    EXPECT_EQ(a.port->state(), ORR_LINK_UP);
    EXPECT_EQ(b.port->state(), ORR_LINK_UP);
}

// --- what is on its way when a semaphore is closed ---

TEST_F(LinkPortTest, WhatWasSentToASemaphoreIsDoneBeforeItIsClosed) {
    bring_up();
    ASSERT_EQ(a.port->write(kB, 0, bytes_of({1, 2, 3})).fault, ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x800, 6), ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x900, 1), ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x800, 7), ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0xa00, 1), ORR_FAULT_NONE);
    EXPECT_TRUE(b.port->settle(0xb00));
    EXPECT_EQ(b.words(0)[0], 0u) << "nothing is sent to that one: nobody else's message is hurried";
    EXPECT_TRUE(b.port->settle(0x800));
    EXPECT_EQ(b.words(0)[0], 1u);
    EXPECT_EQ(b.words(0x800)[0], 7u);
    EXPECT_GT(b.words(0x800)[1], b.events.now()) << "with the time at which it would have come";
    EXPECT_EQ(b.words(0x900)[0], 1u);
    EXPECT_EQ(b.words(0xa00)[0], 0u) << "behind it, and in its time";
    EXPECT_TRUE(b.pokes.empty()) << "the core is in the middle of something";
    b.events.run_due();
    EXPECT_THAT(b.pokes, ElementsAre(0x800u, 0x900u, 0x800u));
    EXPECT_EQ(b.events.now(), 0u);
    EXPECT_TRUE(b.port->settle(0x800));
    deliver();
    EXPECT_EQ(b.words(0xa00)[1], b.events.now());
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_RX_MESSAGES), 5u);
}

TEST_F(LinkPortTest, AlsoOfAPeerThatHasLeft) {
    bring_up();
    ASSERT_EQ(a.port->signal(kB, 0x100, 9), ORR_FAULT_NONE);
    a.port.reset();
    for (int i = 0; i < 100 && b.port->state() == ORR_LINK_UP; ++i)
        b.wait(10);
    ASSERT_EQ(b.port->state(), ORR_LINK_DOWN);
    EXPECT_TRUE(b.port->settle(0x100));
    EXPECT_EQ(b.words(0x100)[0], 9u);
    b.events.run_due();
    EXPECT_THAT(b.pokes, ElementsAre(0x100u));
}

TEST_F(LinkPortTest, WhatWasDoneInAHurryIsToldWhenThereIsRoom) {
    bring_up();
    b.poke_lane_full = true;
    for (std::uint64_t i = 0; i < 1000; ++i)
        ASSERT_EQ(a.port->signal(kB, 16 * i, 1), ORR_FAULT_NONE);
    ASSERT_TRUE(b.port->clear_grant(0));
    EXPECT_EQ(b.words(16 * 999)[0], 1u);
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_DENIED), 0u);
    ASSERT_TRUE(b.port->set_grant(0, 0, 1 << 20, kA));
    ASSERT_EQ(a.port->signal(kB, 16 * 1000, 1), ORR_FAULT_NONE);
    for (int i = 0; i < 100; ++i)
        b.idle_round();
    EXPECT_TRUE(b.pokes.empty());
    EXPECT_EQ(b.words(16 * 1000)[0], 0u) << "behind those";
    a.port.reset();
    b.wait(10);
    b.poke_lane_full = false;
    b.port->poke_room();
    while (b.idle_round()) {
    }
    EXPECT_EQ(b.pokes.size(), 1001u);
}

TEST_F(LinkPortTest, HowMuchIsOwedHasAnEnd) {
    bring_up();
    b.poke_lane_full = true;
    bool done = true;
    std::uint64_t sent = 0;
    while (done && sent < 200'000) {
        while (a.port->signal(kB, 16 * (sent % 1000), 1 + sent) == ORR_FAULT_NONE)
            ++sent;
        done = b.port->settle(16 * ((sent - 1) % 1000));
    }
    EXPECT_EQ(sent, 5 * 16384u);
    b.poke_lane_full = false;
    b.port->poke_room();
    deliver();
    EXPECT_EQ(b.pokes.size(), sent);
    EXPECT_EQ(b.port->state(), ORR_LINK_UP);
}

TEST_F(LinkPortTest, TwoCardsThatWriteToEachOtherDoNotBlock) {
    bring_up();
    ASSERT_TRUE(a.port->set_grant(0, 0, 8 << 20, kB));
    ASSERT_TRUE(b.port->set_grant(1, 0, 8 << 20, kA));
    // Both push small writes as fast as the wire takes them, and stop their clocks while they wait for room.
    struct Pusher {
        LinkCard& card;
        std::uint32_t to;
        std::vector<std::uint64_t> data{1, 2};
        unsigned left = 50'000;
        Event event{[](void* self, ModelTime) { static_cast<Pusher*>(self)->push(); }, this};
        void push() {
            const LinkSend sent = card.port->write(to, 64, bytes_of(data));
            ASSERT_EQ(sent.fault, ORR_FAULT_NONE);
            if (sent.bytes > 0) --left;
            if (left > 0) card.events.schedule(event, sent.bytes > 0 ? sent.sent_ps : card.events.now());
        }
    };
    Pusher pa{.card = a, .to = kB}, pb{.card = b, .to = kA};
    a.events.schedule(pa.event, 0);
    b.events.schedule(pb.event, 0);
    for (int i = 0; i < 10'000'000 && pa.left + pb.left > 0; ++i) {
        a.port->poll();
        a.events.run_next(kNever - 1);
        b.port->poll();
        b.events.run_next(kNever - 1);
    }
    EXPECT_EQ(pa.left + pb.left, 0u);
}

TEST_F(LinkPortTest, ArrivalsDoNotDependOnWhenTheReceiverLooks) {
    std::vector<ModelTime> times[2];
    for (unsigned run = 0; run < 2; ++run) {
        TempFolder own;
        LinkCard from(1, true, own.file("link")), to(2, false, own.file("link"));
        ASSERT_TRUE(connect(from, to));
        ASSERT_TRUE(to.port->set_grant(0, 0, 8 << 20, from.node()));
        std::mt19937_64 random(3);
        const std::vector<std::uint64_t> data(20'000);
        for (unsigned i = 0; i < 100; ++i) {
            from.events.advance_to(from.events.now() + random() % 1'000'000);
            std::span<const std::byte> rest = bytes_of(data).first(8 + random() % 150'000);
            while (!rest.empty()) {
                const LinkSend sent = from.port->write(to.node(), 0, rest);
                ASSERT_EQ(sent.fault, ORR_FAULT_NONE);
                rest = rest.subspan(sent.bytes);
                if (sent.bytes == 0 || (run == 1 && i % 3 == 0)) {
                    while (to.idle_round()) {
                    }
                }
            }
            ASSERT_EQ(from.port->signal(to.node(), 0x100000 + 16 * i, i + 1), ORR_FAULT_NONE);
        }
        while (to.idle_round() || from.idle_round()) {
        }
        for (unsigned i = 0; i < 100; ++i)
            times[run].push_back(to.words(0x100000 + 16 * i)[1]);
        EXPECT_EQ(to.counters.get(ORR_CTR_LINK_STRAGGLERS), 0u);
    }
    EXPECT_EQ(times[0], times[1]);
}

TEST_F(LinkPortTest, SleepsAndIsWoken) {
    bring_up();
    ASSERT_TRUE(b.port->prepare_sleep());
    pollfd fd{b.port->poll_fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&fd, 1, 0), 0);
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    EXPECT_EQ(::poll(&fd, 1, 1000), 1);
    b.port->after_sleep();
    EXPECT_EQ(::poll(&fd, 1, 0), 0) << "the wake was taken";
    EXPECT_FALSE(b.port->prepare_sleep()) << "there is a message";
    deliver();
    EXPECT_EQ(b.pokes.size(), 1u);
    ASSERT_EQ(a.port->signal(kB, 0, 2), ORR_FAULT_NONE);
    EXPECT_EQ(::poll(&fd, 1, 0), 0) << "no wake for who is awake";
}

TEST_F(LinkPortTest, EitherSideMayComeAgain) {
    for (unsigned round = 0; round < 3; ++round) {
        bring_up();
        ASSERT_EQ(a.port->signal(kB, 0, round + 1), ORR_FAULT_NONE);
        deliver();
        EXPECT_EQ(b.words(0)[0], round + 1);
        LinkCard& dies = round % 2 == 0 ? b : a;
        LinkCard& stays = round % 2 == 0 ? a : b;
        dies.port.reset();
        for (int i = 0; i < 100 && stays.port->state() == ORR_LINK_UP; ++i)
            stays.wait(10);
        EXPECT_EQ(stays.port->state(), ORR_LINK_DOWN);
        EXPECT_EQ(stays.port->peer_uid(), 0u);
        EXPECT_THAT(stays.port->down_reason(), HasSubstr("left"));
        EXPECT_EQ(stays.port->write(dies.node(), 0, bytes_of({1})).fault, ORR_FAULT_PEER_DOWN);
        dies.open();
    }
}

TEST_F(LinkPortTest, WhatWasSentBeforeThePeerLeftStillArrives) {
    bring_up();
    ASSERT_EQ(a.port->write(kB, 0, bytes_of({1, 2, 3})).fault, ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x100, 9), ORR_FAULT_NONE);
    a.port.reset();
    for (int i = 0; i < 100 && b.port->state() == ORR_LINK_UP; ++i)
        b.wait(10);
    ASSERT_EQ(b.port->state(), ORR_LINK_DOWN);
    EXPECT_FALSE(b.port->prepare_sleep()) << "there is still something to receive";
    while (b.idle_round()) {
    }
    EXPECT_EQ(b.words(0)[2], 3u);
    EXPECT_EQ(b.words(0x100)[0], 9u);
    EXPECT_EQ(b.words(0x100)[1], b.events.now());
    EXPECT_TRUE(b.port->prepare_sleep());
    a.open();
    EXPECT_TRUE(connect(a, b));
}

TEST_F(LinkPortTest, ASecondPeerIsTurnedAway) {
    bring_up();
    LinkCard third(0xc, false, folder.file("link"));
    for (int i = 0; i < 40; ++i) {
        third.wait(5);
        a.wait(1);
    }
    EXPECT_NE(third.port->state(), ORR_LINK_UP);
    EXPECT_EQ(a.port->peer_uid(), 0xbu);
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
}

// --- congestion ---

TEST_F(LinkPortTest, WhoWaitsForRoomIsWokenByCreditsInTurn) {
    bring_up();
    ASSERT_TRUE(b.port->set_grant(1, 0, 8 << 20, kA));
    const std::vector<std::uint64_t> data(32768);
    while (a.port->write(kB, 0, bytes_of(data)).bytes > 0) {
    }
    std::vector<int> woken;
    Event first([](void* to, ModelTime) { static_cast<std::vector<int>*>(to)->push_back(1); }, &woken);
    Event second([](void* to, ModelTime) { static_cast<std::vector<int>*>(to)->push_back(2); }, &woken);
    Event third([](void* to, ModelTime) { static_cast<std::vector<int>*>(to)->push_back(3); }, &woken);
    a.port->wait_for_room(kB, first);
    a.port->wait_for_room(kB, second);
    a.port->wait_for_room(kB, third);
    a.port->forget(second);
    EXPECT_TRUE(a.port->congested());
    const ModelTime before = a.events.now();
    for (int i = 0; i < 100; ++i)
        EXPECT_FALSE(a.idle_round()) << "no credit, no event";
    EXPECT_EQ(a.events.now(), before);
    while (b.idle_round()) {
    }
    EXPECT_EQ(a.port->write(kB, 0, bytes_of(data)).bytes, 0u) << "others wait already";
    while (a.idle_round()) {
    }
    EXPECT_THAT(woken, ElementsAre(1, 3));
    EXPECT_FALSE(a.port->congested());
    EXPECT_GT(a.port->write(kB, 0, bytes_of(data)).bytes, 0u);
}

// Not the host's time, however long that gives nothing.
TEST_F(LinkPortTest, WaitsForRoomAreCountedInTheCardsTime) {
    bring_up();
    ASSERT_TRUE(b.port->set_grant(1, 0, 8 << 20, kA));
    const std::vector<std::uint64_t> data(32768);
    const auto fill_and_wait = [&](Event& event) {
        while (a.port->write(kB, 0, bytes_of(data)).bytes > 0) {
        }
        a.port->wait_for_room(kB, event);
    };
    const auto pass = [&](ModelTime time) { a.events.advance_to(a.events.now() + time); };
    ModelTime woken = 0;
    Event event([](void* to, ModelTime now) { *static_cast<ModelTime*>(to) = now; }, &woken);
    EXPECT_EQ(a.port->without_room_ps(), 0u);
    pass(300);
    fill_and_wait(event);
    const ModelTime began = a.events.now();
    for (int i = 0; i < 100; ++i)
        EXPECT_FALSE(a.idle_round());
    EXPECT_EQ(a.port->without_room_ps(), 0u);
    pass(7000);
    EXPECT_EQ(a.port->without_room_ps(), 7000u);
    while (b.idle_round()) {
    }
    while (a.idle_round()) {
    }
    EXPECT_GE(woken, began + 7000);
    ASSERT_GT(a.port->write(kB, 0, bytes_of(data)).bytes, 0u);
    const std::uint64_t first = a.port->without_room_ps();
    EXPECT_EQ(first, woken - began);
    pass(500);
    EXPECT_EQ(a.port->without_room_ps(), first);
    // A peer that goes ends it, too.
    fill_and_wait(event);
    pass(20);
    b.port.reset();
    for (int i = 0; i < 100 && a.port->up(); ++i)
        a.wait(10);
    pass(1'000'000);
    EXPECT_EQ(a.port->without_room_ps(), first + 20);
}

TEST_F(LinkPortTest, SleepsWithoutRoomAndIsWokenByCredits) {
    bring_up();
    ASSERT_TRUE(b.port->set_grant(1, 0, 8 << 20, kA));
    const std::vector<std::uint64_t> data(32768);
    while (a.port->write(kB, 0, bytes_of(data)).bytes > 0) {
    }
    bool woken = false;
    Event event([](void* to, ModelTime) { *static_cast<bool*>(to) = true; }, &woken);
    a.port->wait_for_room(kB, event);
    ASSERT_TRUE(a.port->prepare_sleep());
    while (b.idle_round()) {
    }
    pollfd fd{a.port->poll_fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&fd, 1, 40), 1) << "woken by the credits, before any tick";
    a.port->after_sleep();
    while (a.idle_round()) {
    }
    EXPECT_TRUE(woken);
}

TEST_F(LinkPortTest, ALinkThatGoesDownWakesWhoWaits) {
    bring_up();
    ASSERT_TRUE(b.port->set_grant(1, 0, 8 << 20, kA));
    const std::vector<std::uint64_t> data(32768);
    while (a.port->write(kB, 0, bytes_of(data)).bytes > 0) {
    }
    bool woken = false;
    Event event([](void* to, ModelTime) { *static_cast<bool*>(to) = true; }, &woken);
    a.port->wait_for_room(kB, event);
    const std::uint64_t session = a.port->session();
    b.port.reset();
    for (int i = 0; i < 100 && !woken; ++i) {
        a.wait(10);
        a.idle_round();
    }
    EXPECT_TRUE(woken);
    EXPECT_NE(a.port->session(), session);
    EXPECT_EQ(a.port->write(kB, 0, bytes_of(data)).fault, ORR_FAULT_PEER_DOWN);
}

// A peer that is stopped, or whose host is: only looks of this card count.
TEST_F(LinkPortTest, ASilentPeerIsDeadAfterSoManyLooks) {
    a.config.peer_silence_ms = 500;
    a.port.reset();
    a.open();
    bring_up();
    ASSERT_TRUE(b.port->set_grant(1, 0, 8 << 20, kA));
    const std::vector<std::uint64_t> data(32768);
    while (a.port->write(kB, 0, bytes_of(data)).bytes > 0) {
    }
    Event event([](void*, ModelTime) {}, nullptr);
    a.port->wait_for_room(kB, event);
    // This card stood still for far longer than the limit: that says nothing about the peer.
    ::usleep(1'200'000);
    a.port->service();
    EXPECT_EQ(a.port->state(), ORR_LINK_UP);
    for (int i = 0; i < 100 && a.port->state() == ORR_LINK_UP; ++i)
        a.wait(50);
    EXPECT_THAT(a.port->down_reason(), HasSubstr("did not look at its link for 500 ms"));
    EXPECT_TRUE(event.scheduled());
}

TEST_F(LinkPortTest, StoresWithoutRoomWaitInOrder) {
    bring_up();
    ASSERT_TRUE(b.port->set_grant(1, 0, 8 << 20, kA));
    const std::vector<std::uint64_t> data(32768);
    while (a.port->write(kB, 0x10000, bytes_of(data)).bytes > 0) {
    }
    ASSERT_EQ(a.port->signal(kB, 0x100, 3000), ORR_FAULT_NONE);
    ASSERT_EQ(a.port->post(kB, 0x200, bytes_of({77})), ORR_FAULT_NONE);
    ASSERT_EQ(a.port->signal(kB, 0x100, 3001), ORR_FAULT_PEER_BUSY) << "it may not overtake a store";
    std::uint32_t fault = ORR_FAULT_NONE;
    std::uint64_t posts = 0;
    while (fault == ORR_FAULT_NONE && posts < 5000)
        fault = a.port->post(kB, 0x208, bytes_of({++posts}));
    EXPECT_EQ(fault, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(a.port->state(), ORR_LINK_UP);
    deliver();
    EXPECT_EQ(b.words(0x100)[0], 3000u);
    EXPECT_EQ(a.port->signal(kB, 0x100, 3001), ORR_FAULT_NONE);
    EXPECT_EQ(b.words(0x200)[0], 77u);
    EXPECT_EQ(b.words(0x208)[0], posts - 1);
    EXPECT_EQ(b.port->state(), ORR_LINK_UP) << b.port->down_reason();
}

// --- clocks ---

}  // namespace
}  // namespace orrery::emu::test
