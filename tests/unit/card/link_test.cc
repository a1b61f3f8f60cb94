// Two cards joined by a link: writes and signals of one card's firmware and engines in the other's VRAM.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/card/card_thread.h"
#include "emulator/soc/pokes.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kLink = ORR_R_LINK(0);
constexpr std::uint32_t kAsid = 2;
constexpr std::uint64_t kLocalVa = 0x10000, kPeerVa = 0x20000;
constexpr std::uint64_t kGranted = 0x100000;  // in the peer's VRAM

class LinkedCards : public testing::Test {
  protected:
    LinkedCards() : path_("/tmp/orrery-card-link-" + std::to_string(getpid())) {
        a_ = make(1, "0:listen:" + path_);
        b_ = make(2, "0:connect:" + path_);
        step_until([&] { return a_->read32(kLink) == ORR_LINK_UP && b_->read32(kLink) == ORR_LINK_UP; });
        a_->join(1, 0, 2);
        b_->join(2, 0, 1);
        a_->boot_script();
        b_->boot_script();
        step();
    }
    ~LinkedCards() override { std::filesystem::remove(path_); }

    static std::unique_ptr<CardRig> make(std::uint64_t uid, const std::string& link) {
        CardConfig config = CardRig::config();
        config.uid = uid;
        config.links.push_back(*LinkConfig::parse(link));
        return std::make_unique<CardRig>(std::move(config));
    }
    void step() {
        a_->card().step();
        if (b_) b_->card().step();
    }
    // Ports look for connections at times of the host, so this waits for them.
    template <class Condition>
    void step_until(Condition condition) {
        for (int i = 0; i < 20'000 && !condition(); ++i) {
            for (int n = 0; n < 100; ++n)
                step();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    void settle() {
        for (int i = 0; i < 2000; ++i)
            step();
        a_->settle();
        b_->settle();
    }
    void grant(CardRig& owner, std::uint64_t base, std::uint64_t size) {
        owner.grant(0, 3, base, size, 1);
        EXPECT_EQ(owner.read32(kLink + ORR_R_LINK_GRANT_DONE), 1u);
    }
    // A page of a's own VRAM and one of b's, in an address space of a.
    void map() {
        a_->map_page(kAsid, kLocalVa, 0x40000, kRw);
        a_->map_page(kAsid, kPeerVa, kGranted, kRw | of_node(2));
        a_->run(a_->set_root(kAsid));
    }
    // Starts a copy of so many rows of a page, each from and to the same place.
    static std::vector<script_op> copy(unsigned port, std::uint64_t dst, std::uint32_t rows,
                                       std::uint32_t tag) {
        orr_desc_copy copy{};
        copy.op = ORR_DESC_COPY;
        copy.asid = kAsid;
        copy.src = kLocalVa;
        copy.dst = dst;
        copy.row_bytes = 2048;
        copy.rows = rows;
        return CardRig::start_job(port, copy, tag);
    }
    // The next completion's port and tag, and its status.
    std::pair<std::uint64_t, std::uint64_t> completion() {
        const auto ops = a_->run({{OP_WAIT, 0, 1u << SOC_LINE_DONE, 0},
                                  CardRig::read(SOC_DONE_POP),
                                  CardRig::read(SOC_DONE_STATUS)});
        return {ops[1].result, ops[2].result};
    }
    static std::vector<script_op> signal(std::uint64_t va, std::uint64_t value) {
        return CardRig::signal(kAsid, va, value);
    }

    std::string path_;
    std::unique_ptr<CardRig> a_, b_;
};

TEST_F(LinkedCards, KnowEachOther) {
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_STATE), ORR_LINK_UP);
    EXPECT_EQ(b_->read32(kLink + ORR_R_LINK_STATE), ORR_LINK_UP);
    EXPECT_EQ(a_->read64(kLink + ORR_R_LINK_PEER_UID), 2u);
    EXPECT_EQ(b_->read64(kLink + ORR_R_LINK_PEER_UID), 1u);
    EXPECT_NE(a_->read32(ORR_R_IRQ_STATUS) & 1u << ORR_IRQ_LINK, 0u);
}

