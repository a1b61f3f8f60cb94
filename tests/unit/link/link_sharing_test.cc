// Who writes over the same link shares it, and what arrives shares the VRAM that it goes to: real engines and
// ports against closed forms.
#include <gtest/gtest.h>

#include <deque>

#include "tests/unit/engines/rig.h"
#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kLocal = 0x10'0000'0000, kRemote = 0x20'0000'0000;
constexpr std::uint64_t kBytes = 1 << 20, kInbox = 32 << 20;
constexpr unsigned kPort = 3;
constexpr double kNear = 0.05;

void expect_near(ModelTime time, ModelTime expected) {
    EXPECT_NEAR(static_cast<double>(time), static_cast<double>(expected),
                kNear * static_cast<double>(expected));
}

MemoryConfig memory() {
    MemoryConfig config;
    config.vram_bytes_per_second = 100'000'000'000;
    return config;
}

struct Card {
    Card(std::uint64_t uid, bool listen, const std::string& path)
        : rig(128 << 20, 1 << 20, 4096, memory()), errors(rig.counters, nullptr) {
        LinkConfig config;
        config.uid = uid;
        config.listen = listen;
        config.path = path;
        config.port = kPort;
        LinkHooks hooks;
        hooks.poke = [](std::uint64_t) {};
        hooks.changed = [](std::uint32_t, std::uint32_t) {};
        hooks.arrived = [this](std::uint64_t offset, std::uint64_t bytes) {
            rig.memory.vram(ORR_CTR_VRAM_LINK_BYTES)
                .reserve(rig.events.now(), lines_of(offset, bytes) * kMemoryLine);
        };
        port = std::move(*LinkPort::create(config, rig.events, rig.vram, rig.counters, errors, hooks));
        rig.peers.attach(kPort, port.get());
        const auto node = static_cast<std::uint32_t>(uid), peer = 3 - node;
        port->set_node(node);
        rig.peers.set_route(peer, ORR_ROUTE_VALID | kPort);
        rig.map(kLocal, 16 * kBytes, ORR_TARGET_VRAM, 0);
        rig.map(kRemote, 4 * kBytes, ORR_TARGET_PEER, kInbox, ORR_PTE_READ | ORR_PTE_WRITE, peer);
        port->set_grant(0, kInbox, 4 * kBytes, peer, {.rights = ORR_LINK_RIGHTS});
        for (std::uint32_t i = 0; i < 2; ++i)
            engines.emplace_back(i, CopyRates{.setup_ps = 0}, rig.context);
    }
    void start(unsigned engine, std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
        ASSERT_TRUE(engines[engine].start(Rig::words_of(Rig::copy(from, to, bytes)), engine));
    }
    // Until its engines are idle. What they took, by engine.
    std::array<ModelTime, 2> run() {
        rig.done.clear();
        while (std::ranges::any_of(engines, &CopyEngine::busy) &&
               (port->poll() || rig.events.run_next(kNever - 1))) {
        }
        std::array<ModelTime, 2> took{};
        for (const Completion& done : rig.done) {
            EXPECT_EQ(done.status, ORR_DONE_OK);
            took.at(done.port) = done.end_ps - done.start_ps;
        }
        return took;
    }
    ModelTime link(std::uint64_t bytes) const { return duration_ps(bytes, port->bytes_per_second()); }

    Rig rig;
    Errors errors;
    std::deque<CopyEngine> engines;
    std::unique_ptr<LinkPort> port;
};

class LinkSharing : public testing::Test {
  protected:
    LinkSharing() : a(1, true, folder.file("link")), b(2, false, folder.file("link")) {
        for (int i = 0; i < 1000 && (a.port->state() != ORR_LINK_UP || b.port->state() != ORR_LINK_UP); ++i) {
            for (Card* card : {&a, &b}) {
                pollfd fd{card->port->poll_fd(), POLLIN, 0};
                ::poll(&fd, 1, 5);
                card->port->service();
            }
        }
        EXPECT_EQ(a.port->state(), ORR_LINK_UP);
        EXPECT_EQ(b.port->state(), ORR_LINK_UP);
    }
    // What a copy of one card takes while both cards run, the one that is behind first.
    ModelTime both(Card& one, Card& other, std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
        const ModelTime now = std::max(one.rig.events.now(), other.rig.events.now());
        one.rig.events.advance_to(now);
        other.rig.events.advance_to(now);
        one.rig.done.clear();
        one.start(0, from, to, bytes);
        while (one.engines[0].busy()) {
            one.port->poll();
            other.port->poll();
            Card& first = one.rig.events.next_time() <= other.rig.events.next_time() ? one : other;
            if (!first.rig.events.run_next(kNever - 1)) break;
        }
        EXPECT_EQ(one.rig.done.size(), 1u);
        EXPECT_EQ(one.rig.done.at(0).status, ORR_DONE_OK);
        return one.rig.done.at(0).end_ps - one.rig.done.at(0).start_ps;
    }
    TempFolder folder;
    Card a, b;
};

