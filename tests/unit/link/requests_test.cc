// Reads and atomics of other cards' memory: exact times, order, rights and keys, and what bad peers make of
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "emulator/link/grants.h"
#include "emulator/link/requests.h"
#include "tests/unit/link/net.h"
#include "tests/unit/link/raw_peer.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kAllRights = ORR_LINK_RIGHTS;

// Remembers what it was told.
struct Ears final : Asker {
    void answered(std::uint32_t tag, const LinkAnswer& answer) override {
        ++calls;
        answers[tag] = answer;
        order.push_back(tag);
    }
    void ways_changed() override { ++changes; }
    std::map<std::uint32_t, LinkAnswer> answers;
    std::vector<std::uint32_t> order;
    unsigned calls = 0, changes = 0;
};

void allow_all(Net& net, std::uint64_t rights = kAllRights, std::uint64_t key = 0) {
    for (auto& owner : net.cards)
        for (auto& from : net.cards)
            for (auto& port : owner->ports)
                if (port && from != owner)
                    ASSERT_TRUE(port->set_grant(from->node - 1, 0, owner->vram.size(), from->node,
                                                {.rights = rights, .key = key}));
}

LinkAsk read(NetCard& card, std::uint32_t from, std::uint64_t offset, std::span<std::byte> to, Asker& asker) {
    return card.peers.towards(from)->read(from, offset, to, kNever, asker);
}
LinkAsk atomic(NetCard& card, std::uint32_t at, std::uint64_t offset, const LinkAtomic& what, Asker& asker) {
    return card.peers.towards(at)->atomic(at, offset, what, kNever, asker);
}

TEST(Requests, ReadsTakeTwoWaysAndTheirBytes) {
    Net net(4, false);
    ASSERT_TRUE(net.up());
    net.forward();
    allow_all(net);
    for (auto& card : net.cards)
        std::iota(card->vram.data(), card->vram.data() + 65536, static_cast<std::uint8_t>(card->node));
    ModelTime at = 10'000 * kPsPerNs;
    for (unsigned hops = 1; hops < 4; ++hops) {
        for (const std::uint64_t bytes : {1ull, 64ull, 4096ull, 32ull << 10}) {
            for (auto& card : net.cards)
                card->events.advance_to(at);
            Ears ears;
            std::vector<std::byte> got(bytes);
            const LinkAsk ask = read(net[0], hops + 1, 3, got, ears);
            ASSERT_EQ(ask.fault, ORR_FAULT_NONE);
            ASSERT_NE(ask.tag, 0u);
            net.run();
            ASSERT_EQ(ears.calls, 1u);
            const LinkAnswer& answer = ears.answers[ask.tag];
            EXPECT_EQ(answer.fault, ORR_FAULT_NONE);
            EXPECT_EQ(std::memcmp(got.data(), net[hops].vram.data() + 3, bytes), 0);
            const ModelTime way = hops * kLatency + (hops - 1) * kSwitching;
            EXPECT_EQ(answer.came, at + on_wire(0) + way + way + on_wire(bytes))
                << hops << " links, " << bytes;
            EXPECT_EQ(answer.began, answer.came - on_wire(bytes));
            at += 1'000'000 * kPsPerNs;
        }
    }
    EXPECT_EQ(net.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DROPPED) + net.sum(ORR_CTR_LINK_DENIED), 0u);
}

TEST(Requests, AReadSeesTheWritesBeforeItAndNotThoseBehind) {
    for (const unsigned to : {1u, 2u}) {
        Net net(3, false);
        ASSERT_TRUE(net.up());
        net.forward();
        allow_all(net);
        Ears ears;
        std::array<std::vector<std::byte>, 40> got;
        for (unsigned n = 0; n < got.size(); ++n) {
            ASSERT_EQ(net[0].write(to + 1, 0, 8192, static_cast<std::uint8_t>(n + 1)).bytes, 8192u);
            got[n].resize(8192);
            ASSERT_NE(read(net[0], to + 1, 0, got[n], ears).tag, 0u);
        }
        net.run();
        ASSERT_EQ(ears.calls, got.size());
        for (unsigned n = 0; n < got.size(); ++n) {
            EXPECT_EQ(got[n].front(), std::byte(n + 1));
            EXPECT_EQ(got[n].back(), std::byte(n + 1));
        }
        EXPECT_TRUE(std::ranges::is_sorted(ears.order));
    }
}