// The reader runs free, and all that it could do by itself is to go on to its timer: no answer says that it
// may do that, as long as others are awaited.
TEST_F(LinkedCards, ATimerDoesNotOvertakeACopyThatAwaitsAnswers) {
    constexpr std::uint64_t kBytes = 1 << 20, kFrom = 0x4000'0000, kTo = 0x5000'0000, kTag = 5;
    constexpr std::uint64_t kLimit = 20 * kPsPerSecond;  // of the host too, while answers are awaited
    b_->write32(kLink + ORR_R_LINK_GRANT_RIGHTS, ORR_LINK_RIGHT_READ);
    grant(*b_, kGranted, kBytes);
    for (std::uint64_t at = 0; at < kBytes; at += ORR_PAGE_SIZE) {
        a_->map_page(kAsid, kFrom + at, kGranted + at, ORR_PTE_READ | of_node(2));
        a_->map_page(kAsid, kTo + at, kGranted + at, kRw);
    }
    a_->run(a_->set_root(kAsid));
    for (std::uint64_t i = 0; i < kBytes / 8; ++i)
        std::memcpy(b_->card().vram().data() + kGranted + 8 * i, &i, 8);
    orr_desc_copy copy{};
    copy.op = ORR_DESC_COPY;
    copy.asid = kAsid;
    copy.src = kFrom;
    copy.dst = kTo;
    copy.row_bytes = kBytes;
    copy.rows = 1;
    std::vector<script_op> script = CardRig::start_job(0, copy, kTag);
    script.push_back({OP_SLEEP, 0, kLimit, 0});
    script.push_back(CardRig::read(SOC_DONE_POP));
    script.push_back(CardRig::read(SOC_DONE_STATUS));
    script.push_back(CardRig::read(SOC_TIME));
    CardThread reader(a_->card());
    a_->start(script);
    while (a_->results(script.size()).back().result == 0)
        b_->card().step();
    reader.stop();
    const auto ops = a_->results(script.size());
    EXPECT_EQ(ops[script.size() - 3].result, kTag);
    EXPECT_EQ(ops[script.size() - 2].result, ORR_DONE_OK);
    EXPECT_EQ(std::memcmp(a_->card().vram().data() + kGranted, b_->card().vram().data() + kGranted, kBytes),
              0);
}

// Sends word 0 of a note; what became of it.
std::uint32_t send_note(CardRig& from, std::uint32_t port, std::uint32_t word) {
    const std::uint32_t sent = from.read32(ORR_R_NOTE_SENT);
    from.write32(ORR_R_NOTE_OUT, word);
    from.write32(ORR_R_NOTE_OUT + ORR_NOTE_BYTES - 4, ~word);
    from.write32(ORR_R_NOTE_SEND, port);
    EXPECT_EQ(from.read32(ORR_R_NOTE_SENT), sent + 1);
    return from.read32(ORR_R_NOTE_FAULT);
}

TEST_F(LinkedCards, DriversSendEachOtherNotes) {
    b_->write32(ORR_R_IRQ_STATUS, ~0u);
    EXPECT_EQ(b_->read32(ORR_R_NOTE_WAITING), 0u);
    EXPECT_EQ(b_->read32(ORR_R_NOTE_FROM), 0u);
    // Without a route, and to a node that the sender need not know.
    a_->write32(ORR_R_ROUTE(2), 0);
    b_->write32(ORR_R_ROUTE(1), 0);
    for (std::uint32_t n = 0; n < ORR_NOTES_OF_ONE + 3; ++n)
        EXPECT_EQ(send_note(*a_, 0, 100 + n), ORR_FAULT_NONE);
    settle();
    EXPECT_NE(b_->read32(ORR_R_IRQ_STATUS) & 1u << ORR_IRQ_LINK, 0u);
    EXPECT_EQ(b_->read32(ORR_R_NOTE_WAITING), ORR_NOTES_OF_ONE) << "and room for others";
    EXPECT_EQ(b_->read32(ORR_R_NOTE_DROPPED), 3u);
    for (std::uint32_t n = 0; n < ORR_NOTES_OF_ONE; ++n) {
        EXPECT_EQ(b_->read32(ORR_R_NOTE_FROM), 1u) << "from node 1, by port 0";
        EXPECT_EQ(b_->read32(ORR_R_NOTE_IN), 100 + n);
        EXPECT_EQ(b_->read32(ORR_R_NOTE_IN + ORR_NOTE_BYTES - 4), ~(100 + n));
        b_->write32(ORR_R_NOTE_TAKE, 1);
    }
    EXPECT_EQ(b_->read32(ORR_R_NOTE_WAITING), 0u);
    EXPECT_EQ(send_note(*b_, 0, 5), ORR_FAULT_NONE);
    settle();
    EXPECT_EQ(a_->read32(ORR_R_NOTE_IN), 5u);
    EXPECT_EQ(a_->read32(ORR_R_NOTE_FROM), 2u);
}

TEST_F(LinkedCards, NotesThatGoNowhere) {
    EXPECT_EQ(send_note(*a_, 1, 1), ORR_FAULT_PEER_DOWN) << "no link is there";
    // Who has a route comes by no other port.
    const std::uint64_t denied = b_->counter(ORR_CTR_LINK_DENIED);
    b_->write32(ORR_R_ROUTE(1), ORR_ROUTE_VALID | 1);
    EXPECT_EQ(send_note(*a_, 0, 1), ORR_FAULT_NONE);
    settle();
    EXPECT_EQ(b_->read32(ORR_R_NOTE_WAITING), 0u);
    EXPECT_EQ(b_->counter(ORR_CTR_LINK_DENIED), denied + 1);
    // A card whose driver has gone.
    b_->write32(ORR_R_NODE, 0);
    settle();
    EXPECT_EQ(send_note(*a_, 0, 1), ORR_FAULT_NO_ROUTE);
    a_->write32(ORR_R_RESET, ORR_RESET_MAGIC);
    settle();
    EXPECT_EQ(a_->read32(ORR_R_NOTE_SENT), 0u);
    EXPECT_EQ(a_->read32(ORR_R_NOTE_FAULT), ORR_FAULT_NONE);
}