TEST_F(LinkSharing, OneCopyTakesExactlyItsBytes) {
    a.start(0, kLocal, kRemote, kBytes);
    EXPECT_EQ(a.run()[0], a.link(kBytes));
}

// Cards on the way take turns by messages, so no rest of an event's time is one.
TEST_F(LinkSharing, ACopyIsMessagesOfOneSize) {
    const std::uint64_t piece = Resource(a.port->bytes_per_second()).piece();
    ASSERT_NE(kBytes % piece, 0u);
    a.start(0, kLocal, kRemote, kBytes);
    a.run();
    EXPECT_EQ(a.rig.counters.get(ORR_CTR_LINK_TX_MESSAGES), kBytes / piece + 1);
}

TEST_F(LinkSharing, TwoEnginesHaveHalfOfALinkEach) {
    a.start(0, kLocal, kRemote, kBytes);
    a.start(1, kLocal, kRemote + kBytes, kBytes);
    const auto took = a.run();
    expect_near(took[0], a.link(2 * kBytes));
    expect_near(took[1], a.link(2 * kBytes));
    EXPECT_EQ(std::max(took[0], took[1]), a.link(2 * kBytes)) << "and nothing is lost";
}

// Requests have the way there to themselves, so what counts is the bytes and both ways once.
TEST_F(LinkSharing, AReadTakesItsBytesAndBothWays) {
    for (const std::uint64_t bytes : {64ull, 4096ull, 1ull << 20, 4ull << 20}) {
        b.rig.vram.data()[kInbox + bytes - 1] = 7;
        const ModelTime took = both(a, b, kRemote, kLocal, bytes);
        const ModelTime least = a.link(64) + 2 * 500 * kPsPerNs + a.link(bytes);
        EXPECT_GE(took, least) << bytes;
        // Nothing but the last line's way into VRAM.
        EXPECT_LE(took, least + 10 * kPsPerNs) << bytes;
        EXPECT_EQ(a.rig.vram.data()[bytes - 1], 7);
    }
}

// A store waits for a piece of each engine, and not for what an engine could send at once.
TEST_F(LinkSharing, AStoreWaitsForAPiece) {
    a.start(0, kLocal, kRemote, kBytes);
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(a.rig.events.run_next(kNever - 1));
    const ModelTime now = a.rig.events.now();
    const std::uint64_t value = 5;
    ASSERT_EQ(a.port->post(2, kInbox, std::as_bytes(std::span(&value, 1))), ORR_FAULT_NONE);
    a.run();
    ModelTime arrival = kNever;
    b.port->poll();
    while (b.rig.vram.data()[kInbox] != value && b.rig.events.run_next(kNever - 1))
        arrival = b.rig.events.now();
    EXPECT_LE(arrival, now + Resource::kPiecePs + 500 * kPsPerNs + a.link(1000));
}

// VRAM has what the link leaves: 2 n / (VRAM - link).
TEST_F(LinkSharing, WhatArrivesTakesBandwidthOfItsVram) {
    a.start(0, kLocal, kRemote, 3 * kBytes);
    a.run();
    b.port->poll();
    ASSERT_NE(b.rig.events.next_time(), kNever);
    b.rig.events.advance_to(b.rig.events.next_time());
    b.start(0, kLocal, kLocal + 4 * kBytes, kBytes);
    const std::uint64_t left = memory().vram_bytes_per_second - a.port->bytes_per_second();
    expect_near(b.run()[0], duration_ps(2 * kBytes, left));
}

}  // namespace
}  // namespace orrery::emu::test
