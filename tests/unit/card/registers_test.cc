// BAR 0 from the host's side.
#include <gtest/gtest.h>

#include <string>

#include <memory>

#include <cstdio>

#include <algorithm>

#include <array>
#include <cstring>
#include <map>
#include <random>
#include <span>

#include <orrery/hw/pci.h>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

class HostRegistersTest : public testing::Test {
  protected:
    CardRig rig_;
};

TEST_F(HostRegistersTest, IdentifyTheCard) {
    EXPECT_EQ(rig_.read32(ORR_R_ID), ORR_ID_MAGIC);
    EXPECT_EQ(rig_.read32(ORR_R_HW_VERSION), ORR_HW_VERSION);
    EXPECT_EQ(rig_.read64(ORR_R_UID), 0x1234u);
    EXPECT_EQ(rig_.read64(ORR_R_VRAM_SIZE), 64u << 20);
    EXPECT_EQ(rig_.read32(ORR_R_COPY_ENGINES), 2u);
    EXPECT_EQ(rig_.read32(ORR_R_VECTOR_PORTS), 4u);
    EXPECT_EQ(rig_.read32(ORR_R_VECTOR_CORES), 8u);
    EXPECT_EQ(rig_.read32(ORR_R_LINK_PORTS), 4u);
    EXPECT_EQ(rig_.read32(ORR_R_DOORBELL_PAGES), ORR_DB_PAGES);
    EXPECT_EQ(rig_.read32(ORR_R_COUNTERS), static_cast<unsigned>(ORR_COUNTER_COUNT));
    EXPECT_EQ(rig_.read64(ORR_R_CORE_HZ), 1'000'000'000u);
    EXPECT_EQ(rig_.read64(ORR_R_VECTOR_HZ), 1'000'000'000u);
    std::array<char, 32> name{};
    for (unsigned i = 0; i < 32; i += 4) {
        const std::uint32_t part = rig_.read32(ORR_R_SKU_NAME + i);
        std::memcpy(name.data() + i, &part, 4);
    }
    EXPECT_STREQ(name.data(), "Orrery 1");
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(HostRegistersTest, SayWhatKernelsMayUse) {
    EXPECT_EQ(rig_.read32(ORR_R_PLATFORM), ORR_PLATFORM_ATOMICS);
    EXPECT_EQ(rig_.read32(ORR_R_VECTOR_VLEN), Sku::standard().vector_vlen);
    std::array<char, ORR_ISA_BYTES> isa{};
    for (unsigned at = 0; at < isa.size(); at += 4) {
        const std::uint32_t part = rig_.read32(ORR_R_VECTOR_ISA + at);
        std::memcpy(isa.data() + at, &part, 4);
    }
    EXPECT_EQ(isa.back(), '\0');
    const std::string text = isa.data();
    EXPECT_EQ(text.find("rv64imafdcv_"), 0u) << text;
    EXPECT_NE(text.find("_zvl" + std::to_string(Sku::standard().vector_vlen) + "b"), std::string::npos);
    EXPECT_EQ(rig_.read64(ORR_R_VECTOR_ISA + ORR_ISA_BYTES), 0u);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 1u) << "only behind its end";
}

TEST_F(HostRegistersTest, SayWhatTheCardIsMadeOf) {
    const std::uint32_t bytes = rig_.read32(ORR_R_SKU_BYTES);
    ASSERT_LE(bytes, ORR_SKU_MAX_BYTES);
    const std::uint32_t padded = (bytes + 7) / 8 * 8;
    std::string text(padded, '\0'), halves(padded, '\0');
    for (std::uint32_t at = 0; at < padded; at += 8) {
        const std::uint64_t word = rig_.read64(ORR_R_SKU + at);
        std::memcpy(text.data() + at, &word, 8);
        for (const std::uint32_t half : {at, at + 4}) {
            const std::uint32_t part = rig_.read32(ORR_R_SKU + half);
            std::memcpy(halves.data() + half, &part, 4);
        }
    }
    EXPECT_EQ(text, halves);
    EXPECT_EQ(text.find('\0'), bytes < padded ? bytes : std::string::npos);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
    // As the SKU says, but for the VRAM that this card was given.
    Sku sku = Sku::standard();
    const std::string vram = "card.vram\t67108864\tbytes\tassumed\tgiven when the card was started\t";
    EXPECT_NE(text.find(vram), std::string::npos) << text;
    const std::string rest = sku.table().substr(sku.table().find("core.hz"));
    EXPECT_EQ(text.substr(text.find("core.hz"), rest.size()), rest);
    EXPECT_EQ(text.find("core.hz") + rest.size(), bytes);
    // And no more behind it.
    EXPECT_EQ(rig_.read64(ORR_R_SKU + padded), 0u);
    rig_.write64(ORR_R_SKU, 0);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 2u);
}

TEST_F(HostRegistersTest, WideOnesTakeBothHalvesOrOneAccess) {
    for (const std::uint64_t reg : {std::uint64_t{ORR_R_BOOT_IMAGE}, std::uint64_t{ORR_R_BOOT_ARG},
                                    std::uint64_t{ORR_R_LINK(1) + ORR_R_LINK_GRANT_BASE},
                                    std::uint64_t{ORR_R_LINK(3) + ORR_R_LINK_GRANT_SIZE}}) {
        rig_.write64(reg, 0x1122'3344'5566'7788);
        EXPECT_EQ(rig_.read32(reg), 0x5566'7788u);
        EXPECT_EQ(rig_.read32(reg + 4), 0x1122'3344u);
        rig_.write32(reg, 0xaaaa'aaaa);
        rig_.write32(reg + 4, 0xbbbb'bbbb);
        EXPECT_EQ(rig_.read64(reg), 0xbbbb'bbbb'aaaa'aaaau);
    }
    rig_.write32(ORR_R_BOOT_SIZE, 55);
    EXPECT_EQ(rig_.read32(ORR_R_BOOT_SIZE), 55u);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(HostRegistersTest, WhatIsNotThereReadsAsZeroAndCounts) {
    std::uint64_t errors = 0;
    const auto counted = [&] {
        const std::uint64_t now = rig_.counter(ORR_CTR_GUEST_ERRORS);
        const bool one_more = now == errors + 1;
        errors = now;
        return one_more;
    };
    for (const std::uint64_t hole :
         {0x6cull, 0xacull, 0x124ull, 0x148ull, 0x208ull, 0x214ull, 0x5000ull, 0xffff8ull,
          ORR_R_COUNTER(ORR_COUNTER_COUNT) + 0ull, ORR_R_LINK(4) + 0ull, ORR_R_LINK(0) + 0x64ull,
          ORR_R_LINK(7) + 0xfcull, ORR_R_ROUTE(0) + 0ull, ORR_R_ROUTE(ORR_NODES) + 0ull,
          ORR_R_ROUTE_KEY(0) + 0ull, ORR_R_ROUTE_KEY(ORR_NODES) + 0ull}) {
        EXPECT_EQ(rig_.read32(hole), 0u) << hole;
        EXPECT_TRUE(counted()) << hole;
        rig_.write32(hole, 1);
        EXPECT_TRUE(counted()) << hole;
    }
    // Write-only and read-only registers, and a reset without its magic.
    EXPECT_EQ(rig_.read32(ORR_R_RESET), 0u);
    EXPECT_TRUE(counted());
    rig_.write32(ORR_R_ID, 1);
    EXPECT_TRUE(counted());
    rig_.write32(ORR_R_RESET, 1);
    EXPECT_TRUE(counted());
    rig_.write32(ORR_R_BOOT_START, 2);
    EXPECT_TRUE(counted());
    // Sizes that registers do not have.
    std::array<std::byte, 2> two{std::byte{1}, std::byte{1}};
    rig_.device().bar_read(ORR_BAR_REGS, ORR_R_ID, two);
    EXPECT_EQ(two[0], std::byte{0});
    EXPECT_TRUE(counted());
    rig_.device().bar_write(ORR_BAR_REGS, ORR_R_BOOT_SIZE, std::span(two).first(1));
    EXPECT_TRUE(counted());
    EXPECT_EQ(rig_.read32(ORR_R_RESET_COUNT), 0u);
}

TEST_F(HostRegistersTest, InterruptsAreStatusMaskAndClear) {
    rig_.boot_script();
    rig_.run({CardRig::write(SOC_HOST_IRQ, 1), CardRig::write(SOC_HOST_IRQ, 7)});
    EXPECT_EQ(rig_.read32(ORR_R_IRQ_STATUS), 0b1000'0011u);  // 0 is the script's end
    EXPECT_EQ(rig_.raised, (std::vector<unsigned>{1, 7, 0}));
    rig_.write32(ORR_R_IRQ_STATUS, 0b10);
    EXPECT_EQ(rig_.read32(ORR_R_IRQ_STATUS), 0b1000'0001u);
    rig_.write32(ORR_R_IRQ_MASK, 0xffff'ffff);
    EXPECT_EQ(rig_.read32(ORR_R_IRQ_MASK), 0xffu);
    rig_.raised.clear();
    rig_.run({CardRig::write(SOC_HOST_IRQ, 2)});
    EXPECT_TRUE(rig_.raised.empty());
    EXPECT_EQ(rig_.read32(ORR_R_IRQ_STATUS), 0b1000'0101u);
    EXPECT_EQ(rig_.counter(ORR_CTR_HOST_INTERRUPTS), 3u);
    rig_.run({CardRig::write(SOC_HOST_IRQ, 8), CardRig::write(SOC_HOST_IRQ, ~0ull)});
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 2u);
}

TEST_F(HostRegistersTest, AReadSeesTheWritesBeforeIt) {
    rig_.boot_script();
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RESET);
    EXPECT_EQ(rig_.read32(ORR_R_RESET_COUNT), 1u);
}

TEST_F(HostRegistersTest, GrantsAreCountedWhetherTheyMakeSenseOrNot) {
    const auto link = ORR_R_LINK(0);
    rig_.write32(link + ORR_R_LINK_GRANT_CMD, ORR_LINK_GRANT_SET);
    rig_.write32(link + ORR_R_LINK_GRANT_CMD, ~0u);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_GRANT_DONE), 2u);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 2u);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_STATE), ORR_LINK_DOWN);
    EXPECT_EQ(rig_.read64(link + ORR_R_LINK_PEER_UID), 0u);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_GBPS), 400u);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_LATENCY_NS), 500u);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_LOSSES), 0u);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_FORWARD_NS), 150u);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_BUILT), 4u);
    for (const unsigned zero : std::initializer_list<unsigned>{
             ORR_R_LINK_LANES, ORR_R_LINK_MBPS, ORR_R_LINK_CRC_ERRORS, ORR_R_LINK_RETRIES,
             ORR_R_LINK_RETRAINS, ORR_R_LINK_CHANGES, ORR_R_LINK_TX_MESSAGES, ORR_R_LINK_TX_BYTES,
             ORR_R_LINK_RX_MESSAGES, ORR_R_LINK_RX_BYTES + 4})
        EXPECT_EQ(rig_.read32(link + zero), 0u) << zero;
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 2u);
    rig_.read32(link + ORR_R_LINK_RX_BYTES + 8);
    rig_.read32(link + ORR_R_LINK_CHANGES + 4);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 4u) << "nothing is there";
    rig_.write32(link + ORR_R_LINK_CONTROL, ORR_LINK_FORWARD);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_CONTROL), 0u) << "while it is down";
    rig_.write32(link + ORR_R_LINK_DRAIN, 1);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_DRAINED), 1u) << "there is nothing";
    rig_.write32(link + ORR_R_LINK_RESET, 1);
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_RESETS), 1u) << "nothing comes of it";
    EXPECT_EQ(rig_.read32(link + ORR_R_LINK_LOSSES), 0u);
    const std::uint64_t errors = rig_.counter(ORR_CTR_GUEST_ERRORS);
    rig_.write32(link + ORR_R_LINK_DRAIN, ORR_LINK_DRAIN_FORCED + 1);
    rig_.write32(link + ORR_R_LINK_RESET, 2);
    for (const std::uint32_t bad : {2u, 4u, ORR_LINK_IF_LOSSES | 1u << ORR_LINK_LOSSES_SHIFT,
                                    ORR_LINK_FORWARD | 1u << ORR_LINK_LOSSES_SHIFT})
        rig_.write32(link + ORR_R_LINK_CONTROL, bad);
    rig_.write32(link + ORR_R_LINK_GRANT_NODE, 0);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), errors + 7);
}

