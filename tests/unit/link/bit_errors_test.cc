// Bits that go wrong on a link's wire: found by the CRC, sent again, in order, in the same times each time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "emulator/link/crc.h"
#include "emulator/link/frame.h"
#include "emulator/time/rate.h"
#include "tests/unit/link/faulty_pair.h"
#include "tests/unit/link/net.h"
#include "tests/unit/link/raw_peer.h"

namespace orrery::emu::test {
namespace {

using testing::HasSubstr;

constexpr ModelTime kRoundTrip = 2 * kLatency, kRetrain = 20'000 * kPsPerNs;

ModelTime on_wire(std::uint64_t bytes) {
    return duration_ps(std::max<std::uint64_t>(bytes, 64), kRate);
}

TEST(Crc, IsCastagnolis) {
    EXPECT_EQ(link::crc32c(0, "123456789", 9), 0xe3069283u);
    std::mt19937_64 random(1);
    std::vector<std::uint8_t> data(1000);
    for (auto& byte : data)
        byte = static_cast<std::uint8_t>(random());
    for (std::size_t bytes = 0; bytes < data.size(); ++bytes) {
        const std::size_t cut = bytes / 3;
        const std::uint32_t whole = link::crc32c_by_table(0, data.data(), bytes);
        EXPECT_EQ(link::crc32c(0, data.data(), bytes), whole);
        EXPECT_EQ(link::crc32c(link::crc32c(0, data.data(), cut), data.data() + cut, bytes - cut), whole);
    }
}

TEST(Frame, WhatIsDamagedDoesNotPass) {
    auto area = link::SharedArea::create();
    ASSERT_TRUE(area);
    link::Channel& channel = (*area)->near;
    std::mt19937_64 random(2);
    for (std::size_t i = 0; i < link::kPayloadBytes; i += 8)
        std::memcpy(channel.payload + i, std::to_string(random()).c_str(), 8);
    for (int round = 0; round < 2000; ++round) {
        link::Message message{};
        message.op = round % 5 == 0 ? link::kOpSignal : link::kOpWrite;
        message.bytes = 1 + static_cast<std::uint32_t>(random() % 3000);
        message.payload_at = static_cast<std::uint32_t>(
            round % 2 == 0 ? random() % link::kPayloadBytes : link::kPayloadBytes - 1 - random() % 3000);
        message.noise = random();
        message.crc = link::frame_crc(message, channel);
        for (unsigned n = 0; n < 4; ++n)
            EXPECT_FALSE(link::damaged_passes(message, channel, n)) << round << " " << n;
    }
}

TEST(BitErrors, CostATripAndTheWireAndNothingElse) {
    FaultyPair pair("wire port=2 first=2 count=3 corrupt", "");
    ASSERT_TRUE(pair.up());
    ModelTime at = 0;
    for (const unsigned n : {1u, 2u, 3u}) {
        at += on_wire(4096) + (n == 2 ? 3 * (on_wire(4096) + kRoundTrip) : 0);
        EXPECT_EQ(pair.write(n * 0x1000, 4096, n), at) << n;
    }
    ASSERT_EQ(pair.a.port->signal(kB, 0x10000, 7), ORR_FAULT_NONE);
    pair.deliver();
    for (const unsigned n : {1u, 2u, 3u})
        EXPECT_EQ(pair.b.words(n * 0x1000)[511], n * 0x0101010101010101u);
    EXPECT_EQ(pair.b.words(0x10000)[0], 7u);
    EXPECT_EQ(pair.b.words(0x10000)[1], at + on_wire(64) + kLatency);
    const link::Counts &sent = pair.a.port->counts(), &got = pair.b.port->counts();
    EXPECT_EQ(sent.retries.get(), 3u);
    EXPECT_EQ(sent.crc_errors.get(), 0u);
    EXPECT_EQ(got.crc_errors.get(), 3u);
    EXPECT_EQ(sent.tx_messages.get(), 4u) << "each once";
    EXPECT_EQ(sent.tx_bytes.get(), 3u * 4096 + 16);
    EXPECT_EQ(got.rx_messages.get(), 4u);
    EXPECT_EQ(got.rx_bytes.get(), 3u * 4096 + 16);
    EXPECT_EQ(sent.retrains.get(), 0u);
    EXPECT_EQ(pair.b.counters.get(ORR_CTR_LINK_STRAGGLERS), 0u);
}

// What a play over the link leaves: times, and what was counted.
std::vector<std::uint64_t> play(const std::string& plan) {
    FaultyPair pair(plan, "");
    EXPECT_TRUE(pair.up());
    std::vector<std::uint64_t> seen;
    for (unsigned n = 1; n <= 200; ++n) {
        seen.push_back(pair.write(n * 0x2000, 1 + n * 37, n));
        EXPECT_EQ(pair.a.port->signal(kB, 0x200000 + n * 16, n), ORR_FAULT_NONE);
        if (n % 50 == 0) pair.deliver();
    }
    pair.deliver();
    for (unsigned n = 1; n <= 200; ++n) {
        const std::uint8_t* data = pair.b.vram.data() + n * 0x2000;
        EXPECT_EQ(data[0], n & 0xff);
        EXPECT_EQ(data[n * 37], n & 0xff);
        EXPECT_EQ(data[n * 37 + 1], 0);
        EXPECT_EQ(pair.b.words(0x200000 + n * 16)[0], n);
        seen.push_back(pair.b.words(0x200000 + n * 16)[1]);
    }
    EXPECT_EQ(pair.b.pokes.size(), 200u) << "none twice";
    EXPECT_EQ(pair.a.port->state(), ORR_LINK_UP);
    EXPECT_EQ(pair.a.port->counts().retries.get(), pair.b.port->counts().crc_errors.get());
    EXPECT_EQ(pair.b.port->counts().rx_messages.get(), 400u);
    seen.push_back(pair.a.port->counts().retries.get());
    return seen;
}

TEST(BitErrors, AreTheSameEachTimeAndOtherOnesWithAnotherSeed) {
    const auto first = play("seed 3; wire port=2 count=all ber=1e-5 corrupt");
    // 400 frames of 33,000 bits or fewer: a tenth of them on average.
    EXPECT_GT(first.back(), 10u);
    EXPECT_LT(first.back(), 120u);
    EXPECT_EQ(play("seed 3; wire port=2 count=all ber=1e-5 corrupt"), first);
    EXPECT_NE(play("seed 4; wire port=2 count=all ber=1e-5 corrupt"), first);
    // With chance= as with any other rule.
    EXPECT_GT(play("wire count=all chance=0.2 corrupt").back(), 40u);
}

TEST(BitErrors, AFrameThatIsNeverRightTrainsTheLinkAndThenEndsIt) {
    FaultyPair pair("wire first=2 count=9 corrupt; wire first=13 count=all corrupt", "");
    ASSERT_TRUE(pair.up());
    ASSERT_EQ(pair.write(0, 64, 1), on_wire(64));
    EXPECT_EQ(pair.write(0x1000, 64, 2), 2 * on_wire(64) + 9 * (on_wire(64) + kRoundTrip) + kRetrain);
    EXPECT_EQ(pair.a.port->counts().retries.get(), 9u);
    EXPECT_EQ(pair.a.port->counts().retrains.get(), 1u);
    ASSERT_EQ(pair.a.port->signal(kB, 0x2000, 1), ORR_FAULT_NONE);
    EXPECT_EQ(pair.a.port->signal(kB, 0x3000, 1), ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(pair.a.port->state(), ORR_LINK_DOWN);
    EXPECT_EQ(pair.a.port->down_reason(), "8 retries of one frame, and as many after training anew");
    EXPECT_EQ(pair.a.counters.get(ORR_CTR_GUEST_ERRORS), 0u) << "no peer did that";
    ASSERT_TRUE(settle(pair.a, pair.b, [&] { return pair.b.port->state() != ORR_LINK_UP; }));
    pair.deliver();
    EXPECT_EQ(pair.b.words(0x1000)[7], 0x0202020202020202u) << "what was sent before has come";
    EXPECT_EQ(pair.b.words(0x2000)[0], 1u);
    EXPECT_EQ(pair.b.words(0x3000)[0], 0u);
    EXPECT_EQ(pair.a.port->counts().retrains.get(), 2u);
}

// A store that waits for room has taken the wire, and its bit errors with it.
TEST(BitErrors, StoresAndWhatKeepsStepAreLikeAllElse) {
    FaultyPair pair("wire first=1 count=1 corrupt; wire first=3 count=1 corrupt", "");
    pair.a.in_step = pair.b.in_step = true;
    ASSERT_TRUE(pair.up());
    const std::uint64_t value = 5;
    ASSERT_EQ(pair.a.port->post(kB, 0x100, std::as_bytes(std::span(&value, 1))), ORR_FAULT_NONE);
    ASSERT_EQ(pair.a.port->signal(kB, 0x200, 1), ORR_FAULT_NONE);
    const ModelTime end = 2 * on_wire(64) + 2 * (on_wire(64) + kRoundTrip) + kLatency;
    EXPECT_EQ(pair.a.sent, (std::vector<ModelTime>{on_wire(64) + on_wire(64) + kRoundTrip + kLatency, end}));
    pair.deliver();
    EXPECT_EQ(pair.b.words(0x100)[0], 5u);
    EXPECT_EQ(pair.b.words(0x200)[1], end);
}

TEST(BitErrors, OnEachLinkOfAWayForItself) {
    Net net(4, false);
    ASSERT_TRUE(net.up());
    net.forward();
    for (auto& card : net.cards)
        ASSERT_TRUE(card->faults.add("wire port=1 count=all ber=2e-6 corrupt"));
    std::vector<ModelTime> times;
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(
            net[0].write(4, static_cast<std::uint64_t>(i) * 0x2000, 8192, static_cast<std::uint8_t>(i)).bytes,
            8192u);
        ASSERT_EQ(net[0].signal(4, 0x700000, static_cast<std::uint64_t>(i) + 1), ORR_FAULT_NONE);
    }
    net.run();
    for (unsigned i = 0; i < 100; ++i)
        EXPECT_EQ(net[3].byte(i * 0x2000 + 8191), i);
    EXPECT_EQ(net[3].semaphore(0x700000).value, 100u);
    std::uint64_t all = 0;
    for (unsigned n = 0; n < 3; ++n) {
        const std::uint64_t retries = net[n].ports[1]->counts().retries.get();
        EXPECT_EQ(retries, net[n + 1].ports[0]->counts().crc_errors.get());
        EXPECT_EQ(net[n].ports[1]->counts().tx_messages.get(), 200u);
        all += retries;
    }
    EXPECT_GT(all, 5u);
    EXPECT_EQ(net.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DROPPED) + net.sum(ORR_CTR_LINK_DENIED), 0u);
}

// A peer whose frames are wrong in memory: nobody says so, the CRC finds it.
class BadFrames : public testing::Test {
  protected:
    BadFrames() : card(0xa, true, folder.file("link")) {
        EXPECT_TRUE(card.port->set_grant(0, 0, 0x10000, kB));
    }
    void SetUp() override { meet(); }
    void meet() {
        peer = std::make_unique<RawPeer>(folder.file("link"));
        peer->flags = link::kFrames;
        ASSERT_TRUE(peer->handshake(card));
    }
    link::Message write(std::uint64_t value) {
        std::memcpy(peer->outbox->near.payload, &value, 8);
        link::Message made = peer->good();
        made.crc = link::frame_crc(made, peer->outbox->near);
        return made;
    }
    void run() {
        for (int i = 0; i < 50 && card.idle_round(); ++i) {
        }
    }
    TempFolder folder;
    LinkCard card;
    std::unique_ptr<RawPeer> peer;
};

TEST_F(BadFrames, AreFoundByTheirCrc) {
    peer->push(write(1));
    run();
    ASSERT_EQ(card.words(0x100)[0], 1u);
    for (std::uint64_t bit = 0; bit < (link::kFrameHeader + 8) * 8; bit += 7) {
        link::Message bad = write(2);
        auto* const bytes = bit < link::kFrameHeader * 8 ? reinterpret_cast<std::uint8_t*>(&bad)
                                                         : peer->outbox->near.payload - link::kFrameHeader;
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
        const std::uint64_t before = card.port->counts().crc_errors.get();
        peer->push(bad);
        run();
        EXPECT_EQ(card.port->state(), ORR_LINK_DOWN) << bit;
        EXPECT_THAT(card.port->down_reason(), HasSubstr("fails its CRC")) << bit;
        EXPECT_EQ(card.port->counts().crc_errors.get(), before + 1);
        EXPECT_EQ(card.words(0x100)[0], 1u) << "nothing of it is executed";
        meet();
    }
}

TEST_F(BadFrames, AreNotDamagedWithoutEnd) {
    link::Message bad = write(2);
    bad.damaged = 3;
    peer->push(bad);
    run();
    EXPECT_EQ(card.words(0x100)[0], 2u);
    EXPECT_EQ(card.port->counts().crc_errors.get(), 3u);
    bad = write(3);
    bad.damaged = link::kMostDamaged + 1;
    peer->push(bad);
    run();
    EXPECT_THAT(card.port->down_reason(), HasSubstr("without end"));
    EXPECT_EQ(card.words(0x100)[0], 2u);
}

TEST_F(BadFrames, AForgedSourceWithARightCrcIsDenied) {
    link::Message bad = write(2);
    bad.source = 0xc;
    bad.crc = link::frame_crc(bad, peer->outbox->near);
    peer->push(bad);
    run();
    EXPECT_EQ(card.words(0x100)[0], 0u);
    EXPECT_EQ(card.counters.get(ORR_CTR_LINK_DENIED), 1u);
}

}  // namespace
}  // namespace orrery::emu::test
