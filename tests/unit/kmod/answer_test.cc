// What a driver of another machine answers to an import: the first answer counts, whatever he says, and
// whoever is woken by it looks at nothing that changes. All orders of what happens are tried.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

extern "C" {
#include "kmod/orr_answer.h"
}

#include <orrery/hw/mmu.h>

namespace {

constexpr std::uint64_t kGood = 0x10000, kOther = 0x50000, kSize = 0x2000;

// What may come while somebody asks. The other driver says what he likes, as often as he likes.
enum class Event : std::uint8_t { kYes, kOtherPlace, kNo, kNonsense, kRevoked, kSessionEnds };
constexpr std::array kEvents{Event::kYes,      Event::kOtherPlace, Event::kNo,
                             Event::kNonsense, Event::kRevoked,    Event::kSessionEnds};

struct World {
    orr_answer answer{};
    unsigned wakes = 0, keys = 0;  // who asked is woken; a key is given to his card
    orr_answer seen{};             // as it was when he was woken
    bool ended = false;

    void wake() {
        ++wakes;
        seen = answer;
    }
    void say(int status, std::uint64_t base) {
        if (!orr_answer_take(&answer, status, base)) return;
        if (status == 0) ++keys;
        wake();
    }
    void happen(Event event) {
        switch (event) {
            case Event::kYes:
                return say(0, kGood);
            case Event::kOtherPlace:
                return say(0, kOther);
            case Event::kNo:
                return say(-EACCES, kOther);
            case Event::kNonsense:
                return say(77, 1);
            case Event::kRevoked:
                ended = true;
                return orr_answer_revoke(&answer);
            case Event::kSessionEnds:
                ended = true;
                if (orr_answer_end(&answer, -ENOTCONN)) wake();
                return;
        }
    }
};

void expect_first_counts(std::uint64_t order, unsigned events) {
    World world;
    std::string story;
    orr_answer_ask(&world.answer);
    for (unsigned i = 0; i < events; ++i, order /= kEvents.size()) {
        const Event event = kEvents.at(order % kEvents.size());
        story += std::to_string(static_cast<unsigned>(event)) + ' ';
        world.happen(event);
        ASSERT_LE(world.wakes, 1u) << story;
        ASSERT_LE(world.keys, world.wakes) << story;
        ASSERT_EQ(world.answer.answered, world.wakes == 1) << story;
        ASSERT_EQ(world.answer.ended, world.ended) << story;
        if (world.wakes == 0) continue;
        ASSERT_EQ(world.answer.status, world.seen.status) << story;
        ASSERT_EQ(world.answer.base, world.seen.base) << story;
    }
    // He is asked again: what has been said so far is no answer to that, and a key of then is no key of now.
    orr_answer_ask(&world.answer);
    ASSERT_FALSE(world.answer.answered) << story;
    ASSERT_FALSE(world.answer.ended) << story;
    world.say(0, kOther);
    ASSERT_EQ(world.seen.base, kOther) << story;
    world.say(0, kGood);
    ASSERT_EQ(world.answer.base, kOther) << story;
}

TEST(Answer, TheFirstCountsInAllOrders) {
    std::uint64_t orders = 1;
    for (unsigned events = 0; events <= 5; ++events, orders *= kEvents.size())
        for (std::uint64_t order = 0; order < orders; ++order)
            ASSERT_NO_FATAL_FAILURE(expect_first_counts(order, events));
}

// A driver that answers with a place that is good, and once that was looked at with bits of a page table
// entry.
TEST(Answer, ASecondOneChangesNothingThatWasLookedAt) {
    orr_answer answer{};
    orr_answer_ask(&answer);
    ASSERT_TRUE(orr_answer_take(&answer, 0, kGood));
    ASSERT_EQ(orr_answer_judge(&answer, answer.status, kSize), 0);
    for (const std::uint64_t base : {kOther, ~std::uint64_t{0}, std::uint64_t{1}}) {
        EXPECT_FALSE(orr_answer_take(&answer, 0, base));
        EXPECT_FALSE(orr_answer_take(&answer, -EACCES, base));
        EXPECT_EQ(answer.base, kGood);
        EXPECT_EQ(answer.status, 0);
        EXPECT_EQ(orr_answer_judge(&answer, answer.status, kSize), 0);
    }
}

TEST(Answer, OnlyWhatFitsAnEntryIsTaken) {
    const auto judge = [](std::uint64_t base, std::uint64_t size, int ret = 0) {
        orr_answer answer{};
        answer.base = base;
        return orr_answer_judge(&answer, ret, size);
    };
    constexpr std::uint64_t kEnd = ORR_PTE_ADDR_MASK + ORR_PAGE_SIZE;
    EXPECT_EQ(judge(kGood, kSize), 0);
    EXPECT_EQ(judge(0, kSize), 0);
    EXPECT_EQ(judge(kEnd - 2 * kSize, kSize), 0);
    EXPECT_EQ(judge(kEnd, kSize), -EPROTO);
    EXPECT_EQ(judge(kEnd - ORR_PAGE_SIZE, 2 * kSize), -EPROTO);
    EXPECT_EQ(judge(kGood + 8, kSize), -EPROTO);
    EXPECT_EQ(judge(~std::uint64_t{0} - kSize + 1, kSize), -EPROTO) << "wraps around";
    EXPECT_EQ(judge(~std::uint64_t{0} & ~std::uint64_t{ORR_PAGE_SIZE - 1}, kSize), -EPROTO);
    // What he says instead of 0 is an error, or nonsense.
    EXPECT_EQ(judge(1, kSize, -EACCES), -EACCES);
    EXPECT_EQ(judge(kGood, kSize, 1), -EPROTO);
    EXPECT_EQ(judge(kGood, kSize, -4095), -4095);
    EXPECT_EQ(judge(kGood, kSize, -4096), -EPROTO);
    EXPECT_EQ(judge(kGood, kSize, INT32_MIN), -EPROTO);
}

}  // namespace
