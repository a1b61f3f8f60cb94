// A peer that takes no messages: what waits for it waits alone, and the rest of the card goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "emulator/card/card_thread.h"
#include "tests/unit/card/card_rig.h"
#include "tests/unit/link/two_cards.h"

namespace orrery::emu {
namespace {

constexpr std::uint32_t kAsid = 2;
constexpr std::uint64_t kLocalVa = 0x1000'0000, kPeerVa = 0x2000'0000, kOtherVa = 0x3000'0000;
constexpr std::uint64_t kBytes = 8 << 20;  // twice what is on the way at most

class Congested : public testing::Test {
  protected:
    Congested() {
        CardConfig config = CardRig::config();
        config.links.push_back(*LinkConfig::parse("0:listen:" + folder_.file("link")));
        rig_ = std::make_unique<CardRig>(std::move(config));
        peer_ = std::make_unique<test::LinkCard>(7, false, folder_.file("link"));
        peer_->port->set_grant(0, 0, peer_->vram.size(), 1);
        for (int i = 0; i < 2000 && peer_->port->state() != ORR_LINK_UP; ++i) {
            peer_->wait(1);
            rig_->steps(2000);
        }
        rig_->join(1, 0, 7);
        rig_->boot_script();
        for (std::uint64_t at = 0; at < kBytes; at += ORR_PAGE_SIZE) {
            rig_->map_page(kAsid, kLocalVa + at, at, kRw);
            rig_->map_page(kAsid, kPeerVa + at, at % peer_->vram.size(), kRw | of_node(7));
            rig_->map_page(kAsid, kOtherVa + at, kBytes + at, kRw);
        }
        rig_->run(rig_->set_root(kAsid));
        for (std::uint64_t i = 0; i < kBytes / 8; ++i)
            std::memcpy(rig_->card().vram().data() + 8 * i, &i, 8);
        run(copy_ops(0, kPeerVa, kBytes, 1));
        EXPECT_EQ(rig_->soc(SOC_ENGINE(0) + SOC_ENGINE_BUSY), 1u);
    }
    static std::vector<script_op> copy_ops(unsigned port, std::uint64_t to, std::uint64_t bytes,
                                           std::uint32_t tag) {
        orr_desc_copy copy{};
        copy.op = ORR_DESC_COPY;
        copy.asid = kAsid;
        copy.src = kLocalVa;
        copy.dst = to;
        copy.row_bytes = bytes;
        copy.rows = 1;
        return CardRig::start_job(port, copy, tag);
    }
    std::vector<script_op> run(const std::vector<script_op>& ops) { return rig_->run(ops); }
    // {pop, status}
    std::vector<script_op> pop() {
        auto ops = run({{OP_WAIT, 0, 1u << SOC_LINE_DONE, 0},
                        CardRig::read(SOC_DONE_POP),
                        CardRig::read(SOC_DONE_STATUS)});
        return {ops[1], ops[2]};
    }