// Slot 3 of a and slot 5 of b, whose pages are mapped at kPeerVa of each.
struct TwoCardBarrier {
    TwoCardBarrier(CardRig& first, CardRig& second) : a(first), b(second) {
        set_up(a, 3, 2, 5);
        set_up(b, 5, 1, 3);
    }
    static std::uint32_t command(CardRig& card, std::uint32_t word) {
        const std::uint32_t done = card.read32(ORR_R_BARRIER_DONE);
        card.write32(ORR_R_BARRIER_CMD, word);
        EXPECT_EQ(card.read32(ORR_R_BARRIER_DONE), done + 1);
        return card.read32(ORR_R_BARRIER_FAULT);
    }
    static void set_up(CardRig& card, std::uint32_t slot, std::uint32_t other, std::uint32_t there) {
        card.write32(ORR_R_BARRIER_MEMBER, other | there << ORR_BARRIER_SLOT_SHIFT);
        card.write64(ORR_R_BARRIER_WORD, 0x100 + other);
        EXPECT_EQ(command(card, slot | ORR_BARRIER_ADD), ORR_FAULT_NONE);
        card.write64(ORR_R_BARRIER_KEY, 0x1234'5678'9abc'def0);
        card.write64(ORR_R_BARRIER_RELEASE, kGranted);
        card.write64(ORR_R_BARRIER_WORD, 0x300 - other);
        EXPECT_EQ(command(card, slot | ORR_BARRIER_ARM), ORR_FAULT_NONE);
        EXPECT_EQ(card.read64(ORR_R_BARRIER_STATES), std::uint64_t{ORR_BARRIER_ARMED} << 4 * slot);
        card.map_page(kAsid, kPeerVa, slot * ORR_PAGE_SIZE,
                      ORR_PTE_WRITE | std::uint64_t{ORR_TARGET_BARRIER} << ORR_PTE_TARGET_SHIFT);
        card.run(card.set_root(kAsid));
    }
    static std::uint64_t arrive(CardRig& card, std::uint64_t value) {
        return card.run(CardRig::signal(kAsid, kPeerVa, value)).back().result;
    }
    static orr_semaphore at(CardRig& card) {
        orr_semaphore semaphore{};
        std::memcpy(&semaphore, card.card().vram().at(kGranted, sizeof semaphore), sizeof semaphore);
        return semaphore;
    }
    CardRig& a;
    CardRig& b;
};

TEST_F(LinkedCards, MeetAtABarrier) {
    EXPECT_EQ(a_->read32(ORR_R_BARRIER), ORR_BARRIER_SLOTS | ORR_BARRIER_MEMBERS << 16);
    EXPECT_EQ(a_->read64(ORR_R_BARRIER_STATES), 0u);
    TwoCardBarrier barrier(*a_, *b_);
    for (std::uint64_t round = 1; round <= 3; ++round) {
        EXPECT_EQ(TwoCardBarrier::arrive(*a_, round), ORR_FAULT_NONE);
        settle();
        EXPECT_EQ(TwoCardBarrier::at(*a_).value, round - 1);
        EXPECT_EQ(TwoCardBarrier::arrive(*b_, round), ORR_FAULT_NONE);
        settle();
        for (CardRig* card : {a_.get(), b_.get()}) {
            EXPECT_EQ(TwoCardBarrier::at(*card).value, round);
            EXPECT_EQ(card->soc(SOC_POKE_POP), kGranted);
            EXPECT_EQ(card->soc(SOC_POKE_POP), ~0ull);
        }
        EXPECT_GE(TwoCardBarrier::at(*a_).time_ps,
                  TwoCardBarrier::at(*b_).time_ps + a_->card().sku().link_latency_ns * kPsPerNs)
            << "the second came last";
    }
    EXPECT_EQ(a_->counter(ORR_CTR_BARRIER_RELEASES), 3u);
    // Nothing but signals of its first word.
    EXPECT_EQ(a_->run(signal(kPeerVa + 16, 9)).back().result, ORR_FAULT_PAGE_RANGE);
    const auto window =
        a_->run({{OP_READ, ORR_CONTEXT_WINDOW(kAsid, kPeerVa), 0, 0}, CardRig::read(SOC_WINDOW_FAULT)});
    EXPECT_EQ(window[1].result, ORR_FAULT_PERMISSION);
    EXPECT_EQ(a_->counter(ORR_CTR_GUEST_ERRORS), 0u);
}

// The control core does not look: no slot is armed whose word it might not get.
TEST_F(LinkedCards, BarriersThatNobodyLooksAtAreBounded) {
    constexpr std::uint64_t kMost = Pokes::kDepth - ORR_BARRIER_SLOTS + 1;
    a_->write32(ORR_R_BARRIER_MEMBER, 2);
    a_->write64(ORR_R_BARRIER_WORD, 5);
    std::uint64_t made = 0;
    const auto make = [&] {
        EXPECT_EQ(TwoCardBarrier::command(*a_, 7 | ORR_BARRIER_ADD), ORR_FAULT_NONE);
        a_->write64(ORR_R_BARRIER_RELEASE, kGranted + 16 * made);
        const std::uint32_t fault = TwoCardBarrier::command(*a_, 7 | ORR_BARRIER_ARM);
        EXPECT_EQ(TwoCardBarrier::command(*a_, 7 | ORR_BARRIER_CLEAR), ORR_FAULT_NONE);
        return fault;
    };
    for (; made < kMost; ++made)
        ASSERT_EQ(make(), ORR_FAULT_NONE) << made;
    EXPECT_EQ(make(), ORR_FAULT_PEER_BUSY);
    for (std::uint64_t n = 0; n < kMost; ++n)
        EXPECT_EQ(a_->soc(SOC_POKE_POP), kGranted + 16 * n);
    EXPECT_EQ(a_->soc(SOC_POKE_POP), ~0ull);
    EXPECT_EQ(make(), ORR_FAULT_NONE);
    EXPECT_EQ(a_->soc(SOC_POKE_POP), kGranted + 16 * made);
}

TEST_F(LinkedCards, ABarrierFailsWithItsMembers) {
    TwoCardBarrier barrier(*a_, *b_);
    EXPECT_EQ(TwoCardBarrier::arrive(*a_, ORR_SEM_FAILED | 7), ORR_FAULT_NONE);
    settle();
    EXPECT_EQ(TwoCardBarrier::at(*a_).value, ORR_SEM_FAILED | 7);
    EXPECT_EQ(TwoCardBarrier::at(*b_).value, 0u) << "it waits for nothing";
    EXPECT_EQ(TwoCardBarrier::arrive(*b_, 1), ORR_FAULT_NONE);
    settle();
    EXPECT_EQ(TwoCardBarrier::at(*b_).value, ORR_SEM_FAILED | 7);
    EXPECT_EQ(b_->read64(ORR_R_BARRIER_STATES), std::uint64_t{ORR_BARRIER_LOST} << 20);
    b_->write64(ORR_R_BARRIER_WORD, 5);
    EXPECT_EQ(TwoCardBarrier::command(*b_, 5 | ORR_BARRIER_CLEAR), ORR_FAULT_NONE);
    EXPECT_EQ(b_->read64(ORR_R_BARRIER_STATES), 0u);
    EXPECT_EQ(TwoCardBarrier::command(*b_, 5 | ORR_BARRIER_CLEAR | ORR_BARRIER_ADD), ORR_FAULT_PERMISSION);
    EXPECT_EQ(TwoCardBarrier::arrive(*b_, 2), ORR_FAULT_PAGE_RANGE);
}

TEST_F(LinkedCards, ABarrierFailsWithACardThatIsReset) {
    TwoCardBarrier barrier(*a_, *b_);
    EXPECT_EQ(TwoCardBarrier::arrive(*b_, 1), ORR_FAULT_NONE);
    a_->write32(ORR_R_RESET, ORR_RESET_MAGIC);
    EXPECT_EQ(a_->read64(ORR_R_BARRIER_STATES), 0u);
    EXPECT_EQ(a_->read32(ORR_R_BARRIER_DONE), 0u);
    settle();
    EXPECT_EQ(TwoCardBarrier::at(*b_).value, ORR_SEM_FAILED | 0x2fe) << "as it said when it was armed";
    EXPECT_EQ(TwoCardBarrier::at(*a_).value, 0u);
}

TEST_F(LinkedCards, ABarrierFailsWithItsLink) {
    TwoCardBarrier barrier(*a_, *b_);
    EXPECT_EQ(TwoCardBarrier::arrive(*a_, 1), ORR_FAULT_NONE);
    b_.reset();
    step_until([&] { return a_->read32(kLink) == ORR_LINK_DOWN; });
    a_->settle();
    EXPECT_EQ(TwoCardBarrier::at(*a_).value, ORR_SEM_FAILED | 0x102);
    EXPECT_EQ(a_->soc(SOC_POKE_POP), kGranted);
}

TEST_F(LinkedCards, ABarrierFailsWithAnEpoch) {
    TwoCardBarrier barrier(*a_, *b_);
    EXPECT_EQ(TwoCardBarrier::arrive(*b_, 1), ORR_FAULT_NONE);
    b_->write32(ORR_R_ROUTE(1), ORR_ROUTE_VALID | 1 << ORR_ROUTE_EPOCH_SHIFT);
    b_->settle();
    EXPECT_EQ(TwoCardBarrier::at(*b_).value, ORR_SEM_FAILED | 0x101);
    settle();
    EXPECT_EQ(TwoCardBarrier::at(*a_).value, 0u) << "its driver writes the same there";
    a_->write32(ORR_R_ROUTE(2), ORR_ROUTE_VALID | 1 << ORR_ROUTE_EPOCH_SHIFT);
    EXPECT_EQ(TwoCardBarrier::arrive(*a_, 1), ORR_FAULT_NONE);
    a_->settle();
    EXPECT_EQ(TwoCardBarrier::at(*a_).value, ORR_SEM_FAILED | 0x102);
}

TEST_F(LinkedCards, AnEpochEndsWhatWasSentInAnOlderOne) {
    map();
    grant(*b_, kGranted, 0x1000);
    const auto route = [](CardRig& card, std::uint32_t node, std::uint32_t epoch, std::uint32_t hold) {
        const std::uint32_t value = ORR_ROUTE_VALID | hold | epoch << ORR_ROUTE_EPOCH_SHIFT;
        card.write32(ORR_R_ROUTE(node), value);
        EXPECT_EQ(card.read32(ORR_R_ROUTE(node)), value);
    };
    EXPECT_EQ(a_->run(signal(kPeerVa, 1)).back().result, ORR_FAULT_NONE);
    for (CardRig* card : {a_.get(), b_.get()})
        route(*card, card == a_.get() ? 2 : 1, 7, ORR_ROUTE_HOLD);
    EXPECT_EQ(a_->run(signal(kPeerVa, 2)).back().result, ORR_FAULT_PEER_DOWN) << "held";
    for (CardRig* card : {a_.get(), b_.get()})
        route(*card, card == a_.get() ? 2 : 1, 7, 0);
    EXPECT_EQ(a_->run(signal(kPeerVa + 16, 3)).back().result, ORR_FAULT_NONE);
    settle();
    orr_semaphore semaphores[2];
    std::memcpy(semaphores, b_->card().vram().at(kGranted, sizeof semaphores), sizeof semaphores);
    EXPECT_EQ(semaphores[0].value + b_->counter(ORR_CTR_LINK_DENIED), 1u) << "done before, or denied";
    EXPECT_EQ(semaphores[1].value, 3u);
}

TEST_F(LinkedCards, ForwardGoesOffWithTheLink) {
    a_->write32(kLink + ORR_R_LINK_CONTROL, ORR_LINK_FORWARD);
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_CONTROL), ORR_LINK_FORWARD);
    a_->write32(kLink + ORR_R_LINK_DRAIN, 1);
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_DRAINED), 1u);
    a_->write32(ORR_R_IRQ_STATUS, 1u << ORR_IRQ_LINK);
    b_.reset();
    step_until([&] { return a_->read32(kLink) == ORR_LINK_DOWN; });
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_CONTROL), 0u);
    EXPECT_NE(a_->read32(ORR_R_IRQ_STATUS) & 1u << ORR_IRQ_LINK, 0u);
}