TEST(Requests, AtomicsDoWhatTheySayAndGiveTheOldValue) {
    Net net(2, false);
    ASSERT_TRUE(net.up());
    allow_all(net);
    constexpr std::uint64_t kMinus5 = ~std::uint64_t{0} - 4;
    struct Case {
        std::uint32_t function, bytes;
        std::uint64_t before, operand, compare, after;
    };
    const Case cases[] = {
        {ORR_ATOMIC_ADD, 8, ~0ull, 3, 0, 2},
        {ORR_ATOMIC_ADD, 4, 0x7'ffff'ffff, 3, 0, 0x7'0000'0002},
        {ORR_ATOMIC_SWAP, 8, 7, 9, 0, 9},
        {ORR_ATOMIC_SWAP, 4, 0xaa'0000'0007, 0xbb'0000'0009, 0, 0xaa'0000'0009},
        {ORR_ATOMIC_COMPARE_SWAP, 8, 7, 9, 7, 9},
        {ORR_ATOMIC_COMPARE_SWAP, 8, 7, 9, 8, 7},
        {ORR_ATOMIC_COMPARE_SWAP, 4, 7, 9, 0xff'0000'0007, 9},
        {ORR_ATOMIC_MIN, 8, 3, kMinus5, 0, kMinus5},
        {ORR_ATOMIC_MAX, 8, 3, kMinus5, 0, 3},
        {ORR_ATOMIC_UMIN, 8, 3, kMinus5, 0, 3},
        {ORR_ATOMIC_UMAX, 8, 3, kMinus5, 0, kMinus5},
        {ORR_ATOMIC_MIN, 4, 3, 0xffff'fffb, 0, 0xffff'fffb},
        {ORR_ATOMIC_UMIN, 4, 3, 0xffff'fffb, 0, 3},
        {ORR_ATOMIC_XOR, 8, 0xf0'0000'00ff, 0xff'0000'000f, 0, 0x0f'0000'00f0},
        {ORR_ATOMIC_AND, 8, 0xf0'0000'00ff, 0xff'0000'000f, 0, 0xf0'0000'000f},
        {ORR_ATOMIC_OR, 8, 0xf0'0000'00f0, 0xff'0000'000f, 0, 0xff'0000'00ff},
        {ORR_ATOMIC_OR, 4, 0xf0'0000'00f0, 0xff'0000'000f, 0, 0xf0'0000'00ff},
    };
    for (const Case& one : cases) {
        std::memcpy(net[1].vram.data() + 64, &one.before, 8);
        Ears ears;
        const LinkAsk ask = atomic(
            net[0], 2, 64,
            {.function = one.function, .bytes = one.bytes, .operand = one.operand, .compare = one.compare},
            ears);
        ASSERT_NE(ask.tag, 0u);
        net.run();
        std::uint64_t after = 0;
        std::memcpy(&after, net[1].vram.data() + 64, 8);
        EXPECT_EQ(after, one.after) << one.function << ", " << one.bytes;
        EXPECT_EQ(ears.answers[ask.tag].value, one.bytes == 4 ? one.before & 0xffff'ffff : one.before);
        EXPECT_EQ(ears.answers[ask.tag].fault, ORR_FAULT_NONE);
    }
    Ears ears;
    EXPECT_EQ(atomic(net[0], 2, 65, {.function = ORR_ATOMIC_ADD}, ears).fault, ORR_FAULT_MISALIGNED);
}

class AddToOne : public testing::TestWithParam<std::pair<unsigned, bool>> {};

// Everybody adds to one word of card 0 and reads a page of it, again and again; twice the same times.
TEST_P(AddToOne, SumsAreRightAndTimesTheSame) {
    const auto [number, ring] = GetParam();
    std::vector<ModelTime> first;
    for (int play = 0; play < 2; ++play) {
        Net net(number, ring);
        ASSERT_TRUE(net.up());
        net.forward();
        allow_all(net);
        constexpr unsigned kTimes = 100;
        struct Adder final : Asker {
            explicit Adder(NetCard& its_card) : card(its_card) { next(); }
            void next() {
                if (left == 0) return;
                --left;
                ASSERT_NE(atomic(card, 1, 128, {.function = ORR_ATOMIC_ADD, .operand = 1}, *this).tag, 0u);
                ASSERT_NE(read(card, 1, 4096, page, *this).tag, 0u);
            }
            void answered(std::uint32_t, const LinkAnswer& answer) override {
                ASSERT_EQ(answer.fault, ORR_FAULT_NONE);
                times.push_back(answer.came);
                if (++answers % 2 == 0) next();
            }
            void ways_changed() override {}
            NetCard& card;
            unsigned left = kTimes, answers = 0;
            std::vector<std::byte> page = std::vector<std::byte>(4096);
            std::vector<ModelTime> times;
        };
        std::vector<std::unique_ptr<Adder>> adders;
        for (unsigned n = 1; n < number; ++n)
            adders.push_back(std::make_unique<Adder>(net[n]));
        net.run();
        std::uint64_t sum = 0;
        std::memcpy(&sum, net[0].vram.data() + 128, 8);
        EXPECT_EQ(sum, kTimes * (number - 1));
        std::vector<ModelTime> times;
        for (auto& adder : adders)
            times.insert(times.end(), adder->times.begin(), adder->times.end());
        EXPECT_EQ(times.size(), 2 * kTimes * (number - 1));
        EXPECT_EQ(net.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
        if (play == 0) first = times;
        EXPECT_EQ(times, first);
    }
}
INSTANTIATE_TEST_SUITE_P(Shapes, AddToOne,
                         testing::Values(std::pair(2u, false), std::pair(4u, false), std::pair(4u, true),
                                         std::pair(8u, false), std::pair(8u, true)));

// More answers than the channel back has room for wait at the owner, and none is lost; writes of both go on.
TEST(Requests, AnswersWithoutRoomWait) {
    Net net(2, false);
    ASSERT_TRUE(net.up());
    allow_all(net);
    Ears ears;
    constexpr unsigned kMany = 300;  // of 32 KiB: more than 4 MiB
    std::vector<std::vector<std::byte>> got(kMany, std::vector<std::byte>(32 << 10));
    std::fill_n(net[1].vram.data(), 32 << 10, std::uint8_t{9});
    for (auto& one : got)
        ASSERT_NE(read(net[0], 2, 0, one, ears).tag, 0u);
    ASSERT_EQ(net[0].write(2, 0, 32 << 10, 8).bytes, 32u << 10);
    ASSERT_EQ(net[1].write(1, 0, 4096, 8).bytes, 4096u);
    net.run();
    EXPECT_EQ(ears.calls, kMany);
    for (auto& one : got)
        EXPECT_EQ(one[one.size() - 1], std::byte{9});
    EXPECT_EQ(net[1].byte(0), 8);
    EXPECT_EQ(net[0].byte(0), 8);
    const ModelTime first = on_wire(0) + 2 * kLatency;
    EXPECT_GE(ears.answers[ears.order.back()].came, first + kMany * on_wire(32 << 10));
    EXPECT_LE(ears.answers[ears.order.back()].came, first + kMany * on_wire(32 << 10) + on_wire(4096));
}

TEST(Requests, RightsAndKeys) {
    Net net(2, false);
    ASSERT_TRUE(net.up());
    std::vector<std::byte> page(4096);
    Ears ears;
    // As a driver that knows no rights sets them.
    EXPECT_EQ(read(net[0], 2, 0, page, ears).fault, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(atomic(net[0], 2, 0, {.function = ORR_ATOMIC_ADD}, ears).fault, ORR_FAULT_PEER_DENIED);
    allow_all(net, ORR_LINK_RIGHT_READ);
    EXPECT_NE(read(net[0], 2, 0, page, ears).tag, 0u);
    EXPECT_EQ(net[0].write(2, 0, 8, 1).fault, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(net[0].signal(2, 0, 1), ORR_FAULT_PEER_DENIED);
    net.run();
    EXPECT_EQ(ears.calls, 1u);
    EXPECT_EQ(net[1].ports[0]->counts().denied.get(), 0u);
    // A key is for the owner to judge.
    allow_all(net, kAllRights, 0x1234);
    const LinkAsk ask = read(net[0], 2, 0, page, ears);
    ASSERT_NE(ask.tag, 0u);
    EXPECT_EQ(net[0].write(2, 0, 8, 1).bytes, 8u);
    net.run();
    EXPECT_EQ(ears.answers[ask.tag].fault, ORR_FAULT_PEER_KEY);
    EXPECT_EQ(net[1].byte(0), 0);
    EXPECT_EQ(net[1].ports[0]->counts().denied.get(), 2u);
    EXPECT_EQ(net[1].ports[0]->counts().bad_keys.get(), 2u);
    // Whose write it was is told too.
    EXPECT_EQ(net[0].ports[1]->counts().refused.get(), 1u);
    EXPECT_EQ(net[0].ports[1]->counts().refused_by.get(), 2u | ORR_FAULT_PEER_KEY << 16);
    EXPECT_EQ(net[0].ports[1]->refused_by(2).count, 1u);
    EXPECT_EQ(net[0].ports[1]->refused_by(2).fault, ORR_FAULT_PEER_KEY);
    EXPECT_EQ(net[1].ports[0]->counts().bad_key_by.get(), 1u);
    EXPECT_EQ(net[1].bad_keys, (std::vector<std::uint32_t>{1, 1})) << "the owner's card is told, too";
    // With its key.
    net[0].peers.set_key(2, 0x1234);
    const LinkAsk good = read(net[0], 2, 0, page, ears),
                  add = atomic(net[0], 2, 0, {.function = ORR_ATOMIC_ADD, .operand = 7}, ears);
    EXPECT_EQ(net[0].write(2, 64, 8, 1).bytes, 8u);
    EXPECT_EQ(net[0].signal(2, 128, 1), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(ears.answers[good.tag].fault, ORR_FAULT_NONE);
    EXPECT_EQ(ears.answers[add.tag].fault, ORR_FAULT_NONE);
    EXPECT_EQ(net[1].byte(0), 7);
    EXPECT_EQ(net[1].byte(64), 1);
    EXPECT_EQ(net[1].byte(128), 1);
    EXPECT_EQ(net[1].ports[0]->counts().bad_keys.get(), 2u);
    EXPECT_EQ(net[0].ports[1]->counts().refused.get(), 1u);
}

// Each request that is forged by a plan is refused, and tells nobody a second time what the first did.
TEST(Requests, ForgedOnes) {
    Net net(2, false);
    ASSERT_TRUE(net.up());
    allow_all(net, kAllRights, 0x77);
    net[0].peers.set_key(2, 0x77);
    ASSERT_TRUE(net[0].faults.add("link port=1 first=2 count=3 forge"));
    Ears ears;
    std::vector<std::byte> page(64);
    EXPECT_EQ(net[0].write(2, 0, 8, 1).bytes, 8u);
    EXPECT_EQ(net[0].write(2, 8, 8, 1).bytes, 8u);
    EXPECT_EQ(net[0].signal(2, 16, 1), ORR_FAULT_NONE);
    const LinkAsk ask = read(net[0], 2, 0, page, ears);
    EXPECT_EQ(net[0].signal(2, 32, 1), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net[1].byte(0), 1);
    EXPECT_EQ(net[1].byte(8), 0);
    EXPECT_EQ(net[1].byte(16), 0);
    EXPECT_EQ(net[1].byte(32), 1);
    EXPECT_EQ(ears.answers[ask.tag].fault, ORR_FAULT_PEER_KEY);
    EXPECT_EQ(net[1].ports[0]->counts().bad_keys.get(), 3u);
    EXPECT_EQ(net[1].bad_keys.size(), 2u) << "the first and the second";
    EXPECT_EQ(net[0].ports[1]->counts().refused.get(), 2u);
}

// A card that keeps its first key is as good as any until that one has ended.
TEST(Requests, StaleOnes) {
    Net net(2, false);
    ASSERT_TRUE(net.up());
    ASSERT_TRUE(net[0].faults.add("link port=1 count=all stale"));
    allow_all(net, kAllRights, 0x77);
    net[0].peers.set_key(2, 0x77);
    EXPECT_EQ(net[0].write(2, 0, 8, 1).bytes, 8u);
    net.run();
    EXPECT_EQ(net[1].byte(0), 1);
    net[0].peers.forget_routes();  // as a reset does
    net[0].route(2, 1);
    allow_all(net, kAllRights, 0x88);
    net[0].peers.set_key(2, 0x88);
    EXPECT_EQ(net[0].write(2, 8, 8, 1).bytes, 8u);
    net.run();
    EXPECT_EQ(net[1].byte(8), 0);
    EXPECT_EQ(net[1].ports[0]->counts().bad_keys.get(), 1u);
    allow_all(net, kAllRights, 0x77);
    EXPECT_EQ(net[0].write(2, 16, 8, 1).bytes, 8u);
    net.run();
    EXPECT_EQ(net[1].byte(16), 1) << "it is the key, and nothing else";
}

// What was asked before is answered, and nothing afterwards.
TEST(Requests, AClearedGrantIsClearAtOnce) {
    for (const unsigned to : {1u, 2u}) {
        Net net(3, false);
        ASSERT_TRUE(net.up());
        net.forward();
        allow_all(net);
        std::fill_n(net[to].vram.data(), 4096, std::uint8_t{5});
        Ears ears;
        std::vector<std::byte> before(4096), behind(4096);
        const LinkAsk one = read(net[0], to + 1, 0, before, ears);
        // Over several links the driver drains them first.
        if (to == 2) {
            net[1].ports[0]->drain();
            net[1].events.run_due();
        }
        for (auto& port : net[to].ports)
            if (port) port->clear_grant(0);
        std::fill_n(net[to].vram.data(), 4096, std::uint8_t{6});
        const LinkAsk two = read(net[0], to + 1, 0, behind, ears);
        net.run();
        EXPECT_EQ(ears.answers[one.tag].fault, ORR_FAULT_NONE) << to;
        EXPECT_EQ(before[4095], std::byte{5});
        if (to == 1)
            EXPECT_EQ(two.fault, ORR_FAULT_PEER_DENIED);
        else
            EXPECT_EQ(ears.answers[two.tag].fault, ORR_FAULT_PEER_DENIED);
        EXPECT_EQ(behind[0], std::byte{0});
    }
}

// Whoever frees something on the owner hurries what others have asked for. What has no room for its answer
// gets it later, and is not denied for a grant by which it does not go.
TEST(Requests, AnotherGrantThatGoesIsNobodysFault) {
    constexpr std::uint64_t kBytes = PeerPort::kMostRead;
    Net net(2, false);
    ASSERT_TRUE(net.up());
    LinkPort& owner = *net[1].ports[0];
    ASSERT_TRUE(owner.set_grant(0, 0, kBytes, 1, {.rights = kAllRights}));
    ASSERT_TRUE(owner.set_grant(1, 1 << 20, 4096, 1, {.rights = kAllRights}));
    Ears ears;
    std::vector<std::vector<std::byte>> got(200, std::vector<std::byte>(kBytes));
    const auto fill = [&](int with) { std::memset(net[1].vram.data(), with, kBytes); };
    fill(5);
    for (std::size_t i = 0; i + 2 < got.size(); ++i)
        ASSERT_NE(read(net[0], 2, 0, got[i], ears).tag, 0u);
    ASSERT_NE(atomic(net[0], 2, 1 << 20, {.function = ORR_ATOMIC_ADD, .bytes = 8, .operand = 1}, ears).tag,
              0u);
    // Only the owner looks at the link, so its answers fill it.
    const auto owner_runs = [&] {
        for (unsigned i = 0; i < 2000; ++i) {
            owner.poll();
            net[1].events.run_next(kNever - 1);
        }
    };
    owner_runs();
    ASSERT_LT(net[1].ports[0]->counts().tx_messages.get(), got.size() - 2);
    ASSERT_TRUE(owner.clear_grant(1));
    // All of it was carried out before the grant went; what comes now is judged without.
    fill(6);
    EXPECT_EQ(net[1].vram.data()[1 << 20], 1);
    net.run();
    EXPECT_EQ(ears.calls, got.size() - 1);
    for (const auto& [tag, answer] : ears.answers)
        EXPECT_EQ(answer.fault, ORR_FAULT_NONE);
    EXPECT_TRUE(std::ranges::is_sorted(ears.order)) << "in the order of the requests";
    for (std::size_t i = 0; i + 2 < got.size(); ++i)
        ASSERT_EQ(got[i].back(), std::byte{5}) << i;
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DENIED), 0u);
    // Nothing is left behind.
    ears = {};
    ASSERT_NE(read(net[0], 2, 0, got[0], ears).tag, 0u);
    net.run();
    EXPECT_EQ(ears.calls, 1u);
    EXPECT_EQ(got[0][0], std::byte{6});
}

TEST(Requests, ALinkThatGoesDownEndsThem) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    net.forward();
    allow_all(net);
    Ears ears;
    std::vector<std::byte> page(4096), far(4096);
    const LinkAsk ask = read(net[0], 2, 0, page, ears), farther = read(net[0], 3, 0, far, ears);
    net[0].ports[1]->unplug();
    EXPECT_EQ(ears.answers[ask.tag].fault, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(ears.answers[farther.tag].fault, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(read(net[0], 2, 0, page, ears).fault, ORR_FAULT_PEER_DOWN);
    net.run();
    EXPECT_EQ(ears.calls, 2u);
    EXPECT_EQ(page[0], std::byte{0});
}

// A link between others: the driver gives the pair another epoch.
TEST(Requests, ANewEpochEndsWhatWasAskedInTheOld) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    net.forward();
    allow_all(net);
    Ears ears;
    std::vector<std::byte> page(4096);
    const LinkAsk ask = read(net[0], 3, 0, page, ears);
    net[1].ports[1]->unplug();
    net.run();
    EXPECT_EQ(ears.calls, 1u) << "the card on the way sends nothing on, and says so";
    EXPECT_EQ(ears.answers[ask.tag].fault, ORR_FAULT_PEER_DOWN);
    // One that gets no answer at all.
    net[1].route(1, 0, 0, 0);
    Ears silent;
    net[1].ports[0]->set_forward(false);
    const LinkAsk lost = read(net[0], 3, 0, page, silent);
    net[0].route(3, 1, 7);
    net[0].ports[1]->routes_changed();
    EXPECT_EQ(silent.answers[lost.tag].fault, ORR_FAULT_PEER_DOWN);
    net.run();
    EXPECT_EQ(silent.calls, 1u);
}

TEST(Requests, NoRouteFromACardOnTheWay) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    net.forward();
    allow_all(net);
    net[0].route(9, 1);
    Ears ears;
    std::vector<std::byte> page(64);
    const LinkAsk ask = read(net[0], 9, 0, page, ears);
    ASSERT_NE(ask.tag, 0u);
    net.run();
    EXPECT_EQ(ears.answers[ask.tag].fault, ORR_FAULT_NO_ROUTE);
}

TEST(Requests, AnAbandonedOneIsForNobody) {
    Net net(2, false);
    ASSERT_TRUE(net.up());
    allow_all(net);
    std::fill_n(net[1].vram.data(), 4096, std::uint8_t{5});
    Ears ears;
    std::vector<std::byte> page(4096), other(4096);
    const LinkAsk ask = read(net[0], 2, 0, page, ears);
    net[0].ports[1]->abandon(ask.tag);
    const LinkAsk next = read(net[0], 2, 0, other, ears);
    EXPECT_NE(next.tag, ask.tag);
    net.run();
    EXPECT_EQ(ears.calls, 1u);
    EXPECT_EQ(page[0], std::byte{0});
    EXPECT_EQ(other[0], std::byte{5});
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DENIED), 0u);
}

TEST(Requests, TagsComeAgainOnlyAfterManyOthers) {
    link::Requests requests;
    Ears ears;
    std::vector<std::uint32_t> tags;
    for (unsigned n = 0; n < link::Requests::kSlots; ++n)
        tags.push_back(requests.add({.asker = &ears, .node = 2}));
    EXPECT_EQ(requests.add({.asker = &ears, .node = 2}), 0u) << "all slots are taken";
    EXPECT_FALSE(requests.take(tags[5], 3)) << "from another node";
    EXPECT_TRUE(requests.take(tags[5], 2));
    EXPECT_FALSE(requests.take(tags[5], 2)) << "twice";
    const std::uint32_t again = requests.add({.asker = &ears, .node = 2});
    EXPECT_NE(again, tags[5]);
    EXPECT_FALSE(requests.take(tags[5], 2)) << "an old one";
    EXPECT_FALSE(requests.take(0, 2));
    EXPECT_FALSE(requests.take(~0u, 2));
    EXPECT_TRUE(requests.take(again, 2));
}

// The owner's fault plan cuts the link in the middle of what it answers.
// What saved groups wait for is no reason to have others wait.
TEST(Requests, ThoseThatArePutAsideLeaveSomeForOthers) {
    link::Requests requests;
    Ears ears;
    std::vector<std::uint32_t> tags;
    for (unsigned n = 0; n < link::Requests::kSlots / 2; ++n) {
        tags.push_back(requests.add({.asker = &ears, .node = 2}));
        requests.put_aside(tags.back(), true);
    }
    EXPECT_FALSE(requests.waits());
    EXPECT_EQ(requests.abandoned(2), link::Requests::kSlots / 2);
    EXPECT_EQ(requests.add({.asker = &ears, .node = 2}), 0u);
    const std::uint32_t other = requests.add({.asker = &ears, .node = 3});
    EXPECT_NE(other, 0u);
    EXPECT_TRUE(requests.take(other, 3));
    EXPECT_FALSE(requests.waits());
    for (const std::uint32_t tag : tags)
        requests.put_aside(tag, false);
    EXPECT_TRUE(requests.waits());
    requests.put_aside(tags[1], true);
    requests.abandon(tags[1]);
    for (const std::uint32_t tag : tags) {
        const auto request = requests.take(tag, 2);
        ASSERT_TRUE(request);
        EXPECT_EQ(request->asker == nullptr, tag == tags[1]);
    }
    EXPECT_FALSE(requests.waits());
}

TEST(Requests, AnAnswerMayCutTheLink) {
    Net net(2, false);
    ASSERT_TRUE(net.up());
    allow_all(net);
    ASSERT_TRUE(net[1].faults.add("link port=0 first=3 fail"));
    Ears ears;
    std::vector<std::byte> page(4096);
    for (unsigned n = 0; n < 8; ++n)
        ASSERT_NE(read(net[0], 2, 0, page, ears).tag, 0u);
    net.run();
    EXPECT_FALSE(net[1].ports[0]->up());
    // The other end hears of it.
    ASSERT_TRUE(net.up());
    EXPECT_EQ(ears.calls, 8u);
}

TEST(Requests, WhatAPlanLosesIsTold) {
    Net net(2, false);
    ASSERT_TRUE(net.up());
    allow_all(net);
    ASSERT_TRUE(net[1].faults.add("link port=0 first=1 drop"));
    Ears ears;
    std::vector<std::byte> page(4096);
    const LinkAsk ask = read(net[0], 2, 0, page, ears);
    net.run();
    EXPECT_EQ(ears.answers[ask.tag].fault, ORR_FAULT_PEER_DOWN);
}

// --- a peer that answers as it likes ---

class BadAnswers : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(peer.handshake(card));
        peer.inbox->grants_end = 1;
        link::publish_grant(*peer.inbox.operator->(), 0,
                            {.base = 0, .size = 1 << 20, .node = kA, .rights = kAllRights});
        std::atomic_ref(peer.inbox->grants_version).store(1);
    }
    link::Message answer(std::uint32_t tag, std::uint32_t bytes) {
        link::Message made = peer.good();
        made.op = link::kOpAnswer;
        made.offset = 0;
        made.bytes = bytes;
        made.index = next;
        made.tag = tag;
        made.payload_end = payload += (bytes + 63) / 64 * 64;
        return made;
    }
    void push(const link::Message& message) {
        std::memcpy(&peer.outbox->near_back.ring[next % link::kRingEntries], &message, sizeof message);
        std::atomic_ref(peer.outbox->near_back.produced).store(++next, std::memory_order_release);
    }
    void run() {
        while (card.idle_round()) {
        }
    }
    TempFolder folder;
    LinkCard card{kA, true, folder.file("link")};
    RawPeer peer{folder.file("link")};
    Ears ears;
    std::vector<std::byte> page = std::vector<std::byte>(64);
    std::uint64_t next = 0, payload = 0;
};