TEST_F(HostRegistersTest, NodeAndRoutesReadWhatIsInEffect) {
    EXPECT_EQ(rig_.read32(ORR_R_NODE), 0u);
    rig_.write32(ORR_R_NODE, ORR_NODES - 1);
    EXPECT_EQ(rig_.read32(ORR_R_NODE), ORR_NODES - 1);
    rig_.write32(ORR_R_ROUTE(1), ORR_ROUTE_VALID | 2);
    rig_.write32(ORR_R_ROUTE(ORR_NODES - 1), ORR_ROUTE_VALID);
    EXPECT_EQ(rig_.read32(ORR_R_ROUTE(1)), ORR_ROUTE_VALID | 2);
    EXPECT_EQ(rig_.read32(ORR_R_ROUTE(2)), 0u);
    const std::uint32_t held = ORR_ROUTE_VALID | 2 | ORR_ROUTE_HOLD | 0xffffu << ORR_ROUTE_EPOCH_SHIFT;
    rig_.write32(ORR_R_ROUTE(3), held);
    rig_.write32(ORR_R_ROUTE(3), ORR_ROUTE_VALID | 0x400);
    rig_.write32(ORR_R_ROUTE(3), ORR_ROUTE_HOLD | 2);
    EXPECT_EQ(rig_.read32(ORR_R_ROUTE(3)), held);
    EXPECT_EQ(rig_.read32(ORR_R_ROUTE(ORR_NODES - 1)), ORR_ROUTE_VALID);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 2u);
    // No node, no port, no register.
    rig_.write32(ORR_R_NODE, ORR_NODES);
    rig_.write32(ORR_R_ROUTE(1), 2);
    rig_.write32(ORR_R_ROUTE(1), ORR_ROUTE_VALID | rig_.read32(ORR_R_LINK_PORTS));
    rig_.write32(ORR_R_ROUTE(0), ORR_ROUTE_VALID);
    rig_.write32(ORR_R_ROUTE(ORR_NODES), ORR_ROUTE_VALID);
    rig_.write32(ORR_R_LINK(0) + ORR_R_LINK_GRANT_NODE, ORR_NODES);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 8u);
    EXPECT_EQ(rig_.read32(ORR_R_NODE), ORR_NODES - 1);
    EXPECT_EQ(rig_.read32(ORR_R_ROUTE(1)), ORR_ROUTE_VALID | 2);
    rig_.write32(ORR_R_ROUTE(1), 0);
    EXPECT_EQ(rig_.read32(ORR_R_ROUTE(1)), 0u);
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    EXPECT_EQ(rig_.read32(ORR_R_NODE), 0u);
    EXPECT_EQ(rig_.read32(ORR_R_ROUTE(ORR_NODES - 1)), 0u);
}

