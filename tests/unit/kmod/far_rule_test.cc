// What decides in a search for a circle of waits over machines, piece by piece; far_test.cc puts it together.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

extern "C" {
#include "kmod/orr_far_rule.h"
}

namespace {

using Path = std::vector<u16>;

orr_far_state state_of(const Path& path, u32 id = 1) {
    orr_far_state state{};
    state.id = id;
    state.is_others = true;
    state.answer = ORR_FAR_OPEN;
    std::ranges::copy(path, state.path);
    return state;
}

Path path_of(const orr_far_state& state) {
    return {std::begin(state.path), std::end(state.path)};
}

// A look's with its mark, which is the last of the path.
orr_far_state marked(Path path, u32 id = 1) {
    const u16 mark = path.back();
    path.pop_back();
    orr_far_state state = state_of(path, id);
    EXPECT_TRUE(orr_far_mark(&state, mark));
    return state;
}

TEST(FarRule, AMarkGoesBehindThoseByWhichItCame) {
    const auto after = [](const Path& path, u16 mark, bool good) {
        orr_far_state state = state_of(path);
        EXPECT_EQ(orr_far_mark(&state, mark), good);
        EXPECT_EQ(state.marked, good);
        return path_of(state);
    };
    EXPECT_EQ(after({}, 7, true), (Path{7, 0, 0, 0, 0, 0}));
    EXPECT_EQ(after({1, 0xffff}, 2, true), (Path{1, 0xffff, 2, 0, 0, 0}));
    EXPECT_EQ(after({1, 2, 3, 4, 5}, 1, true), (Path{1, 2, 3, 4, 5, 1}));
    EXPECT_EQ(after({1, 2, 3, 4, 5, 6}, 7, false), (Path{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(after({1, 0, 3, 4, 5, 6}, 7, true), (Path{1, 7, 0, 0, 0, 0})) << "what a liar has left there";
}

TEST(FarRule, AQuestionComesByItsAncestorsOnly) {
    const auto came = [](const Path& path, const orr_far_state& other) {
        const orr_far_state state = state_of(path);
        return orr_far_came_by(&state, &other);
    };
    EXPECT_TRUE(came({1, 2, 3}, marked({1})));
    EXPECT_TRUE(came({1, 2, 3}, marked({1, 2})));
    EXPECT_TRUE(came({1, 2, 3}, marked({1, 2, 3})));
    EXPECT_FALSE(came({1, 2, 3}, marked({1, 2, 4}))) << "a sibling's";
    EXPECT_FALSE(came({1, 2, 3}, marked({2})));
    EXPECT_FALSE(came({1, 2, 3}, marked({1, 2, 3, 4}))) << "longer";
    EXPECT_FALSE(came({}, marked({1})));
    EXPECT_FALSE(came({1, 2, 3}, marked({1}, 2))) << "of another search";
    EXPECT_TRUE(came({1, 2, 3, 4, 5, 6}, marked({1, 2, 3, 4, 5, 6})));
    EXPECT_FALSE(came({1, 2}, state_of({}))) << "who has asked nothing";
    EXPECT_FALSE(came({1, 2}, state_of({1, 2}))) << "likewise, by the same way";
}

orr_device* card(std::uintptr_t n) {
    return reinterpret_cast<orr_device*>(n);
}  // NOLINT: only compared

orr_far_ask ask_of(orr_far_answer answer = ORR_FAR_OPEN, u32 wait = 0) {
    orr_far_ask ask{};
    ask.odev = card(64);
    ask.at = 3;
    ask.node = 4;
    ask.tag = 5;
    ask.offset = 6;
    ask.wanted = 7;
    ask.number = 8;
    ask.wait = wait;
    ask.answer = answer;
    ask.known = 1;
    return ask;
}

TEST(FarRule, QuestionsAreTheSameIfAllOfThemIs) {
    const orr_far_ask one = ask_of();
    orr_far_ask other = one;
    other.number = 9;
    other.stamp = 10;
    EXPECT_TRUE(orr_far_is_same(&one, &other));
    const auto differs = [&](auto member, auto value) {
        orr_far_ask changed = one;
        changed.*member = value;
        return !orr_far_is_same(&one, &changed) && !orr_far_is_same(&changed, &one);
    };
    EXPECT_TRUE(differs(&orr_far_ask::odev, card(128)));
    EXPECT_TRUE(differs(&orr_far_ask::at, 30u));
    EXPECT_TRUE(differs(&orr_far_ask::node, 30u)) << "the place is another card's by now";
    EXPECT_TRUE(differs(&orr_far_ask::tag, 30u));
    EXPECT_TRUE(differs(&orr_far_ask::offset, 30u));
    EXPECT_TRUE(differs(&orr_far_ask::wanted, 30u));
}

// All of up to 3 waits, each held here or not, and up to 4 questions with each answer about each wait.
TEST(FarRule, TheSumOfAllAnswers) {
    std::size_t cases = 0;
    const auto check = [&](const orr_far_state& state) {
        std::array<bool, ORR_FAR_WAITS> held{};
        bool open = false, free = false;
        for (u32 i = 0; i < state.waits; ++i)
            held.at(i) = state.held[i];
        for (u32 i = 0; i < state.asks; ++i) {
            open |= state.ask[i].answer == ORR_FAR_OPEN;
            free |= state.ask[i].answer == ORR_FAR_FREE;
            if (state.ask[i].answer == ORR_FAR_HELD) held.at(state.ask[i].wait) = true;
        }
        const bool all = std::all_of(held.begin(), held.begin() + state.waits, [](bool one) { return one; });
        const orr_far_answer want = free   ? ORR_FAR_FREE
                                    : open ? ORR_FAR_OPEN
                                    : all  ? ORR_FAR_HELD
                                           : ORR_FAR_FREE;
        ASSERT_EQ(orr_far_sum(&state), want);
        ++cases;
    };
    for (u32 waits = 0; waits <= 3; ++waits)
        for (u32 asks = 0; asks <= (waits == 0 ? 0u : 4u); ++asks) {
            u32 ways = 1;
            for (u32 i = 0; i < asks; ++i)
                ways *= 4 * waits;
            for (u32 held = 0; held < 1u << waits; ++held)
                for (u32 way = 0; way < ways; ++way) {
                    orr_far_state state = state_of({});
                    state.waits = waits;
                    for (u32 i = 0; i < waits; ++i)
                        state.held[i] = held >> i & 1;
                    state.asks = asks;
                    for (u32 i = 0, left = way; i < asks; ++i, left /= 4 * waits)
                        state.ask[i] = ask_of(static_cast<orr_far_answer>(left % 4), left / 4 % waits);
                    check(state);
                }
        }
    EXPECT_GT(cases, 10'000u);
}

TEST(FarRule, AnAnswerCountsIfAllOfItHasCome) {
    for (u32 hops = 0; hops <= ORR_FAR_BEYOND; ++hops)
        for (const u32 said : {0u, 1u, 2u, 3u, 4u, 5u, 0xffffu})
            for (const u32 status : {0u, 1u, 2u, 3u, 4u, ~0u}) {
                orr_far_ask ask = ask_of();
                for (u32 hop = 0; hop < hops; ++hop)
                    ASSERT_EQ(orr_far_take_hop(&ask), &ask.there[1 + hop]);
                orr_far_take_answer(&ask, status, said, 77);
                const bool whole = said == 0 || said == 1 + hops;
                const bool known = status == ORR_FAR_HELD || status == ORR_FAR_NONE;
                EXPECT_EQ(ask.answer, whole && known ? static_cast<orr_far_answer>(status) : ORR_FAR_FREE)
                    << hops << ' ' << said << ' ' << status;
                EXPECT_EQ(ask.known, said == 0 ? 0 : 1 + hops);
                EXPECT_EQ(ask.stamp, 77u);
            }
    orr_far_ask ask = ask_of();
    for (u32 hop = 0; hop < ORR_FAR_BEYOND; ++hop)
        EXPECT_NE(orr_far_take_hop(&ask), nullptr);
    EXPECT_EQ(orr_far_take_hop(&ask), nullptr) << "one more than there is room for";
    EXPECT_EQ(ask.known, 1 + ORR_FAR_BEYOND);
}

TEST(FarRule, AnAnswerIsToAQuestionThatHasNone) {
    orr_far_state state = state_of({});
    state.asks = 2;
    state.ask[0] = ask_of();
    state.ask[1] = ask_of();
    state.ask[1].number = 9;
    const auto find = [&](std::uintptr_t odev, u32 at, u32 tag, u16 number) {
        return orr_far_find(&state, card(odev), at, tag, number);
    };
    EXPECT_EQ(find(64, 3, 5, 8), &state.ask[0]);
    EXPECT_EQ(find(64, 3, 5, 9), &state.ask[1]);
    EXPECT_EQ(find(65, 3, 5, 8), nullptr);
    EXPECT_EQ(find(64, 4, 5, 8), nullptr) << "of somebody else";
    EXPECT_EQ(find(64, 3, 6, 8), nullptr);
    EXPECT_EQ(find(64, 3, 5, 10), nullptr);
    orr_far_take_answer(&state.ask[0], ORR_FAR_HELD, 0, 0);
    EXPECT_EQ(find(64, 3, 5, 8), nullptr) << "again";
}

TEST(FarRule, WhatTheWayHereHasAskedIsAssumed) {
    orr_far_state ancestor = marked({1}), other = marked({2}), state = state_of({1, 5});
    ancestor.asks = other.asks = 1;
    ancestor.ask[0] = ask_of();
    other.ask[0] = ask_of();
    other.ask[0].tag = 50;
    state.asks = 2;
    state.ask[0] = ancestor.ask[0];
    state.ask[1] = other.ask[0];
    orr_far_assume(&state, &ancestor);
    orr_far_assume(&state, &other);
    EXPECT_EQ(state.ask[0].answer, ORR_FAR_HELD);
    EXPECT_EQ(state.ask[0].known, 0u);
    EXPECT_EQ(state.ask[1].answer, ORR_FAR_OPEN);
}

// Only who asks on needs a mark.
TEST(FarRule, TheLastLookOfALongCircleNeedsNoMark) {
    const Path longest{1, 2, 3, 4, 5, 6};
    for (const orr_far_answer answer : {ORR_FAR_OPEN, ORR_FAR_HELD}) {
        orr_far_state state = state_of(longest);
        state.waits = state.asks = 1;
        state.ask[0] = ask_of(answer);
        orr_far_start(&state, 7);
        EXPECT_EQ(state.answer, answer == ORR_FAR_OPEN ? ORR_FAR_FREE : ORR_FAR_HELD);
        EXPECT_FALSE(state.marked);
        EXPECT_FALSE(orr_far_asks_now(&state, 0));
    }
}

TEST(FarRule, NobodyIsToldBeforeAllIsAskedAndThenOnce) {
    for (const orr_far_answer answer : {ORR_FAR_FREE, ORR_FAR_NONE, ORR_FAR_HELD}) {
        const orr_far_step step = answer == ORR_FAR_HELD ? ORR_FAR_TELL_AND_KEEP : ORR_FAR_TELL;
        orr_far_state state = state_of({1});
        state.answer = answer;
        orr_far_start(&state, 7);
        EXPECT_EQ(orr_far_next(&state), ORR_FAR_WAIT);
        orr_far_asked_all(&state);
        EXPECT_EQ(orr_far_next(&state), step) << "also if the look itself says so";
        state.told = true;
        EXPECT_EQ(orr_far_next(&state), ORR_FAR_WAIT);
    }
    orr_far_state state = state_of({1});
    state.waits = state.asks = 1;
    state.ask[0] = ask_of();
    orr_far_start(&state, 7);
    EXPECT_TRUE(orr_far_asks_now(&state, 0));
    orr_far_asked_all(&state);
    EXPECT_EQ(orr_far_next(&state), ORR_FAR_WAIT) << "without an answer";
    state.is_others = false;
    EXPECT_EQ(orr_far_next(&state), ORR_FAR_WAIT);
    state.asking = true;
    state.answer = ORR_FAR_FREE;
    EXPECT_EQ(orr_far_next(&state), ORR_FAR_END) << "who asks in its own process lets go of it himself";
}

TEST(FarRule, ADriverIsGivenTimeAfterThreeNotes) {
    orr_far_state state = state_of({});
    state.asks = 9;
    for (u32 i = 0; i < state.asks; ++i) {
        state.ask[i] = ask_of();
        state.ask[i].at = i == 4 ? 30 : 3;
    }
    std::string pauses;
    for (u32 i = 0; i < state.asks; ++i)
        pauses += orr_far_pauses(&state, i) ? '1' : '0';
    EXPECT_EQ(pauses, "000100010");
}

// One that is due, asked by another driver.
orr_far_state due_state(orr_far_answer answer = ORR_FAR_NONE) {
    orr_far_state state = state_of({1});
    state.answer = answer;
    return state;
}

TEST(FarRule, OnlyWhatIsToBeToldIsDue) {
    const auto is_due = [](const orr_far_state& state) {
        orr_far_due due{};
        orr_far_due_of(&due, &state, 3);
        return due.state == &state && due.told == 3;
    };
    EXPECT_TRUE(is_due(due_state()));
    EXPECT_TRUE(is_due(due_state(ORR_FAR_FREE)));
    EXPECT_TRUE(is_due(due_state(ORR_FAR_HELD))) << "told, and kept";
    EXPECT_FALSE(is_due(due_state(ORR_FAR_OPEN)));
    const auto without = [](auto change) {
        orr_far_state state = due_state();
        change(state);
        return state;
    };
    EXPECT_FALSE(is_due(without([](auto& state) { state.told = true; })));
    EXPECT_FALSE(is_due(without([](auto& state) { state.asking = true; })));
    EXPECT_FALSE(is_due(without([](auto& state) { state.is_others = false; }))) << "a process's own";
}

// Drivers with any number of answers due, in any order: in each round each of them that has one is told one.
TEST(FarRule, WhoAsksMuchIsInNobodysWay) {
    struct Search {
        std::size_t driver = 0;
        orr_far_state state;
    };
    const std::vector<std::vector<std::size_t>> orders = {
        {0, 0, 0, 0, 0, 1}, {1, 0, 0, 2, 0, 0}, {0, 1, 0, 1, 0, 1}, {2, 2, 2, 1, 1, 0}, {0}, {}};
    for (const auto& drivers : orders) {
        std::vector<Search> searches;
        std::array<u64, 3> told{};
        std::array<std::size_t, 3> left{};
        for (const std::size_t driver : drivers) {
            searches.push_back({driver, due_state()});
            ++left.at(driver);
        }
        u64 tells = 0;
        for (std::size_t at = 0; at < drivers.size();) {
            std::array<bool, 3> heard{};
            const auto with_one = std::ranges::count_if(left, [](std::size_t one) { return one != 0; });
            for (std::ptrdiff_t n = 0; n < with_one; ++n, ++at) {
                orr_far_due due{};
                for (const Search& search : searches)
                    orr_far_due_of(&due, &search.state, told.at(search.driver));
                ASSERT_NE(due.state, nullptr);
                auto& one = *std::ranges::find(searches, due.state, [](const auto& s) { return &s.state; });
                EXPECT_FALSE(heard.at(one.driver)) << "before another one of this round";
                const auto first = std::ranges::find_if(searches, [&](const Search& search) {
                    return search.driver == one.driver && !search.state.told;
                });
                EXPECT_EQ(&*first, &one) << "in the order of its questions";
                heard.at(one.driver) = one.state.told = true;
                told.at(one.driver) = ++tells;
                --left.at(one.driver);
            }
        }
        orr_far_due none{};
        for (const Search& search : searches)
            orr_far_due_of(&none, &search.state, told.at(search.driver));
        EXPECT_EQ(none.state, nullptr);
    }
}

TEST(FarRule, NobodyTakesAllTheRoom) {
    EXPECT_TRUE(orr_far_has_room(0, 0));
    EXPECT_TRUE(orr_far_has_room(ORR_FAR_KEPT - 1, ORR_FAR_KEPT_OF_ONE - 1));
    EXPECT_FALSE(orr_far_has_room(ORR_FAR_KEPT, 0));
    EXPECT_FALSE(orr_far_has_room(ORR_FAR_KEPT_OF_ONE, ORR_FAR_KEPT_OF_ONE));
}

}  // namespace