TEST_F(BadAnswers, UnknownAndSecondOnesDoNothing) {
    const LinkAsk ask = card.port->read(kB, 0, page, kNever, ears);
    ASSERT_NE(ask.tag, 0u);
    push(answer(ask.tag + 1, 64));
    push(answer(0, 0));
    run();
    EXPECT_EQ(ears.calls, 0u);
    std::memset(peer.outbox->near_back.payload, 3, 64);
    link::Message good = answer(ask.tag, 64);
    push(good);
    run();
    EXPECT_EQ(ears.calls, 1u);
    EXPECT_EQ(ears.answers[ask.tag].fault, ORR_FAULT_NONE);
    EXPECT_EQ(page[63], std::byte{3});
    std::memset(peer.outbox->near_back.payload, 4, 64);
    push(answer(ask.tag, 64));
    link::Message forged = answer(ask.tag, 64);
    forged.source = 5;
    push(forged);
    run();
    EXPECT_EQ(ears.calls, 1u);
    EXPECT_EQ(page[63], std::byte{3});
    EXPECT_EQ(card.counters.get(ORR_CTR_LINK_DENIED), 4u);
    EXPECT_TRUE(card.port->up());
}

// Answers that nobody takes are not kept for ever: who asks on gets no more, and the link and the card live
// on.
TEST_F(BadAnswers, WhoTakesNoAnswersGetsNoMore) {
    for (const bool far : {true, false}) {
        RawPeer bad(folder.file("link"));
        card.port->unplug();
        ASSERT_TRUE(card.port->plug());
        ASSERT_TRUE(bad.handshake(card));
        card.port->set_forward(true);
        for (unsigned n = 1; n <= 98'304 && card.port->up(); ++n) {
            link::Message ask = far ? bad.good_far(0) : bad.good();
            ask.op = link::kOpRead;
            ask.bytes = 8;
            ask.payload_end = 0;
            ask.tag = n;
            if (far) {
                ask.destination = 9;
                bad.push_far(ask);
            } else {
                bad.push(ask);
            }
            if (n % 8192 != 0) continue;
            run();
            // What waits in the inbox is carried out at once.
            if (far) continue;
            ASSERT_TRUE(card.port->set_grant(0, 0, 4096, kB, {.rights = kAllRights}));
            ASSERT_TRUE(card.port->clear_grant(0));
        }
        EXPECT_TRUE(card.port->up()) << far;
        link::Channel& from = bad.inbox->near_back;
        std::uint64_t taken = 0;
        for (; taken < 98'304; std::atomic_ref(from.consumed).store(++taken, std::memory_order_release)) {
            if (std::atomic_ref(from.produced).load() == taken) run();
            if (std::atomic_ref(from.produced).load() == taken) break;
        }
        // A ring full, and what it may have asked for in two lives of the link.
        EXPECT_EQ(taken, link::kRingEntries + 2 * link::Requests::kSlots) << far;
    }
    RawPeer good(folder.file("link"));
    EXPECT_TRUE(good.handshake(card));
}