TEST_F(HostRegistersTest, WildAccessesDoNoHarm) {
    rig_.boot_script();
    std::mt19937_64 random(3);
    constexpr std::array<std::size_t, 4> kSizes{1, 2, 4, 8};
    for (int i = 0; i < 100'000; ++i) {
        const std::size_t size = kSizes[random() % 4];
        const unsigned bar = random() % 2 == 0 ? ORR_BAR_REGS : ORR_BAR_DOORBELL;
        const std::uint64_t limit = bar == ORR_BAR_REGS ? (random() % 2 == 0 ? 0x4900 : 0x100000) : 0x400000;
        const std::uint64_t offset = random() % limit / size * size;
        std::array<std::byte, 8> bytes{};
        const std::uint64_t value = random();
        std::memcpy(bytes.data(), &value, 8);
        if (random() % 2 == 0) {
            rig_.device().bar_read(bar, offset, std::span(bytes).first(size));
        } else {
            rig_.device().bar_write(bar, offset, std::span(bytes).first(size));
        }
        if (i % 16 == 0) rig_.steps(2);
    }
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.boot_script();
}

// --- what the log says about a guest that goes wrong ---

class Told : public testing::Test {
  protected:
    Told() : log_(std::tmpfile()) {
        CardConfig config = CardRig::config();
        config.log = log_;
        rig_ = std::make_unique<CardRig>(std::move(config));
    }
    ~Told() override {
        rig_.reset();
        std::fclose(log_);
    }
    std::string log() {
        rig_->card().errors().flush();
        std::string text(static_cast<std::size_t>(std::max(std::ftell(log_), 0L)), '\0');
        std::rewind(log_);
        text.resize(std::fread(text.data(), 1, text.size(), log_));
        return text;
    }
    static std::size_t lines(const std::string& text, const std::string& part) {
        std::size_t count = 0;
        for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
            ++count;
        return count;
    }
    std::FILE* log_;
    std::unique_ptr<CardRig> rig_;
};

