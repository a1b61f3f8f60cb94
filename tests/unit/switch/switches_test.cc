// What switches tell of themselves and of each other, and what cards hear of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "emulator/link/switches.h"
#include "emulator/switch/switches.h"
#include "tests/unit/switch/star.h"

namespace orrery::emu::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kLeaf0 = 0x100, kLeaf1 = 0x101, kSpine0 = 0x102, kSpine1 = 0x103;

std::vector<std::uint64_t> uids(const std::vector<link::SwitchWords>& all) {
    std::vector<std::uint64_t> found;
    for (const link::SwitchWords& one : all)
        found.push_back(link::uid_of(one));
    return found;
}

std::vector<link::SwitchWords> heard_by(Star& star, unsigned card) {
    return star[card].ports[0]->peer_switches().value();
}

std::uint32_t level_of(const link::SwitchWords& words) {
    return static_cast<std::uint32_t>(words[ORR_SWITCH_LEVEL / 8]);
}
std::uint64_t port_word(const link::SwitchWords& words, unsigned port, unsigned at) {
    return words[ORR_SWITCH_PORT(port) / 8 + at / 8];
}
std::uint32_t link_of(const link::SwitchWords& words, unsigned port) {
    return port_word(words, port, ORR_SWITCH_PORT_STATE) & ORR_SWITCH_PORT_LINK;
}
std::uint32_t losses_of(const link::SwitchWords& words, unsigned port) {
    return static_cast<std::uint32_t>(port_word(words, port, ORR_SWITCH_PORT_LATENCY_NS) >> 32);
}
const link::SwitchWords& of(const std::vector<link::SwitchWords>& all, std::uint64_t uid) {
    return *std::ranges::find(all, uid, link::uid_of);
}