// What one node asks for and finds no room leaves some for the others behind the port; what one alone may ask
// for has it all.
TEST_F(BadAnswers, WhatIsOwedToOneNodeLeavesSomeForOthers) {
    constexpr std::uint32_t kBytes = link::kMaxReadBytes, kRoom = link::kPayloadBytes / kBytes;
    constexpr std::uint32_t kMany = 1100, kFew = 100, kGreedy = 5, kModest = 6;
    card.port->set_forward(true);
    ASSERT_TRUE(card.port->set_grant(0, 0, 4096, kB, {.rights = kAllRights}));
    ASSERT_TRUE(card.port->set_grant(1, 0, 1 << 20, kGreedy, {.rights = kAllRights}));
    ASSERT_TRUE(card.port->set_grant(2, 0, 1 << 20, kModest, {.rights = kAllRights}));
    for (std::uint32_t n = 0; n < kMany + kFew; ++n) {
        link::Message ask = peer.good();
        ask.op = link::kOpRead;
        ask.bytes = kBytes;
        ask.payload_end = 0;
        ask.source = n < kMany ? kGreedy : kModest;
        ask.tag = n + 1;
        peer.push(ask);
    }
    ASSERT_TRUE(card.port->clear_grant(0));  // all of them are carried out now
    ASSERT_TRUE(card.port->up());
    std::map<std::uint32_t, unsigned> good, lost;
    link::Channel& from = peer.inbox->far_back;
    for (std::uint64_t taken = 0; taken < kMany + kFew; ++taken) {
        if (std::atomic_ref(from.produced).load() == taken) card.idle_round();
        ASSERT_GT(std::atomic_ref(from.produced).load(), taken);
        const link::Message& one = from.ring[taken % link::kRingEntries];
        EXPECT_EQ(one.tag, taken + 1);
        EXPECT_EQ(one.bytes, one.status == link::kDone ? kBytes : 0);
        ++(one.status == link::kDone ? good : lost)[one.destination];
        std::atomic_ref(from.payload_consumed).store(one.payload_end);
        std::atomic_ref(from.consumed).store(taken + 1, std::memory_order_release);
    }
    EXPECT_EQ(good[kModest], kFew);
    EXPECT_EQ(lost[kModest], 0u);
    EXPECT_EQ(good[kGreedy], kRoom + link::Requests::kSlots);
    EXPECT_FALSE(card.port->congested());
}