TEST_F(Told, AccessesWhereNothingIsByOffsetWithTheNearestName) {
    for (int i = 0; i < 1000; ++i) {
        rig_->read32(ORR_R_HALT_TVAL + 8);
        rig_->write32(ORR_R_LINK(1) + 0xf0, 1);
    }
    rig_->read32(0x9000);
    const std::string text = log();
    EXPECT_EQ(rig_->counter(ORR_CTR_GUEST_ERRORS), 2001u);
    EXPECT_EQ(lines(text, "nearest: ORR_R_HALT_TVAL + 0x8); 512 times"), 1u) << text;
    EXPECT_EQ(lines(text, "ORR_R_LINK(1) + ORR_R_LINK_BAD_KEY_BY + 0x18"), 10u) << text;
    EXPECT_EQ(lines(text, "at 0x9000"), 1u) << "not hidden by the others";
}

TEST_F(Told, AHostThatReadsInACircleWhatCannotChange) {
    for (int i = 0; i < 10'000; ++i)
        rig_->read32(ORR_R_STATE);
    std::string text = log();
    EXPECT_EQ(lines(text, "the host has read ORR_R_STATE"), 4u) << text;
    EXPECT_NE(text.find("write ORR_R_BOOT_START"), std::string::npos);
    rig_->boot_script();
    for (int i = 0; i < 10'000; ++i)
        rig_->read32(ORR_R_STATE);
    EXPECT_EQ(lines(log(), "the host has read ORR_R_STATE"), 4u) << "a running card may always halt";
    for (int i = 0; i < 2000; ++i)
        rig_->read32(ORR_R_LINK(2));
    EXPECT_NE(log().find("this port has no link"), std::string::npos);
}

TEST_F(Told, FirmwareThatReadsInACircleWhatCannotChange) {
    rig_->boot_script();
    ModelTime wait = 0;
    for (int i = 0; i < 300'000; ++i)
        rig_->card().soc().read(SOC_DONE_POP, wait);
    EXPECT_EQ(lines(log(), "the firmware has read SOC_DONE_POP"), 3u) << log();
    for (int i = 0; i < 300'000; ++i)
        rig_->card().soc().read(SOC_IRQ_PENDING, wait);
    EXPECT_EQ(lines(log(), "SOC_IRQ_PENDING"), 0u);
}

// What a guest can bring about without end is not written without end.
TEST_F(Told, NothingThatAGuestDoesFillsTheDisk) {
    for (int i = 0; i < 5000; ++i) {
        rig_->write32(ORR_R_RESET, ORR_RESET_MAGIC);
        rig_->write32(ORR_R_CORE_RESTART, ORR_RESTART_MAGIC);
        rig_->write32(ORR_R_BOOT_START, 1);
        rig_->device().reset(ResetKind::kFunction);
        rig_->steps(2);
    }
    EXPECT_LT(log().size(), 100'000u);
}

}  // namespace
}  // namespace orrery::emu
