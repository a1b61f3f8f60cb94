// A signal on a link where nothing waits, and nothing may happen to it, goes a way of its own: shorter, and
// with the same judgment, times, order, counts and faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>

#include "emulator/link/reader.h"
#include "tests/unit/link/faulty_pair.h"
#include "tests/unit/link/raw_peer.h"

namespace orrery::emu::test {
namespace {

// --- judgment ---

link::Message good_signal() {
    link::Message message{};
    message.op = link::kOpSignal;
    message.send_ps = 1000;
    message.arrival_ps = 3000;
    message.head_ps = 2000;
    message.offset = 0x40;
    message.value = 7;
    message.source = kB;
    message.destination = kA;
    return message;
}

// As wire.h has it, of the first message of a channel.
bool is_good(const link::Message& m) {
    if (m.index != 0 || m.payload_end != 0 || m.payload_at != 0 || m.bytes != 0) return false;
    if (m.arrival_ps < m.send_ps || m.arrival_ps < m.head_ps || m.arrival_ps >= kLatestSystemTime)
        return false;
    if (m.source == 0 || m.source >= ORR_NODES || m.destination == 0 || m.destination >= ORR_NODES)
        return false;
    if (m.tag != 0 || m.function != 0 || m.status != 0 || m.compare != 0 || m.hops > link::kMostHops)
        return false;
    return m.op == link::kOpSignal && m.offset % 16 == 0;
}

class SignalJudgment : public testing::Test {
  protected:
    void judge(const link::Message& message, bool good,
               link::Reader::Takes takes = link::Reader::Takes::kRequests) {
        link::Channel& channel = (*area_)->near;
        link::Reader reader(counts_);
        reader.open(channel, takes);
        channel.ring[0] = message;
        channel.produced = 1;
        const auto [found, wrong] = reader.next();
        EXPECT_EQ(found != nullptr, good);
        EXPECT_EQ(wrong, !good) << reader.why();
        EXPECT_EQ(reader.why().empty(), good);
    }
    link::Counts counts_;
    std::expected<link::SharedArea, std::string> area_ = link::SharedArea::create();
};

TEST_F(SignalJudgment, EachBitOfASignalIsJudged) {
    using Bits = std::array<std::uint8_t, sizeof(link::Message)>;
    std::mt19937_64 random(3);
    unsigned good = 0, bad = 0;
    for (unsigned round = 0; round < 20'000; ++round) {
        Bits bits = std::bit_cast<Bits>(good_signal());
        const auto flip = [&](std::uint64_t bit) {
            bits[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
        };
        constexpr unsigned kBits = sizeof(link::Message) * 8;
        if (round < kBits) {
            flip(round);
        } else {
            for (unsigned n = 0; n < 2 + round % 3; ++n)
                flip(random() % kBits);
        }
        const auto message = std::bit_cast<link::Message>(bits);
        // Other operations have a judgment of their own.
        if (message.op != link::kOpSignal && round >= kBits) continue;
        SCOPED_TRACE(testing::Message() << "round " << round);
        ASSERT_NO_FATAL_FAILURE(judge(message, is_good(message)));
        ++(is_good(message) ? good : bad);
    }
    EXPECT_GT(good, 1000u);
    EXPECT_GT(bad, 1000u);
    judge(good_signal(), false, link::Reader::Takes::kAnswers);
}

TEST_F(SignalJudgment, ASignalComesBehindWhatWasThere) {
    link::Channel& channel = (*area_)->near;
    link::Reader reader(counts_);
    reader.open(channel);
    channel.ring[0] = good_signal();
    channel.produced = 1;
    ASSERT_NE(reader.next().message, nullptr);
    reader.take();
    link::Message second = good_signal();
    second.index = 1;
    second.arrival_ps -= 1;
    second.head_ps -= 1;
    channel.ring[1] = second;
    channel.produced = 2;
    EXPECT_TRUE(reader.next().wrong);
    second.arrival_ps += 1;
    channel.ring[1] = second;
    EXPECT_NE(reader.next().message, nullptr);
}

// --- order ---

class SignalTest : public testing::Test {
  protected:
    void bring_up() {
        ASSERT_TRUE(connect(a, b));
        ASSERT_TRUE(b.port->set_grant(0, 0, 1 << 20, kA));
        b.idle = true;
    }
    TempFolder folder;
    LinkCard a{0xa, true, folder.file("link"), 2}, b{0xb, false, folder.file("link"), 5};
};

TEST_F(SignalTest, AnIdleCardCarriesItOutWhenItSeesIt) {
    bring_up();
    unsigned others = 0;
    b.events.before_others([](void* to) { ++*static_cast<unsigned*>(to); }, &others);
    const std::uint64_t fired = b.events.fired();
    ASSERT_EQ(a.port->signal(kB, 0x40, 5), ORR_FAULT_NONE);
    EXPECT_TRUE(b.port->poll());
    EXPECT_EQ(b.pokes, std::vector<std::uint64_t>{0x40});
    EXPECT_EQ(b.words(0x40)[0], 5u);
    EXPECT_EQ(b.words(0x40)[1], b.events.system_now()) << "at its time";
    EXPECT_EQ(b.events.now(), 0u);
    EXPECT_EQ(b.events.fired(), fired + 1) << "it is an event all the same";
    EXPECT_EQ(others, 1u) << "and what others have put off comes before it";
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_STRAGGLERS), 0u);
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_RX_MESSAGES), 1u);
    EXPECT_EQ(b.port->next_arrival(), kNever);
    EXPECT_FALSE(b.port->poll());
}

