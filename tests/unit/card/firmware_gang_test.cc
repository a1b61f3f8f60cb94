// A gang over two cards that run the real firmware and are joined by a link.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "tests/unit/card/firmware_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kLink = ORR_R_LINK(0);
constexpr std::uint64_t kCode = 0x300000;
constexpr std::uint64_t kBoards = 0x240000;      // VRAM, and VA
constexpr std::uint64_t kPeerBoards = 0x250000;  // VA of the other card's
constexpr std::uint64_t kTable = 0x260000;

class FirmwareGang : public testing::Test {
  protected:
    FirmwareGang() : path_("/tmp/orrery-gang-" + std::to_string(getpid())) {
        for (std::uint32_t c = 0; c < 2; ++c) {
            CardConfig config = CardRig::config();
            config.uid = c + 1;
            config.links.push_back(*LinkConfig::parse((c == 0 ? "0:listen:" : "0:connect:") + path_));
            cards_[c] = std::make_unique<FirmwareRig>(FirmwareRig::config(std::move(config)));
        }
        // Ports look for connections at times of the host, so this waits for them.
        for (int n = 0; n < 20'000 && !linked(); ++n) {
            step(100);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    ~FirmwareGang() override { std::filesystem::remove(path_); }

    void SetUp() override {
        ASSERT_TRUE(linked());
        for (std::uint32_t c = 0; c < 2; ++c) {
            FirmwareRig& card = *cards_[c];
            card.boot();
            card.rig().join(c + 1, 0, 2 - c);
            card.rig().grant(0, 3, kBoards, 0x1000, 2 - c);
            for (std::uint32_t asid = 1; asid <= 2; ++asid) {
                card.rig().map_page(asid, kCode, kCode, kRw | ORR_PTE_EXEC);
                card.rig().map_page(asid, kBoards, kBoards, kRw);
                card.rig().map_page(asid, kTable, kTable, kRw);
                card.rig().map_page(asid, kPeerBoards, kBoards, kRw | of_node(2 - c));
                card.make_queue(asid);
            }
            // li t0, 2000000; 1: addi t0, t0, -1; bnez t0, 1b; ret
            const std::array<std::uint32_t, 5> code{0x001e82b7, 0x48028293, 0xfff28293, 0xfe029ee3,
                                                    0x00008067};
            std::memcpy(card.card().vram().at(kCode, sizeof code), code.data(), sizeof code);
            // A board of 64 bytes for each context.
            for (std::uint64_t asid = 1; asid <= 2; ++asid) {
                const std::uint64_t va = kPeerBoards + 64 * asid;
                std::memcpy(card.card().vram().at(kTable + 16 * asid + 8 * (1 - c), 8), &va, 8);
            }
        }
        step(2000);
    }
    bool linked() {
        return cards_[0]->rig().read32(kLink) == ORR_LINK_UP && cards_[1]->rig().read32(kLink) == ORR_LINK_UP;
    }
    void step(int times) {
        for (int n = 0; n < times; ++n) {
            cards_[0]->card().step();
            cards_[1]->card().step();
        }
    }
    void submit(std::uint32_t c, std::uint32_t asid, std::uint64_t round) {
        orr_packet_gang gang{};
        gang.header.opcode = ORR_PKT_GANG;
        gang.board = kBoards + 64ull * asid;
        gang.peers = kTable + 16ull * asid;
        gang.round = round;
        gang.card = static_cast<std::uint16_t>(c);
        gang.cards = 2;
        gang.members = 1;
        cards_[c]->push(asid, gang);
        orr_packet_dispatch kernel{};
        kernel.header = {ORR_PKT_DISPATCH, ORR_PKT_F_RESIDENT, 0};
        kernel.entry = kCode;
        kernel.grid_x = 2;
        kernel.grid_y = kernel.grid_z = 1;
        kernel.block_x = kernel.block_y = kernel.block_z = 1;
        cards_[c]->push(asid, kernel);
        cards_[c]->submit(asid);
    }
    std::uint64_t instructions(std::uint32_t c) {
        return cards_[c]->rig().counter(ORR_CTR_VECTOR_INSTRUCTIONS);
    }
    std::uint64_t consumed(std::uint32_t c, std::uint32_t asid) {
        return std::atomic_ref(cards_[c]->ring(asid).consumer).load(std::memory_order_acquire);
    }
    bool done(std::uint32_t asid, std::uint64_t packets) {
        return consumed(0, asid) == packets && consumed(1, asid) == packets;
    }

    std::string path_;
    std::unique_ptr<FirmwareRig> cards_[2];
};

TEST_F(FirmwareGang, StartsOnBothCardsOrOnNone) {
    for (std::uint64_t round = 1; round <= 3; ++round) {
        const std::uint64_t before[2] = {instructions(0), instructions(1)};
        submit(round % 2, 1, round);
        step(100);  // each takes an idle card 10 ms nearer to the gang's limit of a second
        EXPECT_EQ(consumed(round % 2, 1), 2 * round - 1) << "the GANG packet";
        EXPECT_EQ(instructions(0) + instructions(1), before[0] + before[1]) << "one half runs alone";
        EXPECT_EQ(cards_[round % 2]->ring(1).error, 0u);
        submit(1 - round % 2, 1, round);
        bool both = false;
        for (int n = 0; n < 1'000'000 && !done(1, 2 * round); ++n) {
            step(1);
            both = both || (instructions(0) > before[0] && instructions(1) > before[1] &&
                            consumed(0, 1) < 2 * round && consumed(1, 1) < 2 * round);
        }
        ASSERT_TRUE(done(1, 2 * round))
            << "round " << round << ": " << consumed(0, 1) << ", " << consumed(1, 1) << "; errors "
            << cards_[0]->ring(1).error << " (" << std::hex << cards_[0]->ring(1).error_detail << "), "
            << cards_[1]->ring(1).error << " (" << cards_[1]->ring(1).error_detail << ")";
        EXPECT_TRUE(both);
    }
    EXPECT_EQ(cards_[0]->ring(1).error + cards_[1]->ring(1).error, 0u);
    EXPECT_EQ(cards_[0]->rig().counter(ORR_CTR_GUEST_ERRORS), 0u);
    EXPECT_EQ(cards_[1]->rig().counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(FirmwareGang, TwoGangsCrosswise) {
    for (std::uint64_t round = 1; round <= 4; ++round) {
        submit(0, 1, round);
        submit(1, 2, round);
        step(static_cast<int>(round * 5));
        submit(1, 1, round);
        submit(0, 2, round);
        for (int n = 0; n < 2'000'000 && !(done(1, 2 * round) && done(2, 2 * round)); ++n)
            step(1);
        ASSERT_TRUE(done(1, 2 * round) && done(2, 2 * round)) << "round " << round;
    }
}

}  // namespace
}  // namespace orrery::emu
