// Reads of multicasts that a switch combines: bits, exact times, members that fail, and room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/hw/engine.h>

#include <bit>
#include <memory>
#include <random>

#include "emulator/link/reductions.h"
#include "emulator/link/shared_area.h"
#include "tests/unit/switch/star.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint32_t kAll = 900;
constexpr LinkPort::GrantTerms kReads{.rights = ORR_LINK_RIGHTS, .key = 0};

struct Ears final : Asker {
    void answered(std::uint32_t, const LinkAnswer& answer) override { answers.push_back(answer); }
    void ways_changed() override {}
    std::vector<LinkAnswer> answers;
};

// Card `from` has those of the others in that order; all grant it to read.
void join(Star& star, unsigned from, const std::vector<unsigned>& members) {
    star[from].route(kAll, 0);
    ASSERT_EQ(star[from].ports[0]->member(kAll, 0, 0), ORR_FAULT_NONE);
    for (const unsigned to : members) {
        ASSERT_EQ(star[from].ports[0]->member(kAll, to + 1, to * std::uint64_t{0x1000}), ORR_FAULT_NONE);
        ASSERT_TRUE(star[to].ports[0]->set_grant(from + 1, 0, star[to].vram.size(), from + 1, kReads));
    }
}
std::vector<unsigned> others(const Star& star, unsigned from) {
    std::vector<unsigned> members;
    for (unsigned to = 0; to < star.cards.size(); ++to)
        if (to != from) members.push_back(to);
    return members;
}
void fill(NetCard& card, std::uint64_t offset, const std::vector<std::byte>& bytes) {
    std::memcpy(card.vram.at(offset, bytes.size()), bytes.data(), bytes.size());
}
std::vector<std::byte> random_bytes(std::uint64_t bytes, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> made(bytes);
    for (std::byte& byte : made)
        byte = static_cast<std::byte>(random());
    return made;
}

class Reduction : public testing::TestWithParam<unsigned> {};

// Every type and function, of bytes that are anything: NaNs, infinities, subnormals.
TEST_P(Reduction, HasTheBitsOfTheHost) {
    constexpr std::uint64_t kBytes = 4096;
    Star star;
    star.make(GetParam());
    ASSERT_TRUE(star.up());
    std::vector<unsigned> members = others(star, 0);
    std::ranges::reverse(members);
    ASSERT_NO_FATAL_FAILURE(join(star, 0, members));
    for (const unsigned to : members)
        fill(star[to], to * 0x1000 + 0x40, random_bytes(kBytes, to));
    for (std::uint32_t type = ORR_TYPE_I8; type <= ORR_TYPE_F64; ++type) {
        for (std::uint32_t function = ORR_REDUCE_ADD; function <= ORR_REDUCE_PRODUCT; ++function) {
            std::vector<std::byte> expected = random_bytes(kBytes, members[0]), got(kBytes);
            for (std::size_t n = 1; n < members.size(); ++n)
                reduce_loop(type, function)(expected.data(), random_bytes(kBytes, members[n]).data(), kBytes);
            Ears ears;
            ASSERT_NE(star[0].ports[0]->reduce(kAll, 0x40, got, {type, function}, kNever, ears).tag, 0u);
            star.run();
            ASSERT_EQ(ears.answers.size(), 1u);
            EXPECT_EQ(ears.answers[0].fault, std::uint32_t{ORR_FAULT_NONE});
            EXPECT_TRUE(got == expected) << type << " " << function;
        }
    }
    EXPECT_EQ(star.switches[0]->reductions().used(), 0u);
    EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED) + star.sum(ORR_CTR_LINK_DENIED), 0u);
}