TEST_F(SignalTest, WhatIsDueComesBeforeIt) {
    bring_up();
    struct Seen {
        const LinkCard& card;
        std::size_t pokes = 99;
    } seen{.card = b};
    Event due(
        [](void* to, ModelTime) {
            Seen& what = *static_cast<Seen*>(to);
            what.pokes = what.card.pokes.size();
        },
        &seen);
    b.events.schedule(due, b.events.now());
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    EXPECT_TRUE(b.port->poll());
    EXPECT_TRUE(b.pokes.empty());
    EXPECT_EQ(b.port->next_arrival(), b.events.now());
    b.events.run_due();
    EXPECT_EQ(seen.pokes, 0u);
    EXPECT_EQ(b.pokes.size(), 1u);
}

TEST_F(SignalTest, WhatItsCardHasNoRoomForStays) {
    bring_up();
    b.poke_lane_full = true;
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    for (int i = 0; i < 5; ++i)
        b.round();
    EXPECT_EQ(b.words(0)[0], 0u);
    b.poke_lane_full = false;
    b.port->poke_room();
    while (b.idle_round()) {
    }
    EXPECT_EQ(b.words(0)[0], 1u);
}

TEST_F(SignalTest, AnotherGrantIsLookedAtAtOnce) {
    bring_up();
    ASSERT_EQ(a.port->signal(kB, 0x40, 1), ORR_FAULT_NONE);
    EXPECT_TRUE(b.port->poll());
    // Which was enough, and is for others now, or for less.
    for (const auto& [base, node, rights] :
         {std::tuple{0u, 0xcu, ORR_LINK_RIGHT_SIGNAL}, std::tuple{0x1000u, kA, ORR_LINK_RIGHT_SIGNAL},
          std::tuple{0u, kA, ORR_LINK_RIGHT_WRITE}}) {
        ASSERT_TRUE(b.port->set_grant(0, base, 0x1000, node, {.rights = rights}));
        EXPECT_EQ(a.port->signal(kB, 0x40, 9), ORR_FAULT_PEER_DENIED);
    }
    ASSERT_TRUE(b.port->set_grant(0, 0, 0x1000, kA));
    ASSERT_EQ(a.port->signal(kB, 0x40, 2), ORR_FAULT_NONE);
    ASSERT_TRUE(b.port->clear_grant(0));
    EXPECT_EQ(b.words(0x40)[0], 2u) << "it had been sent before";
    ASSERT_TRUE(b.port->set_grant(0, 0, 0x1000, kA));
    ASSERT_EQ(a.port->signal(kB, 0x40, 3), ORR_FAULT_NONE);
    ASSERT_TRUE(b.port->set_grant(0, 0x1000, 0x1000, kA));
    b.port->poll();
    EXPECT_EQ(b.words(0x40)[0], 2u) << "the owner judges by what it grants when it comes";
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_DENIED), 1u);
}

