// What a peer can do wrong: the link goes down with a reason, the card and its memory stay as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>

#include <functional>

#include "tests/unit/link/raw_peer.h"

namespace orrery::emu::test {
namespace {

using testing::HasSubstr;

class BadPeerTest : public testing::Test {
  protected:
    BadPeerTest() : card(0xa, true, folder.file("link")) {
        for (std::uint32_t slot = 0; slot < 2; ++slot) {
            EXPECT_TRUE(card.port->set_grant(slot, slot * 0x100000, 0x10000, kB));
        }
    }
    std::unique_ptr<RawPeer> peer() { return std::make_unique<RawPeer>(folder.file("link")); }

    void expect_down(const std::string& reason) {
        for (int i = 0; i < 100 && (card.idle_round() || card.port->state() != ORR_LINK_DOWN); ++i)
            card.wait(1);
        EXPECT_EQ(card.port->state(), ORR_LINK_DOWN);
        EXPECT_THAT(card.port->down_reason(), HasSubstr(reason));
    }
    // A card that had a bad peer takes a good one next.
    void expect_alive() {
        auto good = peer();
        ASSERT_TRUE(good->handshake(card));
        const std::uint64_t value = 0x1234 + ++tries_;
        std::memcpy(good->outbox->near.payload, &value, 8);
        good->push(good->good());
        while (card.idle_round()) {
        }
        EXPECT_EQ(*card.words(0x100), value);
        EXPECT_EQ(card.port->state(), ORR_LINK_UP);
    }
    void spoil_message(const std::string& reason, const std::function<void(link::Message&)>& spoil) {
        SCOPED_TRACE(reason);
        auto bad = peer();
        ASSERT_TRUE(bad->handshake(card));
        link::Message message = bad->good();
        spoil(message);
        bad->push(message);
        expect_down(reason);
    }
    // Of the semaphore at 0x100, in the future.
    static link::Message good_signal(const RawPeer& peer) {
        link::Message message = peer.good();
        message.op = link::kOpSignal;
        message.bytes = 0;
        message.payload_end = 0;
        message.value = 7;
        message.arrival_ps = message.head_ps = ModelTime{1} << 50;
        return message;
    }
    void spoil_hello(const std::string& reason, const std::function<void(link::Hello&)>& spoil) {
        SCOPED_TRACE(reason);
        auto bad = peer();
        ASSERT_TRUE(bad->attach(card));
        const link::SharedArea area = std::move(*link::SharedArea::create());
        link::Hello hello = RawPeer::hello();
        spoil(hello);
        bad->send(&hello, sizeof hello, area.fd());
        expect_down(reason);
    }

    TempFolder folder;
    LinkCard card;