TEST_F(LinkedCards, ResetTakesTheLinkDownAndBothEndsTrainItAnew) {
    a_->write32(kLink + ORR_R_LINK_RESET, 1);
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_RESETS), 1u);
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_LOSSES), 1u);
    step_until([&] {
        return b_->read32(kLink + ORR_R_LINK_LOSSES) == 1 && a_->read32(kLink) == ORR_LINK_UP &&
               b_->read32(kLink) == ORR_LINK_UP;
    });
    EXPECT_EQ(b_->read32(kLink + ORR_R_LINK_RESETS), 0u);
}

// The link goes down and comes up again between a look at its losses and the write.
TEST_F(LinkedCards, ForwardIsSetByThoseWhoKnowOfAllLosses) {
    const auto set = [this](std::uint32_t losses) {
        a_->write32(kLink + ORR_R_LINK_CONTROL,
                    ORR_LINK_FORWARD | ORR_LINK_IF_LOSSES | losses << ORR_LINK_LOSSES_SHIFT);
        return a_->read32(kLink + ORR_R_LINK_CONTROL);
    };
    EXPECT_EQ(set(0), ORR_LINK_FORWARD);
    b_.reset();
    step_until([&] { return a_->read32(kLink) == ORR_LINK_DOWN; });
    b_ = make(2, "0:connect:" + path_);
    step_until([&] { return a_->read32(kLink) == ORR_LINK_UP; });
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_LOSSES), 1u);
    EXPECT_EQ(set(0), 0u) << "by an older look";
    EXPECT_EQ(set(1), ORR_LINK_FORWARD);
    EXPECT_EQ(a_->counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(LinkedCards, RegistersCountWhatCrossesAPort) {
    map();
    grant(*b_, kGranted, 0x1000);
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_MBPS), 400'000u);
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_LANES), 4u);
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_CHANGES), 2u) << "training, up";
    EXPECT_EQ(a_->run(signal(kPeerVa, 1)).back().result, ORR_FAULT_NONE);
    a_->run(copy(0, kPeerVa + 0x100, 1, 1));
    settle();
    EXPECT_EQ(a_->read64(kLink + ORR_R_LINK_TX_MESSAGES), 2u);
    EXPECT_EQ(a_->read64(kLink + ORR_R_LINK_TX_BYTES), a_->counter(ORR_CTR_LINK_TX_BYTES));
    EXPECT_EQ(a_->read64(kLink + ORR_R_LINK_RX_MESSAGES), 0u);
    EXPECT_EQ(b_->read64(kLink + ORR_R_LINK_RX_MESSAGES), 2u);
    EXPECT_EQ(b_->read64(kLink + ORR_R_LINK_RX_BYTES), a_->counter(ORR_CTR_LINK_TX_BYTES));
    EXPECT_EQ(a_->read64(ORR_R_LINK(1) + ORR_R_LINK_TX_MESSAGES), 0u);
}

