// The doorbell unit alone: bindings, order, coalescing, what a summary costs.
#include "emulator/soc/doorbells.h"

#include <gtest/gtest.h>

#include <memory>

namespace orrery::emu {
namespace {

constexpr std::uint64_t kNothing = ~std::uint64_t{0};

class DoorbellUnit : public testing::Test {
  protected:
    void SetUp() override {
        auto fd = Doorbells::create_file();
        ASSERT_TRUE(fd) << fd.error();
        guest_ = *Mapping::create(fd->get(), 0, Doorbells::kBytes, true);
        unit_ = std::make_unique<Doorbells>(
            *std::move(fd), *Mapping::create(fd->get(), 0, Doorbells::kBytes, true), counters_);
    }
    orr_doorbell_page& page(unsigned number) {
        return reinterpret_cast<orr_doorbell_page*>(guest_.data())[number];
    }
    void ring(unsigned number, unsigned slot, std::uint64_t value) {
        page(number).doorbell[slot] = value;
        ++page(number).summary;
    }
    Counters counters_;
    Mapping guest_;
    std::unique_ptr<Doorbells> unit_;
};

TEST_F(DoorbellUnit, GivesRungDoorbellsInTheirOrder) {
    ASSERT_TRUE(unit_->bind(3, 7, 70));
    ASSERT_TRUE(unit_->bind(1, 0, 10));
    ASSERT_TRUE(unit_->bind(511, 479, 99));
    EXPECT_FALSE(unit_->poll());
    ring(511, 479, 5);
    EXPECT_TRUE(unit_->poll());
    ring(1, 0, 6);
    EXPECT_TRUE(unit_->poll());
    EXPECT_EQ(unit_->pop(), 99u | SOC_DB_MORE);
    EXPECT_EQ(unit_->value(), 5u);
    EXPECT_EQ(unit_->pop(), 10u);
    EXPECT_EQ(unit_->value(), 6u);
    EXPECT_EQ(unit_->pop(), kNothing);
    EXPECT_EQ(counters_.get(ORR_CTR_DOORBELLS), 2u);
}

TEST_F(DoorbellUnit, CoalescesAndReadsTheValueAtThePop) {
    ASSERT_TRUE(unit_->bind(0, 0, 1));
    for (std::uint64_t i = 1; i <= 100; ++i) {
        ring(0, 0, i);
        unit_->poll();
    }
    page(0).doorbell[0] = 123;  // its summary comes later
    EXPECT_EQ(unit_->pop(), 1u);
    EXPECT_EQ(unit_->value(), 123u);
    EXPECT_EQ(unit_->pop(), kNothing);
    ++page(0).summary;
    EXPECT_FALSE(unit_->poll()) << "what a pop has given is no ring of its own";
}

TEST_F(DoorbellUnit, IgnoresSlotsThatAreNotBound) {
    ASSERT_TRUE(unit_->bind(0, 0, 1));
    ring(0, 1, 5);
    ring(1, 0, 5);
    EXPECT_FALSE(unit_->poll());
    EXPECT_FALSE(unit_->pending());
}

// Generations count for each queue by itself, so two queues may ring one slot with the same word.
TEST_F(DoorbellUnit, TheWordOfAnEarlierBindingIsARingAgain) {
    ASSERT_TRUE(unit_->bind(0, 0, 1));
    ring(0, 0, 0x7'0000'0000'000full);
    EXPECT_TRUE(unit_->poll());
    EXPECT_EQ(unit_->pop(), 1u);
    ASSERT_TRUE(unit_->unbind(0, 0));
    ASSERT_TRUE(unit_->bind(0, 0, 2));
    ring(0, 0, 0x7'0000'0000'000full);
    EXPECT_TRUE(unit_->poll());
    EXPECT_EQ(unit_->pop(), 2u);
}

TEST_F(DoorbellUnit, WhatWasStoredBeforeTheBindingIsSeen) {
    ring(0, 0, 5);
    ASSERT_TRUE(unit_->bind(0, 0, 1));
    EXPECT_FALSE(unit_->poll());
    ring(0, 0, 6);
    EXPECT_TRUE(unit_->poll());
}

TEST_F(DoorbellUnit, UnbindingDropsAPendingRing) {
    ASSERT_TRUE(unit_->bind(0, 0, 1));
    ASSERT_TRUE(unit_->bind(0, 1, 2));
    ring(0, 0, 5);
    ring(0, 1, 5);
    EXPECT_TRUE(unit_->poll());
    EXPECT_TRUE(unit_->unbind(0, 0));
    EXPECT_FALSE(unit_->unbind(0, 0));
    EXPECT_EQ(unit_->pop(), 2u);
    EXPECT_EQ(unit_->pop(), kNothing);
    EXPECT_EQ(unit_->bindings(), 1u);
}

TEST_F(DoorbellUnit, BindingAgainChangesTheTag) {
    ASSERT_TRUE(unit_->bind(0, 0, 1));
    ASSERT_TRUE(unit_->bind(0, 0, 2));
    EXPECT_EQ(unit_->bindings(), 1u);
    ring(0, 0, 5);
    unit_->poll();
    EXPECT_EQ(unit_->pop(), 2u);
    EXPECT_FALSE(unit_->ring(1));
    EXPECT_TRUE(unit_->ring(2));
    EXPECT_EQ(unit_->pop(), 2u);
}

TEST_F(DoorbellUnit, RingsByTag) {
    ASSERT_TRUE(unit_->bind(4, 4, 44));
    EXPECT_FALSE(unit_->ring(45));
    EXPECT_TRUE(unit_->ring(44));
    EXPECT_TRUE(unit_->ring(44));
    EXPECT_EQ(unit_->pop(), 44u);
    EXPECT_EQ(unit_->pop(), kNothing);
}

TEST_F(DoorbellUnit, RefusesWhatIsNotThere) {
    EXPECT_FALSE(unit_->bind(512, 0, 1));
    EXPECT_FALSE(unit_->bind(0, 480, 1));
    EXPECT_FALSE(unit_->bind(~0ull, ~0ull, 1));
    EXPECT_FALSE(unit_->unbind(~0ull, ~0ull));
    EXPECT_FALSE(unit_->unbind(0, 0));
}

TEST_F(DoorbellUnit, HoldsAsManyBindingsAsPromised) {
    for (unsigned i = 0; i < ORR_DB_BINDINGS; ++i)
        ASSERT_TRUE(unit_->bind(i % 512, i / 512, i));
    EXPECT_FALSE(unit_->bind(0, 100, 5000));
    for (unsigned i = 0; i < ORR_DB_BINDINGS; ++i)
        ring(i % 512, i / 512, 9);
    EXPECT_TRUE(unit_->poll());
    for (unsigned i = 0; i < ORR_DB_BINDINGS; ++i)
        ASSERT_NE(unit_->pop(), kNothing);
    EXPECT_EQ(unit_->pop(), kNothing);
    ASSERT_TRUE(unit_->unbind(0, 0));
    EXPECT_TRUE(unit_->bind(0, 100, 5000));
}

TEST_F(DoorbellUnit, AKickIsLookedAtWhateverTheSummarySays) {
    ASSERT_TRUE(unit_->bind(5, 0, 1));
    page(5).doorbell[0] = 77;
    EXPECT_FALSE(unit_->poll());
    unit_->kick(5);
    unit_->kick(6);
    unit_->kick(512);
    EXPECT_TRUE(unit_->changed());
    EXPECT_TRUE(unit_->poll());
    EXPECT_EQ(unit_->pop(), 1u);
    EXPECT_FALSE(unit_->changed());
}

TEST_F(DoorbellUnit, AsksForKicksOnlyInPagesWithBindings) {
    ASSERT_TRUE(unit_->bind(5, 0, 1));
    unit_->set_need_wakeup(true);
    EXPECT_EQ(page(5).need_wakeup, 1u);
    EXPECT_EQ(page(6).need_wakeup, 0u);
    unit_->set_need_wakeup(false);
    EXPECT_EQ(page(5).need_wakeup, 0u);
}

// Who rings until the card's thread runs need not trap too.
TEST_F(DoorbellUnit, AKickIsEnoughUntilTheCardLiesDownAgain) {
    ASSERT_TRUE(unit_->bind(5, 0, 1));
    ASSERT_TRUE(unit_->bind(6, 0, 2));
    unit_->set_need_wakeup(true);
    unit_->kick(5);
    EXPECT_EQ(page(5).need_wakeup, 0u);
    EXPECT_EQ(page(6).need_wakeup, 1u) << "another process, whose kick has to make the card look there";
    EXPECT_TRUE(unit_->changed()) << "a card that is about to sleep does not";
    unit_->set_need_wakeup(true);
    EXPECT_EQ(page(5).need_wakeup, 1u);
}

TEST_F(DoorbellUnit, ResetForgetsBindingsAndKeepsThePages) {
    ASSERT_TRUE(unit_->bind(5, 0, 1));
    ring(5, 0, 9);
    unit_->poll();
    unit_->reset();
    EXPECT_EQ(unit_->pop(), kNothing);
    EXPECT_EQ(unit_->bindings(), 0u);
    EXPECT_FALSE(unit_->poll());
    EXPECT_EQ(page(5).doorbell[0], 9u);
    unit_->clear_pages();
    EXPECT_EQ(page(5).doorbell[0], 0u);
}

}  // namespace
}  // namespace orrery::emu