  private:
    unsigned tries_ = 0;
};

TEST_F(BadPeerTest, AGoodPeerWorks) {
    expect_alive();
}

TEST_F(BadPeerTest, BadHellos) {
    spoil_hello("not an Orrery card", [](auto& h) { h.magic ^= 1; });
    spoil_hello("link version 99", [](auto& h) { h.version = 99; });
    spoil_hello("bad field", [](auto& h) { h.uid = 0; });
    spoil_hello("bad field", [](auto& h) { h.uid = UINT64_MAX; });  // the driver takes that for a dead card
    spoil_hello("bad field", [](auto& h) { h.port = 8; });
    spoil_hello("bad field", [](auto& h) { h.clock_ps = ~0ull; });
    spoil_hello("bad field", [](auto& h) { h.inbox_bytes += 4096; });
    spoil_hello("bad field", [](auto& h) { h.lanes = 0; });
    spoil_hello("bad field", [](auto& h) { h.lanes = 65; });
    spoil_hello("bad field", [](auto& h) { h.lane_mbps = 0; });
    spoil_hello("bad field", [](auto& h) { h.flags = 4; });
    spoil_hello("bad field", [](auto& h) { h.flags = 1u << link::kLevelShift; });  // of a card
    spoil_hello("bad field", [](auto& h) {
        h.flags = link::kSwitch;
        h.port = link::kMostSwitchPorts;
    });
    spoil_hello("bad form", [](auto& h) { h.kind = 99; });
    expect_alive();
}

TEST_F(BadPeerTest, BadDescriptors) {
    const auto with_fd = [&](int fd, const std::string& reason) {
        SCOPED_TRACE(reason);
        auto bad = peer();
        ASSERT_TRUE(bad->attach(card));
        const link::Hello hello = RawPeer::hello();
        bad->send(&hello, sizeof hello, fd);
        expect_down(reason);
        if (fd >= 0) ::close(fd);
    };
    with_fd(-1, "bad form");
    with_fd(::open("/dev/null", O_RDWR), "not sealed");
    int fd = ::memfd_create("x", MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(fd, sizeof(link::Inbox)), 0);
    with_fd(fd, "not sealed");
    fd = ::memfd_create("x", MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(fd, 4096), 0);
    ASSERT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    with_fd(fd, "wrong size");
    // Sealed against writing: mapping it fails, and that is all.
    fd = ::memfd_create("x", MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(fd, sizeof(link::Inbox)), 0);
    ASSERT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    with_fd(fd, "cannot map");
    expect_alive();
}

TEST_F(BadPeerTest, BadSocketMessages) {
    const auto with_bytes = [&](std::size_t bytes) {
        auto bad = peer();
        ASSERT_TRUE(bad->attach(card));
        const std::vector<char> junk(bytes, 'x');
        bad->send(junk.data(), junk.size());
        expect_down("handshake message");
    };
    with_bytes(1);
    with_bytes(4);
    with_bytes(64);
    with_bytes(10'000);
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    const link::Hello again = RawPeer::hello();
    bad->send(&again, sizeof again, bad->inbox.fd());
    expect_down("bad form");
    expect_alive();
}

TEST_F(BadPeerTest, APeerThatSaysNothingIsDropped) {
    auto silent = peer();
    ASSERT_TRUE(silent->attach(card));
    EXPECT_EQ(card.port->state(), ORR_LINK_TRAINING);
    for (int i = 0; i < 10'000 && card.port->state() == ORR_LINK_TRAINING; ++i)
        card.wait(10);
    EXPECT_THAT(card.port->down_reason(), HasSubstr("did not finish"));
    EXPECT_EQ(card.counters.get(ORR_CTR_GUEST_ERRORS), 0u) << "it may have had no time";
    silent.reset();
    expect_alive();
}

TEST_F(BadPeerTest, BadMessages) {
    spoil_message("unknown operation", [](auto& m) { m.op = 0; });
    spoil_message("unknown operation", [](auto& m) { m.op = 0xffffffff; });
    spoil_message("out of order", [](auto& m) { m.index = 1; });
    spoil_message("bad length", [](auto& m) { m.bytes = 0; });
    spoil_message("bad length", [](auto& m) { m.bytes = 0xffffffff; });
    spoil_message("bad length", [](auto& m) { m.bytes = link::kMaxWriteBytes + 1; });
    spoil_message("payload is out of range", [](auto& m) { m.payload_at = link::kPayloadBytes; });
    spoil_message("payload is out of range", [](auto& m) { m.payload_at = ~0u; });
    spoil_message("payload credit", [](auto& m) { m.payload_end = 7; });
    spoil_message("payload credit", [](auto& m) { m.payload_end = ~0ull; });
    spoil_message("reserved", [](auto& m) { m.value = 1; });
    spoil_message("before an earlier", [](auto& m) { m.arrival_ps = 999; });
    spoil_message("end of time", [](auto& m) { m.arrival_ps = ~0ull; });
    const auto signal = [](auto& m) {
        m.op = link::kOpSignal;
        m.bytes = 0;
        m.payload_end = 0;
    };
    spoil_message("misaligned", [&](auto& m) { signal(m), m.offset = 8; });
    spoil_message("has a payload", [&](auto& m) { signal(m), m.bytes = 8; });
    spoil_message("has a payload", [&](auto& m) { signal(m), m.payload_at = 8; });
    spoil_message("credit", [&](auto& m) { signal(m), m.payload_end = 64; });
    const auto note = [](auto& m) {
        m.op = link::kOpNote;
        m.bytes = ORR_NOTE_BYTES;
        m.offset = 0;
    };
    spoil_message("no use for", [&](auto& m) { note(m), m.bytes = 8; });
    spoil_message("no use for", [&](auto& m) { note(m), m.bytes = link::kMaxWriteBytes; });
    spoil_message("no use for", [&](auto& m) { note(m), m.offset = 16; });
    spoil_message("no use for", [&](auto& m) { note(m), m.value = 1; });
    spoil_message("payload is out of range", [&](auto& m) { note(m), m.payload_at = ~0u; });
    spoil_message("payload credit", [&](auto& m) { note(m), m.payload_end = 8; });
    EXPECT_EQ(card.errors.count(ErrorKind::kGuestError), 23u);
    EXPECT_TRUE(card.pokes.empty());
    expect_alive();
}

TEST_F(BadPeerTest, TimeMayNotGoBack) {
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    bad->push(bad->good());
    link::Message earlier = bad->good();
    earlier.arrival_ps = 1999;
    bad->push(earlier);
    expect_down("before an earlier");
}

TEST_F(BadPeerTest, BadIndices) {
    for (const std::uint64_t produced : {std::uint64_t{link::kRingEntries} + 1, ~std::uint64_t{0}}) {
        auto bad = peer();
        ASSERT_TRUE(bad->handshake(card));
        std::atomic_ref(bad->outbox->near.produced).store(produced);
        expect_down("producer index");
    }
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    bad->push(bad->good());
    bad->push(bad->good());
    while (card.idle_round()) {
    }
    std::atomic_ref(bad->outbox->near.produced).store(1);  // back
    expect_down("producer index");
    expect_alive();
}

// A message is copied and judged once: what the peer writes there afterwards is nothing to it.
TEST_F(BadPeerTest, WhatWasJudgedIsWhatIsDone) {
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    link::Message signal = good_signal(*bad);
    bad->push(signal);
    card.round();
    ASSERT_NE(card.port->next_arrival(), kNever) << "it has been seen";
    link::Message& there = bad->outbox->near.ring[0];
    there.op = 99;
    there.offset = 0x200;
    there.arrival_ps = 0;
    while (card.idle_round()) {
    }
    EXPECT_EQ(card.port->state(), ORR_LINK_UP) << card.port->down_reason();
    EXPECT_EQ(*card.words(0x100), 7u);
    EXPECT_EQ(*card.words(0x200), 0u);
    // The next one has a judgment of its own.
    signal = good_signal(*bad);
    signal.op = 99;
    bad->push(signal);
    expect_down("unknown operation (message 1)");
}

TEST_F(BadPeerTest, WhatIsTakenBackIsNotDone) {
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    bad->push(good_signal(*bad));
    card.round();
    ASSERT_NE(card.port->next_arrival(), kNever) << "it has been seen";
    std::atomic_ref(bad->outbox->near.produced).store(0);
    expect_down("a message was taken back");
    EXPECT_EQ(*card.words(0x100), 0u);
    expect_alive();
}

// What was seen of messages that lie in the future does not stand when the peer takes its index back.
TEST_F(BadPeerTest, AnIndexThatGoesBackUnderAClose) {
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    link::Message signal = bad->good();
    signal.op = link::kOpSignal;
    signal.bytes = 0;
    signal.payload_end = 0;
    signal.arrival_ps = ModelTime{1} << 50;
    for (int i = 0; i < 3; ++i) {
        signal.index = bad->next;
        bad->push(signal);
    }
    EXPECT_TRUE(card.port->settle(0x200)) << "nothing is on its way to this one";
    std::atomic_ref(bad->outbox->near.produced).store(1);
    EXPECT_TRUE(card.port->settle(0x200));
    EXPECT_EQ(card.port->state(), ORR_LINK_UP);
}

// What is on its way has room at once; more would be work without end in the midst of clearing a grant.
TEST_F(BadPeerTest, MorePayloadThanThereIsRoomForUnderAClear) {
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    for (std::uint64_t n = 1; n <= 64; ++n) {
        link::Message huge = bad->good();
        huge.bytes = link::kMaxWriteBytes;
        huge.payload_end = n * link::kMaxWriteBytes;
        huge.arrival_ps = huge.head_ps = ModelTime{1} << 50;
        bad->push(huge);
    }
    EXPECT_TRUE(card.port->clear_grant(1));
    expect_down("more payload than there is room for (message 16)");
    expect_alive();
}

TEST_F(BadPeerTest, CreditsThatWereNeverGiven) {
    for (const bool messages : {true, false}) {
        auto bad = peer();
        ASSERT_TRUE(bad->handshake(card));
        bad->inbox->grants[0] = {0, 1 << 20, kA, ORR_LINK_RIGHTS};
        std::atomic_ref(messages ? bad->inbox->near.consumed : bad->inbox->near.payload_consumed)
            .store(~0ull);
        const std::vector<std::byte> data(256 << 10);
        LinkSend sent;
        for (int i = 0; i < 100 && sent.fault == ORR_FAULT_NONE; ++i)
            sent = card.port->write(kB, 0, data);
        EXPECT_EQ(sent.fault, ORR_FAULT_PEER_DOWN);
        expect_down("credits");
    }
    expect_alive();
}

TEST_F(BadPeerTest, GrantsOfThePeerMayBeNonsense) {
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    for (auto& grant : bad->inbox->grants)
        grant = {~0ull - 100, 200, kA, ORR_LINK_RIGHTS};
    EXPECT_EQ(card.port->signal(kB, 0x1000, 1), ORR_FAULT_PEER_DENIED);
    for (auto& grant : bad->inbox->grants)
        grant = {0, ~0ull, kA, ORR_LINK_RIGHTS};
    ++bad->inbox->grants_version;
    EXPECT_EQ(card.port->signal(kB, 0x7fff'ffff'fff0, 1), ORR_FAULT_NONE);
}

TEST_F(BadPeerTest, MessagesBetweenNoNodes) {
    for (const std::uint16_t node : {std::uint16_t{0}, std::uint16_t{ORR_NODES}, std::uint16_t{0xffff}}) {
        spoil_message("names no node", [node](auto& m) { m.source = node; });
        spoil_message("names no node", [node](auto& m) { m.destination = node; });
    }
    expect_alive();
}

// Of somebody else, for somebody else, or from where it cannot come.
TEST_F(BadPeerTest, WritesBetweenOtherNodesAreDeniedAndCounted) {
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    const auto denied = [&](std::uint16_t source, std::uint16_t destination) {
        link::Message message = bad->good();
        message.source = source;
        message.destination = destination;
        const std::uint64_t before = card.counters.get(ORR_CTR_LINK_DENIED);
        bad->push(message);
        while (card.idle_round()) {
        }
        return card.counters.get(ORR_CTR_LINK_DENIED) - before;
    };
    const std::uint64_t value = 0x1234;
    std::memcpy(bad->outbox->near.payload, &value, 8);
    EXPECT_EQ(denied(kB + 1, kA), 1u) << "it has no grant";
    EXPECT_EQ(denied(kB, kA + 1), 1u);
    card.elsewhere = kB;
    EXPECT_EQ(denied(kB, kA), 1u) << "its route is by another port";
    EXPECT_EQ(*card.words(0x100), 0u);
    card.elsewhere = 0;
    EXPECT_EQ(denied(kB, kA), 0u);
    card.port->set_node(0);
    EXPECT_EQ(denied(kB, kA), 1u);
    EXPECT_EQ(card.port->state(), ORR_LINK_UP);
}

TEST_F(BadPeerTest, WritesBesideTheGrantsAreDeniedAndCounted) {
    auto bad = peer();
    ASSERT_TRUE(bad->handshake(card));
    std::memset(bad->outbox->near.payload, 0xff, 4096);
    unsigned sent = 0;
    for (const std::uint64_t offset :
         {0x10000ull, 0xfff9ull, 0x50000ull, 8ull << 20, ~0ull, ~0ull - 7, 1ull << 47}) {
        link::Message message = bad->good();
        message.offset = offset;
        bad->push(message);
        ++sent;
    }
    link::Message huge = bad->good();
    huge.bytes = link::kMaxWriteBytes;
    huge.payload_end = bad->next * 64 + link::kMaxWriteBytes;
    huge.offset = 0;
    bad->push(huge);
    while (card.idle_round()) {
    }
    EXPECT_EQ(card.counters.get(ORR_CTR_LINK_DENIED), sent + 1);
    EXPECT_EQ(card.port->state(), ORR_LINK_UP);
    for (std::uint64_t i = 0; i < 8 << 20; i += 8)
        ASSERT_EQ(*card.words(i), 0u) << i;
}

}  // namespace
}  // namespace orrery::emu::test