TEST_F(BadAnswers, WhatOneNodeIsDeniedEndsNobodyElsesLink) {
    constexpr std::uint32_t kTurns = 5, kMany = 14'000, kGreedy = 5, kModest = 6;
    card.port->set_forward(true);
    ASSERT_TRUE(card.port->set_grant(2, 0, 4096, kModest, {.rights = kAllRights}));
    std::uint32_t tag = 0;
    const auto ask_of = [&](std::uint32_t node) {
        link::Message ask = peer.good();
        ask.op = link::kOpRead;
        ask.bytes = 8;
        ask.payload_end = 0;
        ask.source = static_cast<std::uint16_t>(node);
        ask.tag = ++tag;
        peer.push(ask);
    };
    const auto carry_out = [&] {
        ASSERT_TRUE(card.port->set_grant(0, 0, 4096, kB, {.rights = kAllRights}));
        ASSERT_TRUE(card.port->clear_grant(0));
    };
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
        for (std::uint32_t n = 0; n < kMany; ++n)
            ask_of(kGreedy);
        carry_out();
        run();
    }
    ask_of(kModest);
    const std::uint32_t modest = tag;
    carry_out();
    ASSERT_TRUE(card.port->up());
    link::Channel& from = peer.inbox->far_back;
    bool answered = false;
    for (std::uint64_t taken = 0; !answered && taken < tag; ++taken) {
        if (std::atomic_ref(from.produced).load() == taken) card.idle_round();
        ASSERT_GT(std::atomic_ref(from.produced).load(), taken);
        const link::Message& one = from.ring[taken % link::kRingEntries];
        answered = one.tag == modest && one.status == link::kDone;
        std::atomic_ref(from.payload_consumed).store(one.payload_end);
        std::atomic_ref(from.consumed).store(taken + 1, std::memory_order_release);
    }
    EXPECT_TRUE(answered);
    EXPECT_GT(card.counters.get(ORR_CTR_LINK_DENIED), kTurns * kMany);
}