TEST_F(LinkedCards, ACopyAndASignalArriveInOrder) {
    map();
    grant(*b_, kGranted, 0x1000);
    std::memset(a_->card().vram().at(0x40000, 4096), 0x3c, 4096);
    a_->run(copy(0, kPeerVa, 1, 1));
    EXPECT_EQ(completion().second, ORR_DONE_OK);
    EXPECT_EQ(a_->run(signal(kPeerVa + 0x800, 9)).back().result, ORR_FAULT_NONE);
    settle();
    EXPECT_EQ(*b_->card().vram().at(kGranted + 2047, 1), 0x3c);
    orr_semaphore semaphore{};
    std::memcpy(&semaphore, b_->card().vram().at(kGranted + 0x800, sizeof semaphore), sizeof semaphore);
    EXPECT_EQ(semaphore.value, 9u);
    EXPECT_GT(semaphore.time_ps, a_->card().sku().link_latency_ns * kPsPerNs);
    EXPECT_EQ(b_->soc(SOC_POKE_POP), kGranted + 0x800);
    EXPECT_EQ(b_->soc(SOC_POKE_POP), ~0ull);
    EXPECT_GE(b_->counter(ORR_CTR_LINK_RX_MESSAGES), 2u);
}

// The owner's clock is far behind: what was signalled comes much later for it, and the close comes now.
TEST_F(LinkedCards, NoCloseOvertakesASignal) {
    map();
    grant(*b_, kGranted, 0x1000);
    a_->run({{OP_SLEEP, 0, 1'000'000'000, 0}});
    EXPECT_EQ(a_->run(signal(kPeerVa + 0x800, 7)).back().result, ORR_FAULT_NONE);
    const auto closed = b_->run({CardRig::write(SOC_SEM_CLOSE, ORR_VRAM_WINDOW + kGranted + 0x800),
                                 CardRig::read(SOC_SEM_STATUS),
                                 {OP_READ, ORR_VRAM_WINDOW + kGranted + 0x800, 0, 0},
                                 {OP_READ, ORR_VRAM_WINDOW + kGranted + 0x808, 0, 0},
                                 CardRig::read(SOC_SYSTEM_TIME),
                                 CardRig::read(SOC_POKE_POP)});
    EXPECT_EQ(closed[1].result, ORR_FAULT_NONE);
    EXPECT_EQ(closed[2].result, 7u);
    EXPECT_EQ(closed[3].result & ORR_SEM_CLOSED, ORR_SEM_CLOSED);
    EXPECT_GT(closed[3].result & ~ORR_SEM_CLOSED, closed[4].result) << "it was on its way";
    EXPECT_EQ(closed[5].result, kGranted + 0x800);
}

// A debugger holds one card's time: what others send it waits, nothing of it fails, all else of theirs goes
// on, and when the card goes on so does what was sent.
TEST_F(LinkedCards, WhoSendsToAHeldCardWaitsForIt) {
    constexpr std::uint32_t kRows = 8192;  // four times what is on the way at most
    map();
    a_->map_page(kAsid, 0x30000, 0x80000, kRw);
    a_->run(a_->set_root(kAsid));
    grant(*b_, kGranted, 0x1000);
    std::memset(a_->card().vram().at(0x40000, 4096), 0x3c, 4096);
    b_->card().core().debug_stop();
    const ModelTime stands = b_->card().events().now();
    a_->run(copy(0, kPeerVa, kRows, 1));
    for (int i = 0; i < 20'000; ++i)
        step();
    EXPECT_EQ(a_->soc(SOC_ENGINE(0) + SOC_ENGINE_BUSY), 1u);
    const ModelTime before = a_->card().events().now();
    a_->run(copy(1, 0x30000, 4, 2));
    EXPECT_EQ(completion(),
              (std::pair<std::uint64_t, std::uint64_t>(std::uint64_t{1} << 32 | 2, ORR_DONE_OK)));
    EXPECT_GT(a_->card().events().now(), before);
    EXPECT_EQ(b_->card().events().now(), stands);
    EXPECT_EQ(a_->read32(kLink), ORR_LINK_UP);
    EXPECT_EQ(b_->read32(kLink), ORR_LINK_UP);

    b_->card().core().debug_detach();
    step_until([&] { return a_->soc(SOC_ENGINE(0) + SOC_ENGINE_BUSY) == 0; });
    EXPECT_EQ(completion(), (std::pair<std::uint64_t, std::uint64_t>(1, ORR_DONE_OK)));
    settle();
    EXPECT_EQ(*b_->card().vram().at(kGranted + 2047, 1), 0x3c);
    EXPECT_GT(b_->card().events().now(), stands);
}

TEST_F(LinkedCards, AStoreOfTheFirmwareArrives) {
    map();
    grant(*b_, kGranted, 0x1000);
    a_->run({{OP_WRITE, ORR_CONTEXT_WINDOW(kAsid, kPeerVa + 0x10), 0x1234, 0}});
    settle();
    EXPECT_EQ(*b_->card().vram().at(kGranted + 0x10, 1), 0x34);
    EXPECT_EQ(a_->soc(SOC_WINDOW_FAULT), ORR_FAULT_NONE);
}

TEST_F(LinkedCards, WhatIsNotGrantedIsDenied) {
    map();
    const std::uint64_t status = a_->run(signal(kPeerVa, 9)).back().result;
    settle();
    EXPECT_EQ(*b_->card().vram().at(kGranted, 1), 0);
    EXPECT_TRUE(status == ORR_FAULT_PEER_DENIED || b_->counter(ORR_CTR_LINK_DENIED) == 1u);
    EXPECT_EQ(b_->soc(SOC_POKE_POP), ~0ull);
}

TEST_F(LinkedCards, AGrantIsGivenAtAllPortsAtOnce) {
    map();
    // By the registers of a port without a cable.
    const std::uint64_t other = ORR_R_LINK(1);
    const auto command = [&](std::uint32_t verb) {
        b_->write64(other + ORR_R_LINK_GRANT_BASE, kGranted);
        b_->write64(other + ORR_R_LINK_GRANT_SIZE, 0x1000);
        b_->write32(other + ORR_R_LINK_GRANT_NODE, 1);
        b_->write32(other + ORR_R_LINK_GRANT_CMD, 255 | verb | ORR_LINK_GRANT_ALL);
    };
    command(ORR_LINK_GRANT_SET);
    EXPECT_EQ(b_->read32(other + ORR_R_LINK_GRANT_DONE), 1u);
    EXPECT_EQ(b_->read32(kLink + ORR_R_LINK_GRANT_DONE), 0u);
    EXPECT_EQ(a_->run(signal(kPeerVa, 9)).back().result, ORR_FAULT_NONE);
    command(ORR_LINK_GRANT_CLEAR);
    EXPECT_EQ(b_->read32(other + ORR_R_LINK_GRANT_DONE), 2u);
    EXPECT_EQ(*b_->card().vram().at(kGranted, 1), 9) << "what was sent before is done";
    EXPECT_EQ(a_->run(signal(kPeerVa, 10)).back().result, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(b_->counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(LinkedCards, RequestsCarryTheirRoutesKey) {
    map();
    b_->write64(kLink + ORR_R_LINK_GRANT_KEY, 0x1111'2222'3333'4444);
    grant(*b_, kGranted, 0x1000);
    const auto signalled = [&](std::uint64_t value) {
        EXPECT_EQ(a_->run(signal(kPeerVa, value)).back().result, ORR_FAULT_NONE);
        settle();
        return *b_->card().vram().at(kGranted, 1) == value;
    };
    const auto bad = [&] { return b_->read32(kLink + ORR_R_LINK_BAD_KEYS); };
    EXPECT_FALSE(signalled(1)) << "without one";
    EXPECT_EQ(bad(), 1u);
    EXPECT_EQ(b_->read32(kLink + ORR_R_LINK_BAD_KEY_BY), 1u);
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_REFUSED_BY), 2u | ORR_FAULT_PEER_KEY << 16);
    a_->write64(ORR_R_ROUTE_KEY(2), 0x1111'2222'3333'4444);
    EXPECT_EQ(a_->read32(ORR_R_ROUTE_KEYS), 1u);
    EXPECT_TRUE(signalled(2));
    // Half of one is none yet, and another route changes nothing.
    a_->write32(ORR_R_ROUTE_KEY(2), 0x3333'4445);
    EXPECT_EQ(a_->read32(ORR_R_ROUTE_KEYS), 1u);
    a_->write32(ORR_R_ROUTE(2), 0);
    a_->write32(ORR_R_ROUTE(2), ORR_ROUTE_VALID);
    EXPECT_TRUE(signalled(3));
    a_->write32(ORR_R_ROUTE_KEY(2) + 4, 0x1111'2222);
    EXPECT_EQ(a_->read32(ORR_R_ROUTE_KEYS), 2u);
    EXPECT_FALSE(signalled(4));
    EXPECT_EQ(bad(), 2u);
    EXPECT_EQ(a_->counter(ORR_CTR_GUEST_ERRORS) + b_->counter(ORR_CTR_GUEST_ERRORS), 0u);
    // Nobody reads one back, and a reset forgets it.
    EXPECT_EQ(a_->read64(ORR_R_ROUTE_KEY(2)), 0u);
    a_->write32(ORR_R_RESET, ORR_RESET_MAGIC);
    settle();
    EXPECT_EQ(a_->read32(ORR_R_ROUTE_KEYS), 0u);
}

TEST_F(LinkedCards, WhatIsForNoNodeBehindThePortGoesNowhere) {
    map();
    grant(*b_, kGranted, 0x1000);
    a_->write32(ORR_R_ROUTE(2), 0);
    EXPECT_EQ(a_->run(signal(kPeerVa, 9)).back().result, ORR_FAULT_NO_ROUTE);
    a_->write32(ORR_R_ROUTE(2), ORR_ROUTE_VALID | 1);
    EXPECT_EQ(a_->run(signal(kPeerVa, 9)).back().result, ORR_FAULT_PEER_DOWN) << "no cable there";
    a_->write32(ORR_R_ROUTE(2), ORR_ROUTE_VALID);
    b_->write32(ORR_R_NODE, 3);  // another life
    b_->read32(ORR_R_NODE);
    EXPECT_EQ(a_->run(signal(kPeerVa, 9)).back().result, ORR_FAULT_NO_ROUTE);
    b_->write32(ORR_R_NODE, 2);
    b_->read32(ORR_R_NODE);
    settle();
    EXPECT_EQ(*b_->card().vram().at(kGranted, 1), 0);
    EXPECT_EQ(a_->run(signal(kPeerVa, 9)).back().result, ORR_FAULT_NONE);
    settle();
    EXPECT_EQ(*b_->card().vram().at(kGranted, 1), 9);
}

TEST_F(LinkedCards, NobodyComesByAnotherPortThanThatOfHisRoute) {
    map();
    grant(*b_, kGranted, 0x1000);
    for (const std::uint32_t route : {0u, ORR_ROUTE_VALID | 1}) {
        b_->write32(ORR_R_ROUTE(1), route);
        b_->read32(ORR_R_ROUTE(1));
        const std::uint64_t before = b_->counter(ORR_CTR_LINK_DENIED);
        EXPECT_EQ(a_->run(signal(kPeerVa, 9)).back().result, ORR_FAULT_NONE);
        settle();
        EXPECT_EQ(*b_->card().vram().at(kGranted, 1), 0);
        EXPECT_EQ(b_->counter(ORR_CTR_LINK_DENIED), before + 1);
    }
}

TEST_F(LinkedCards, AResetTakesTheGrantsAlongAndKeepsTheLink) {
    map();
    grant(*b_, kGranted, 0x1000);
    b_->write32(ORR_R_RESET, ORR_RESET_MAGIC);
    EXPECT_EQ(b_->read32(kLink + ORR_R_LINK_GRANT_DONE), 0u);
    settle();
    EXPECT_EQ(b_->read32(kLink + ORR_R_LINK_STATE), ORR_LINK_UP);
    a_->run(signal(kPeerVa, 9));
    settle();
    EXPECT_EQ(*b_->card().vram().at(kGranted, 1), 0);
}

TEST_F(LinkedCards, APeerThatGoesTakesTheLinkDown) {
    map();
    a_->raised.clear();
    b_.reset();
    step_until([&] { return a_->read32(kLink) != ORR_LINK_UP; });
    EXPECT_EQ(a_->read32(kLink), ORR_LINK_DOWN);
    EXPECT_EQ(a_->read32(kLink + ORR_R_LINK_LOSSES), 1u);
    EXPECT_EQ(a_->read64(kLink + ORR_R_LINK_PEER_UID), 0u);
    EXPECT_EQ(a_->run(signal(kPeerVa, 9)).back().result, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(a_->raised.front(), ORR_IRQ_LINK);
}

}  // namespace
}  // namespace orrery::emu