// Who waits for room is told of it in a round that finds nothing more to do, or before the card sleeps.
TEST(SignalCredit, AWishForCreditIsHeard) {
    for (const bool sleeps : {false, true}) {
        const TempFolder folder;
        LinkCard card(0xa, true, folder.file("link"));
        ASSERT_TRUE(card.port->set_grant(0, 0, 0x10000, kB));
        RawPeer peer(folder.file("link"));
        ASSERT_TRUE(peer.handshake(card));
        card.idle = true;
        std::atomic_ref(peer.outbox->need_credit).store(1);
        peer.push(good_signal());
        ASSERT_TRUE(card.port->poll());
        ASSERT_EQ(card.pokes.size(), 1u);
        if (sleeps)
            EXPECT_TRUE(card.port->prepare_sleep());
        else
            card.port->poll();
        EXPECT_EQ(std::atomic_ref(peer.outbox->need_credit).load(), 0u) << sleeps;
    }
}

// --- times and faults ---

struct Play {
    std::vector<std::uint64_t> words;  // of the semaphores, and counters
    bool operator==(const Play&) const = default;
};

// Signals and writes at random times; `before`: rules for the first half of them, `then` for the second.
Play play(const std::string& plan, const std::string& before, const std::string& then) {
    FaultyPair pair(plan, plan);
    EXPECT_TRUE(pair.up());
    std::mt19937_64 random(9);
    Faults* const faults = pair.a.config.faults;
    const auto rules = [&](const std::string& text) {
        if (faults == nullptr) return;
        faults->clear();
        if (!text.empty()) EXPECT_TRUE(faults->add(text));
    };
    rules(before);
    constexpr unsigned kMessages = 400;
    for (unsigned n = 0; n < kMessages; ++n) {
        if (n == kMessages / 2) rules(then);
        if (n % 5 == 3) pair.write(0x100000, 64 + random() % 5000, n);
        EXPECT_EQ(pair.a.port->signal(kB, 16 * n, n + 1), ORR_FAULT_NONE);
        if (n % 3 == 0) pair.a.events.advance_to(pair.a.events.now() + random() % 2'000'000);
        if (n % 7 == 0) pair.deliver();
    }
    pair.deliver();
    Play result;
    for (unsigned n = 0; n < kMessages; ++n)
        result.words.insert(result.words.end(), pair.b.words(16 * n), pair.b.words(16 * n) + 2);
    const link::Counts& sent = pair.a.port->counts();
    for (const link::Count* count : {&sent.tx_messages, &sent.tx_bytes, &sent.waited_ps, &sent.retries})
        result.words.push_back(1 + count->get());
    for (const orr_counter counter : {ORR_CTR_LINK_TX_MESSAGES, ORR_CTR_LINK_TX_BYTES})
        result.words.push_back(pair.a.counters.get(counter));
    for (const orr_counter counter : {ORR_CTR_LINK_RX_MESSAGES, ORR_CTR_LINK_RX_BYTES})
        result.words.push_back(pair.b.counters.get(counter));
    return result;
}

// Of a port that is not there: nothing happens, but each message goes by the way of those to which it might.
constexpr const char* kNothing = "wire port=6 corrupt; link port=6 drop";

TEST(SignalTimes, AreThoseOfTheLongWay) {
    const Play plain = play("", "", "");
    EXPECT_EQ(play(kNothing, "", ""), plain) << "with CRCs";
    EXPECT_EQ(play(kNothing, kNothing, kNothing), plain) << "the long way";
}

// Also of rules that come later: which frames are damaged depends on how many went before them.
TEST(SignalTimes, RulesThatComeLater) {
    const std::string damages = "wire port=2 count=all chance=0.3 corrupt";
    const Play late = play(kNothing, "", damages);
    EXPECT_EQ(play(kNothing, kNothing, damages), late);
    EXPECT_NE(play(kNothing, "", ""), late);
    const Play lost = play(kNothing, "", "link port=2 first=9 count=1 drop");
    EXPECT_EQ(std::ranges::count(lost.words, 0u), 2) << "one semaphore";
    EXPECT_EQ(std::ranges::count(play(kNothing, "", "").words, 0u), 0);
}

}  // namespace
}  // namespace orrery::emu::test