TEST(Switches, TellCardsOfAllLevels) {
    Star star;
    star.make_tree(2, 2, 2);
    ASSERT_TRUE(star.up());
    const auto all = heard_by(star, 0);
    ASSERT_EQ(uids(all).front(), kLeaf0) << "its own switch";
    EXPECT_THAT(uids(all), UnorderedElementsAre(kLeaf0, kLeaf1, kSpine0, kSpine1));
    EXPECT_THAT(uids(heard_by(star, 3)), UnorderedElementsAre(kLeaf0, kLeaf1, kSpine0, kSpine1));
    EXPECT_EQ(level_of(of(all, kLeaf1)), 0u);
    EXPECT_EQ(level_of(of(all, kSpine1)), 1u);
    EXPECT_EQ(of(all, kSpine0)[ORR_SWITCH_LEVEL / 8] >> 32, 32u) << "its ports";

    // The second spine at the other leaf, which has it behind its two cards and the first spine.
    const link::SwitchWords& spine = of(all, kSpine1);
    const std::uint64_t how = port_word(spine, 1, ORR_SWITCH_PORT_STATE);
    EXPECT_EQ(link_of(spine, 1), ORR_LINK_UP);
    EXPECT_NE(how & ORR_SWITCH_PORT_TO_SWITCH, 0u);
    EXPECT_EQ(how >> ORR_SWITCH_PORT_PEER_PORT_SHIFT & 0xff, 3u);
    EXPECT_EQ(how >> ORR_SWITCH_PORT_LANES_SHIFT & 0xff, 4u);
    EXPECT_EQ(how >> 32, 400'000u);
    EXPECT_EQ(port_word(spine, 1, ORR_SWITCH_PORT_PEER), kLeaf1);
    EXPECT_EQ(port_word(spine, 1, ORR_SWITCH_PORT_LATENCY_NS), 500u) << "and it has never gone down";
    EXPECT_EQ(port_word(spine, 2, ORR_SWITCH_PORT_STATE), 0u) << "there is no link";
    // A card.
    const link::SwitchWords& leaf = of(all, kLeaf1);
    EXPECT_EQ(port_word(leaf, 0, ORR_SWITCH_PORT_STATE) & ORR_SWITCH_PORT_TO_SWITCH, 0u);
    EXPECT_EQ(port_word(leaf, 0, ORR_SWITCH_PORT_PEER), star[2].ports[0]->config().uid);
}

TEST(Switches, OneThatHasGoneIsForgotten) {
    Star star;
    star.make_tree(2, 2, 2);
    ASSERT_TRUE(star.up());
    star.switches.pop_back();  // the second spine
    for (int i = 0; i < 100 && link_of(of(heard_by(star, 0), kLeaf0), 3) == ORR_LINK_UP; ++i) {
        star.switches[0]->port(3)->service();
        star.switches[1]->port(3)->service();
        star.run();
        ::usleep(500);
    }
    star.run();
    const auto all = heard_by(star, 0);
    EXPECT_THAT(uids(all), UnorderedElementsAre(kLeaf0, kLeaf1, kSpine0));
    for (const std::uint64_t leaf : {kLeaf0, kLeaf1}) {
        EXPECT_EQ(link_of(of(all, leaf), 3), ORR_LINK_DOWN);
        EXPECT_EQ(losses_of(of(all, leaf), 3), 1u);
        EXPECT_EQ(port_word(of(all, leaf), 3, ORR_SWITCH_PORT_PEER), 0u);
        EXPECT_EQ(link_of(of(all, leaf), 2), ORR_LINK_UP);
    }
}

TEST(Switches, ACardWhoseLinkIsDownHearsNothing) {
    Star star;
    star.make_tree(2, 2, 2);
    ASSERT_TRUE(star.up());
    star[0].ports[0]->unplug();
    for (int i = 0; i < 100 && star.switches[0]->port(0)->up(); ++i) {
        star.switches[0]->port(0)->service();
        star.run();
        ::usleep(500);
    }
    EXPECT_THAT(heard_by(star, 0), IsEmpty());
    const auto all = heard_by(star, 1);
    EXPECT_EQ(link_of(of(all, kLeaf0), 0), ORR_LINK_DOWN);
    EXPECT_EQ(losses_of(of(all, kLeaf0), 0), 1u);
}

TEST(Switches, ThreeLevelsKnowEachOther) {
    Star star;
    // A card on each of two leaves, a switch above each of these, and one that joins the two.
    std::vector<std::vector<LinkConfig>> links(5);
    const std::string cards[] = {star.listen(links[0]), star.listen(links[1])};
    star.connect(links[2], star.listen(links[0]));
    star.connect(links[3], star.listen(links[1]));
    star.connect(links[4], star.listen(links[2]));
    star.connect(links[4], star.listen(links[3]));
    const unsigned levels[] = {0, 0, 1, 1, 2};
    for (unsigned n = 0; n < 5; ++n)
        star.add_switch(links[n], levels[n]);
    for (const std::string& at : cards)
        star.add_card().add(0, false, at);
    star.routes();
    ASSERT_TRUE(star.up());
    for (const unsigned card : {0u, 1u})
        EXPECT_THAT(uids(heard_by(star, card)), UnorderedElementsAre(0x100, 0x101, 0x102, 0x103, 0x104));
    // Up goes what is below, and nothing comes back.
    EXPECT_THAT(uids(star.switches[2]->port(0)->peer_switches().value()), ElementsAre(0x100));
    EXPECT_THAT(uids(star.switches[4]->port(0)->peer_switches().value()), UnorderedElementsAre(0x102, 0x100));
    EXPECT_THAT(uids(star.switches[0]->port(1)->peer_switches().value()),
                UnorderedElementsAre(0x102, 0x104, 0x103, 0x101));
}

link::SwitchWords named(std::uint64_t uid) {
    return link::words_of(uid, 0, {});
}

TEST(SwitchesTold, AreNoMoreThanThereIsRoomForAndEachOnce) {
    SwitchesByPort heard;
    heard[3].uid = 1;
    for (std::uint64_t uid = 1; uid <= 40; ++uid)
        heard[3].all.push_back(named(uid));
    heard[4] = {.uid = 1, .all = {named(1), named(7), named(99)}};
    const auto told = switches_told(named(7), heard, 0);
    EXPECT_EQ(told.size(), ORR_SWITCHES_PLACES);
    EXPECT_EQ(link::uid_of(told[0]), 7u);
    auto all = uids(told);
    std::ranges::sort(all);
    EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
    heard[5] = {.uid = 2, .all = {named(2), named(99)}};
    EXPECT_THAT(uids(switches_told(named(7), heard, 3)), ElementsAre(7, 2, 99)) << "by neither of his cables";
}

constexpr std::uint64_t kLiar = 0x66, kOther = 0x77;
constexpr std::uint32_t kFake = 9;

TEST(SwitchesTold, WhatOneSaysOfItselfGoesBeforeHearsay) {
    for (const bool above : {false, true}) {
        SwitchesByPort heard;
        heard[0] = {.uid = kLiar, .all = {named(kLiar), link::words_of(kOther, kFake, {})}};
        heard[1] = {.uid = kOther, .above = above, .all = {named(kOther)}};
        const auto told = switches_told(named(7), heard, 2);
        EXPECT_THAT(uids(told), ElementsAre(7, kLiar, kOther));
        EXPECT_EQ(level_of(of(told, kOther)), 0u);
    }
}

TEST(SwitchesTold, OneLiarTakesNobodysRoom) {
    SwitchesByPort heard;
    heard[0] = {.uid = kLiar, .all = {named(kLiar)}};
    for (std::uint64_t fake = 0x1000; heard[0].all.size() < ORR_SWITCHES_PLACES; ++fake)
        heard[0].all.push_back(named(fake));
    for (unsigned p = 1; p < 8; ++p)
        heard[p] = {.uid = kOther + p,
                    .above = p % 2 != 0,
                    .all = {named(kOther + p), named(0x200 + p), named(0x300 + p)}};
    const auto told = uids(switches_told(named(7), heard, 8));
    EXPECT_EQ(told.size(), ORR_SWITCHES_PLACES);
    for (unsigned p = 1; p < 8; ++p) {
        EXPECT_THAT(told, Contains(kOther + p));
        EXPECT_THAT(told, Contains(0x200 + p));
        EXPECT_THAT(told, Contains(0x300 + p));
    }
}

TEST(SwitchesTold, WhoDoesNotBeginWithItselfIsNotHeard) {
    SwitchesByPort heard;
    heard[0] = {.uid = kLiar, .all = {link::words_of(kOther, kFake, {}), named(99)}};
    heard[1] = {.uid = kOther, .all = {named(kOther)}};
    EXPECT_THAT(uids(switches_told(named(7), heard, 2)), ElementsAre(7, kOther));
}

TEST(SwitchWords, HaveLevelsAndPortsAsThereCanBe) {
    const auto inbox = std::make_unique<link::Inbox>();
    link::store_switches(*inbox, std::vector{link::words_of(1, 0x8000'0000u, {})});
    inbox->switches[0][ORR_SWITCH_PORTS / 8] |= std::uint64_t{999} << 32;
    const auto all = link::load_switches(*inbox);
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 1u);
    EXPECT_EQ(level_of(all->front()), ORR_SWITCH_MAX_LEVEL);
    EXPECT_EQ(all->front()[ORR_SWITCH_PORTS / 8] >> 32, ORR_SWITCH_MAX_PORTS);
}

TEST(SwitchWords, AreNotLookedAtWhileTheyChange) {
    const auto inbox = std::make_unique<link::Inbox>();
    link::store_switches(*inbox, std::vector{named(1)});
    EXPECT_EQ(inbox->switches_version % 2, 0u);
    inbox->switches_version = 7;
    EXPECT_FALSE(link::load_switches(*inbox));
    link::store_switches(*inbox, std::vector{named(2)});
    EXPECT_EQ(inbox->switches_version, 8u) << "whatever the peer has written there";
    EXPECT_THAT(uids(link::load_switches(*inbox).value()), ElementsAre(2));
}

TEST(SwitchWords, AreOfOneMoment) {
    const auto inbox = std::make_unique<link::Inbox>();
    std::atomic<bool> stop{false};
    std::jthread writer([&] {
        for (std::uint64_t round = 1; !stop; ++round) {
            std::vector<link::SwitchWords> all(1 + round % 4);
            for (link::SwitchWords& words : all) {
                words.fill(round);
                words[ORR_SWITCH_LEVEL / 8] = 0;
            }
            link::store_switches(*inbox, all);
            if (round % 8 == 0) std::this_thread::yield();
        }
    });
    unsigned whole = 0, mixed = 0;
    for (unsigned looks = 0; looks < 200'000 && whole < 5'000; ++looks) {
        const auto all = link::load_switches(*inbox);
        if (!all || all->empty()) continue;
        ++whole;
        const std::uint64_t round = link::uid_of(all->front());
        mixed += all->size() != 1 + round % 4;
        for (const link::SwitchWords& words : *all)
            for (std::size_t w = 0; w < words.size(); ++w)
                mixed += w != ORR_SWITCH_LEVEL / 8 && words[w] != round;
    }
    stop = true;
    EXPECT_GT(whole, 0u);
    EXPECT_EQ(mixed, 0u);
}

}  // namespace
}  // namespace orrery::emu::test