    test::TempFolder folder_;
    std::unique_ptr<CardRig> rig_;
    std::unique_ptr<test::LinkCard> peer_;
};

TEST_F(Congested, OthersWorkGoesOnAndSoDoesTime) {
    const ModelTime before = rig_->card().events().now();
    for (std::uint32_t i = 0; i < 20; ++i) {
        run(copy_ops(1, kOtherVa, kBytes, 100 + i));
        const auto done = pop();
        EXPECT_EQ(done[0].result, std::uint64_t{1} << 32 | (100 + i));
        EXPECT_EQ(done[1].result, ORR_DONE_OK);
    }
    EXPECT_GT(rig_->card().events().now(), before + 100'000 * kPsPerNs);
    EXPECT_EQ(rig_->soc(SOC_ENGINE(0) + SOC_ENGINE_BUSY), 1u);
    // The core's own stores to that peer do not stop the core either.
    for (int i = 0; i < 10; ++i)
        run({{OP_WRITE, ORR_CONTEXT_WINDOW(kAsid, kPeerVa), 1, 0}});
    EXPECT_EQ(rig_->soc(SOC_WINDOW_FAULT), ORR_FAULT_NONE);
    // When the peer takes its messages at last, all of it arrives.
    rig_->start(
        {{OP_WAIT, 0, 1u << SOC_LINE_DONE, 0}, CardRig::read(SOC_DONE_POP), CardRig::read(SOC_DONE_STATUS)});
    for (int i = 0; i < 100'000 && rig_->results(3)[1].result == 0; ++i) {
        peer_->idle_round();
        rig_->steps(8);
    }
    EXPECT_EQ(rig_->results(3)[1].result, 1u);
    EXPECT_EQ(rig_->results(3)[2].result, ORR_DONE_OK);
    while (peer_->idle_round()) {
    }
    EXPECT_EQ(std::memcmp(peer_->vram.data() + 8, rig_->card().vram().data() + 8, peer_->vram.size() - 8), 0);
}

// As long as a copy stands, each moment counts; what others do meanwhile, and what comes after, does not.
TEST_F(Congested, TheTimeWithoutRoomIsCounted) {
    struct Moment {
        ModelTime now, without_room;
    };
    constexpr std::uint64_t kAll = kRamBase + 0x200000;
    const auto look = [&] {
        rig_->write64(ORR_R_SNAPSHOT, kAll | 1);
        EXPECT_EQ(rig_->read32(ORR_R_SNAPSHOT_DONE), 1u);
        return Moment{rig_->word(kAll + 8 * ORR_CTR_TIME_PS), rig_->word(kAll + 8 * ORR_CTR_LINK_CREDIT_PS)};
    };
    Moment last = look();
    EXPECT_LE(last.without_room, last.now);
    for (std::uint32_t i = 0; i < 5; ++i) {
        run(copy_ops(1, kOtherVa, kBytes >> i, 100 + i));
        pop();
        const Moment next = look();
        EXPECT_GT(next.now, last.now);
        EXPECT_EQ(next.without_room - last.without_room, next.now - last.now);
        last = next;
    }
    run({CardRig::write(SOC_ENGINE(0) + SOC_ENGINE_ABORT, 1)});
    pop();
    const Moment end = look();
    EXPECT_GE(end.without_room, last.without_room);
    EXPECT_LT(end.without_room - last.without_room, end.now - last.now) << "the abort ended it";
    run({{OP_SLEEP, 0, 50'000'000, 0}});
    const Moment later = look();
    EXPECT_GE(later.now, end.now + 50'000'000);
    EXPECT_EQ(later.without_room, end.without_room);
}

TEST_F(Congested, AbortEndsTheWait) {
    run({CardRig::write(SOC_ENGINE(0) + SOC_ENGINE_ABORT, 1)});
    const auto done = pop();
    EXPECT_EQ(done[0].result, 1u);
    EXPECT_EQ(done[1].result, ORR_DONE_ABORTED);
}

// A limit is for a peer that had the time. This one never looks, so all of it costs sixteen times as much,
// and what the card's thread stands for itself costs no more.
TEST_F(Congested, ATimerIsLongWhileThePeersProcessStands) {
    const CardThread thread(rig_->card());
    const auto start = std::chrono::steady_clock::now();
    rig_->start({{OP_SLEEP, 0, 100'000'000'000, 0}, CardRig::read(SOC_TIME)});
    while (rig_->results(2)[1].result == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(800));
}

TEST_F(Congested, RegistersAnswerAndAResetWorks) {
    const CardThread thread(rig_->card());
    for (int i = 0; i < 1000; ++i)
        EXPECT_EQ(rig_->read32(ORR_R_STATE), ORR_STATE_RUNNING);
    // Timers go on as well, at the host's pace.
    rig_->start({{OP_SLEEP, 0, 2'000'000'000, 0}, CardRig::read(SOC_TIME)});
    while (rig_->results(2)[1].result == 0)
        std::this_thread::yield();
    rig_->write32(ORR_R_RESET, ORR_RESET_MAGIC);
    while (rig_->read32(ORR_R_STATE) != ORR_STATE_RESET)
        std::this_thread::yield();
}

}  // namespace
}  // namespace orrery::emu