// As long as one read of one card.
TEST_P(Reduction, TakesTheTimeOfOneRead) {
    Star star;
    star.make(GetParam());
    ASSERT_TRUE(star.up());
    ASSERT_NO_FATAL_FAILURE(join(star, 0, others(star, 0)));
    star.run();
    ModelTime at = 100'000 * kPsPerNs;
    for (const std::uint64_t bytes : {4u, 4096u, 32768u}) {
        std::vector<std::byte> to(bytes);
        Ears ears;
        ModelTime took[2] = {};
        for (const bool all : {false, true}) {
            for (auto& card : star.cards)
                card->events.advance_to(at);
            const std::uint64_t received = star[0].ports[0]->counts().rx_bytes.get();
            const LinkReduction sum{ORR_TYPE_I32, ORR_REDUCE_ADD};
            ASSERT_NE(star[0].ports[0]->reduce(all ? kAll : 2, 0, to, sum, kNever, ears).tag, 0u);
            star.run();
            took[all ? 1 : 0] = ears.answers.back().came - at;
            EXPECT_EQ(star[0].ports[0]->counts().rx_bytes.get(), received + bytes);
            at += 1'000'000 * kPsPerNs;
        }
        EXPECT_EQ(took[0], 4 * kLatency + 2 * kHop + on_wire(64) + on_wire(bytes)) << bytes;
        EXPECT_EQ(took[1], took[0]) << bytes;
    }
    EXPECT_EQ(star.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
}
INSTANTIATE_TEST_SUITE_P(Ports, Reduction, testing::Values(2u, 4u, 8u));

// Card 0 of four asks its three others for ints.
class Reductions : public testing::Test {
  protected:
    void make(std::optional<FaultPlan> faults = {}) {
        star.make(4, std::move(faults));
        ASSERT_TRUE(star.up());
        ASSERT_NO_FATAL_FAILURE(join(star, 0, others(star, 0)));
        star.run();
    }
    void ask() {
        ASSERT_NE(star[0].ports[0]->reduce(kAll, 0, to, {ORR_TYPE_I32, ORR_REDUCE_ADD}, kNever, ears).tag,
                  0u);
    }
    std::vector<std::uint32_t> faults() const {
        std::vector<std::uint32_t> all;
        for (const LinkAnswer& answer : ears.answers)
            all.push_back(answer.fault);
        return all;
    }
    // Card 1 takes nothing more.
    void stick() {
        star[1].stuck = true;
        ASSERT_EQ(star[3].signal(2, kSem, 1), ORR_FAULT_NONE);
        star.run();
    }
    void unplug(unsigned card) {
        star[card].ports[0]->unplug();
        for (int i = 0; i < 100 && star.switches[0]->port(card)->up(); ++i) {
            star.switches[0]->port(card)->service();
            ::usleep(1000);
        }
        star.run();
    }
    std::uint32_t used() { return star.switches[0]->reductions().used(); }
    Star star;
    Ears ears;
    std::vector<std::byte> to = std::vector<std::byte>(64);
};

TEST_F(Reductions, AMemberThatRefusesIsTheAnswer) {
    make();
    ASSERT_TRUE(star[2].ports[0]->set_grant(1, 0, star[2].vram.size(), 1));  // to write
    ask();
    star.run();
    EXPECT_THAT(faults(), testing::ElementsAre(ORR_FAULT_PEER_DENIED));
    EXPECT_EQ(used(), 0u);
    ASSERT_TRUE(star[2].ports[0]->set_grant(1, 0, star[2].vram.size(), 1, kReads));
    ask();
    star.run();
    EXPECT_THAT(faults(), testing::ElementsAre(ORR_FAULT_PEER_DENIED, ORR_FAULT_NONE));
}

// The request to it, or its answer.
TEST_F(Reductions, AMemberThatIsLostIsTheAnswer) {
    make(plan("link port=1 first=1 count=1 drop"));
    const std::uint32_t before = star.reach(0, 2).losses;
    ask();
    star.run();
    EXPECT_THAT(faults(), testing::ElementsAre(ORR_FAULT_PEER_DOWN));
    EXPECT_EQ(used(), 0u);
    EXPECT_NE(star.reach(0, 2).losses, before);
    EXPECT_EQ(star.reach(0, 3).losses, star.reach(0, 4).losses);
}

TEST_F(Reductions, AMemberWhoseLinkGoesIsTheAnswer) {
    make();
    ASSERT_NO_FATAL_FAILURE(stick());
    ask();
    star.run();
    EXPECT_TRUE(ears.answers.empty());
    EXPECT_EQ(used(), 1u);
    unplug(1);
    EXPECT_THAT(faults(), testing::ElementsAre(ORR_FAULT_PEER_DOWN));
    EXPECT_EQ(used(), 0u);
}

// Nobody is held up by one of whose members one is silent, and what has no room is told so.
TEST_F(Reductions, AreBoundedAndHoldUpNobody) {
    make();
    ASSERT_NO_FATAL_FAILURE(stick());
    std::vector<std::vector<std::byte>> many(link::Reductions::kOfPort + 3, std::vector<std::byte>(64));
    for (auto& one : many)
        ASSERT_NE(star[0].ports[0]->reduce(kAll, 0, one, {ORR_TYPE_F32, ORR_REDUCE_MAX}, kNever, ears).tag,
                  0u);
    ASSERT_EQ(star[0].signal(3, kSem, 7), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(used(), link::Reductions::kOfPort);
    EXPECT_THAT(faults(), testing::Each(ORR_FAULT_PEER_BUSY));
    EXPECT_EQ(ears.answers.size(), 3u);
    EXPECT_EQ(star[2].semaphore(kSem).value, 7u);
    star[1].stuck = false;
    star[1].ports[0]->poke_room();
    star.run();
    EXPECT_EQ(ears.answers.size(), many.size());
    EXPECT_EQ(std::ranges::count(faults(), std::uint32_t{ORR_FAULT_NONE}), link::Reductions::kOfPort);
    EXPECT_EQ(used(), 0u);
}

// Members change, the asker begins anew, or its link goes: nothing is left of it, and late answers are for
// nobody.
TEST_F(Reductions, EndWithTheMulticast) {
    make();
    ASSERT_NO_FATAL_FAILURE(stick());
    ask();
    star.run();
    ASSERT_NO_FATAL_FAILURE(join(star, 0, {2, 3}));
    star.run();
    EXPECT_THAT(faults(), testing::ElementsAre(ORR_FAULT_PEER_DOWN));
    EXPECT_EQ(used(), 0u);
    ask();
    star.run();
    EXPECT_THAT(faults(), testing::ElementsAre(ORR_FAULT_PEER_DOWN, ORR_FAULT_NONE));
    ASSERT_NO_FATAL_FAILURE(join(star, 0, {1, 2}));
    ask();
    star.run();
    EXPECT_EQ(used(), 1u);
    star[0].ports[0]->set_node(0);
    star[0].ports[0]->set_node(1);
    ASSERT_NO_FATAL_FAILURE(join(star, 0, {1, 2}));
    star.run();
    EXPECT_EQ(used(), 0u);
    star[1].stuck = false;
    star[1].ports[0]->poke_room();
    star.run();
    EXPECT_EQ(ears.answers.size(), 2u);
    EXPECT_EQ(star[0].counters.get(ORR_CTR_LINK_DENIED), 2u);  // what card 1 said to the two that ended
}

TEST_F(Reductions, AnotherEpochIsLost) {
    make();
    star[0].route(kAll, 0, 5);
    ask();
    star.run();
    EXPECT_THAT(faults(), testing::ElementsAre(ORR_FAULT_PEER_DOWN));
    EXPECT_EQ(used(), 0u);
}

// Each of all others at once, beside writes to all: it ends, and takes the same times in the next run.
TEST(ReductionsOfAll, EndTheSameEachTime) {
    constexpr std::uint64_t kBytes = 512 << 10;
    struct Reader final : Asker {
        Reader(NetCard& its_card, ModelTime now) : card(its_card), data(kBytes) {
            card.events.schedule(event, now);
        }
        void on(ModelTime) {
            while (asked < kBytes && asked - done < 16 * PeerPort::kMostRead) {
                const LinkAsk ask =
                    card.ports[0]->reduce(kAll, asked, std::span(data).subspan(asked, PeerPort::kMostRead),
                                          {ORR_TYPE_F32, ORR_REDUCE_ADD}, kNever, *this);
                ASSERT_EQ(ask.fault, ORR_FAULT_NONE);
                if (ask.tag == 0) return card.ports[0]->wait_for_room(kAll, event);
                asked += PeerPort::kMostRead;
            }
        }
        void answered(std::uint32_t, const LinkAnswer& answer) override {
            ASSERT_EQ(answer.fault, ORR_FAULT_NONE);
            done += PeerPort::kMostRead;
            came = answer.came;
            card.events.schedule(event, card.events.now());
        }
        void ways_changed() override {}
        NetCard& card;
        std::vector<std::byte> data;
        std::uint64_t asked = 0, done = 0;
        ModelTime came = 0;
        Event event = Event::of<&Reader::on>(this);
    };
    std::vector<ModelTime> first;
    for (int play = 0; play < 2; ++play) {
        Star star;
        star.make(8);
        ASSERT_TRUE(star.up());
        for (unsigned from = 0; from < 8; ++from)
            ASSERT_NO_FATAL_FAILURE(join(star, from, others(star, from)));
        star.run();
        const ModelTime began = star.line_up();
        std::vector<std::unique_ptr<Reader>> readers;
        std::vector<std::unique_ptr<Sender>> senders;
        for (unsigned n = 0; n < 8; ++n) {
            readers.push_back(std::make_unique<Reader>(star[n], began));
            senders.push_back(std::make_unique<Sender>(star[n], kAll, 0x300000, kBytes, n));
        }
        star.run();
        std::vector<ModelTime> times;
        for (auto& reader : readers) {
            EXPECT_EQ(reader->done, kBytes);
            times.push_back(reader->came - began);
        }
        EXPECT_EQ(star.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
        EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED) + star.sum(ORR_CTR_LINK_DENIED), 0u);
        EXPECT_EQ(star.switches[0]->reductions().used(), 0u);
        if (play == 0) first = times;
        EXPECT_EQ(times, first);
    }
}

// What only a member that lies answers.
TEST(ReductionsAlone, TakeNoOtherAnswer) {
    unsigned told = 0;
    link::Reductions reductions([&told] { ++told; });
    link::Multicast all{.number = kAll, .epoch = 0, .members = {{.node = 2}, {.node = 3, .epoch = 4}}};
    link::Message request{};
    request.op = link::kOpRead;
    request.bytes = 8;
    request.source = 1;
    request.destination = kAll;
    request.tag = 77;
    request.function = link::reduction_of(ORR_TYPE_I32, ORR_REDUCE_ADD);
    const std::uint32_t tag = reductions.begin(5, request, all);
    ASSERT_NE(tag, 0u);
    auto channel = std::make_unique<link::Channel>();
    link::Message part{};
    part.op = link::kOpAnswer;
    part.bytes = 8;
    part.source = 2;
    part.destination = 1;
    part.tag = tag;
    part.function = request.function | link::kPart;
    const auto took = [&](auto change) {
        link::Message other = part;
        change(other);
        return reductions.take(other, *channel, true);
    };
    using Took = link::Reductions::Took;
    EXPECT_EQ(took([](link::Message& m) { m.tag += 1; }), Took::kNone);
    EXPECT_EQ(took([](link::Message& m) { m.tag += 1u << 11; }), Took::kNone);
    EXPECT_EQ(took([](link::Message& m) { m.source = 4; }), Took::kNone);
    EXPECT_EQ(took([](link::Message& m) { m.destination = 4; }), Took::kNone);
    EXPECT_EQ(took([](link::Message& m) { m.source = 3; }), Took::kNone) << "of another epoch";
    EXPECT_EQ(took([](link::Message& m) { m.function = link::kPart | 0x101; }), Took::kNone);
    EXPECT_EQ(took([](link::Message& m) { m.bytes = 4; }), Took::kPart) << "too short";
    EXPECT_EQ(took([](link::Message&) {}), Took::kNone) << "twice";
    part.source = 3;
    part.epoch = 4;
    EXPECT_EQ(took([](link::Message&) {}), Took::kAll);
    EXPECT_EQ(took([](link::Message&) {}), Took::kAll) << "it waits for room";
    const link::Reductions::Whole whole = reductions.whole(tag);
    EXPECT_EQ(whole.answer.status, link::kDenied);
    EXPECT_TRUE(whole.data.empty());
    EXPECT_EQ(whole.answer.source, kAll);
    EXPECT_EQ(whole.answer.tag, 77u);
    // The channel in which it waits goes.
    reductions.drop(tag);
    EXPECT_EQ(told, 1u);
    const auto ended = reductions.next_ended();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->port, 5u);
    EXPECT_EQ(ended->status, link::kDenied);
    EXPECT_FALSE(reductions.next_ended());
    EXPECT_EQ(reductions.used(), 0u);
    EXPECT_NE(reductions.begin(5, request, all), tag);
}

}  // namespace
}  // namespace orrery::emu::test