TEST_F(BadAnswers, OfAnotherLengthNothingIsTaken) {
    for (const std::uint32_t bytes : {0u, 63u, 65u, 32768u}) {
        const LinkAsk ask = card.port->read(kB, 0, page, kNever, ears);
        ASSERT_NE(ask.tag, 0u);
        push(answer(ask.tag, bytes));
        run();
        EXPECT_EQ(ears.answers[ask.tag].fault, ORR_FAULT_PEER_DENIED) << bytes;
    }
    EXPECT_EQ(page[0], std::byte{0});
    EXPECT_TRUE(card.port->up());
}

TEST_F(BadAnswers, NonsenseTakesTheLinkDownAndEndsWhatWaits) {
    const auto spoil = [&](const char* what, const std::function<void(link::Message&)>& how) {
        RawPeer bad(folder.file("link"));
        ASSERT_TRUE(bad.handshake(card));
        bad.inbox->grants_end = 1;
        link::publish_grant(*bad.inbox.operator->(), 0,
                            {.base = 0, .size = 1 << 20, .node = kA, .rights = kAllRights});
        std::atomic_ref(bad.inbox->grants_version).store(1);
        Ears waits;
        const LinkAsk ask = card.port->read(kB, 0, page, kNever, waits);
        ASSERT_NE(ask.tag, 0u);
        next = payload = 0;
        link::Message message = answer(ask.tag, 64);
        how(message);
        std::memcpy(&bad.outbox->near_back.ring[0], &message, sizeof message);
        std::atomic_ref(bad.outbox->near_back.produced).store(1, std::memory_order_release);
        run();
        EXPECT_FALSE(card.port->up()) << what;
        EXPECT_THAT(card.port->down_reason(), testing::HasSubstr(what));
        EXPECT_EQ(waits.answers[ask.tag].fault, ORR_FAULT_PEER_DOWN) << what;
    };
    card.port->unplug();
    ASSERT_TRUE(card.port->plug());
    spoil("other's channel", [](auto& m) { m.op = link::kOpWrite; });
    spoil("bad status", [](auto& m) { m.status = link::kStatuses; });
    spoil("bad status", [](auto& m) { m.status = link::kDenied; });
    spoil("bad length", [](auto& m) { m.bytes = link::kMaxReadBytes + 1; });
    spoil("payload credit", [](auto& m) { m.payload_end = 63; });
    spoil("out of range", [](auto& m) { m.payload_at = link::kPayloadBytes; });
    spoil("reserved", [](auto& m) { m.key = 1; });
    spoil("unknown reduction", [](auto& m) { m.function = 1; });
}

}  // namespace
}  // namespace orrery::emu::test
