// Kernels over links: vector units of cards in a chain, which go in the order of their times, against closed
// forms; what owners refuse, and links that go.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>

#include "emulator/engines/copy_engine.h"
#include "emulator/engines/vector_unit.h"
#include "emulator/link/grants.h"
#include "tests/unit/engines/kernels.h"
#include "tests/unit/link/net.h"
#include "tests/unit/link/raw_peer.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kLocal = 0x10'0000'0000, kOther = 0x50'0000'0000;
constexpr std::uint64_t kDataOffset = 1 << 20, kBytes = 2 << 20;
constexpr std::uint64_t kHz = 1'000'000'000;

// Of one card of the net. kOther + n * kBytes is the data of card n.
class Kernels {
  public:
    Kernels(NetCard& its_card, unsigned cards, std::uint64_t lines = 0, std::uint32_t cores = 8)
        : card(its_card),
          mmu_(card.vram, host_, card.counters),
          context_{.events = card.events,
                   .vram = card.vram,
                   .mmu = mmu_,
                   .memory = memory_,
                   .counters = card.counters,
                   .peers = card.peers,
                   .done = [this](const Completion& completion) { done.push_back(completion); }},
          unit(config(lines, cores), context_) {
        std::ifstream file(ORRERY_TEST_KERNELS, std::ios::binary);
        const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
        std::memcpy(card.vram.data(), image.data(), image.size());
        tables_ = card.vram.size();
        root_ = new_table();
        EXPECT_EQ(mmu_.set_root(1, root_), ORR_FAULT_NONE);
        map(kImageBase, 64 << 10, ORR_TARGET_VRAM, 0, 0, ORR_PTE_READ | ORR_PTE_EXEC);
        map(kLocal, kBytes, ORR_TARGET_VRAM, kDataOffset, 0);
        for (unsigned n = 0; n < cards; ++n) {
            const bool own = n + 1 == card.node;
            map(kOther + n * kBytes, kBytes, own ? ORR_TARGET_VRAM : ORR_TARGET_PEER, kDataOffset,
                own ? 0 : n + 1);
        }
    }
    std::uint64_t* data(std::uint64_t at = 0) {
        return reinterpret_cast<std::uint64_t*>(card.vram.data() + kDataOffset + at);
    }
    void start(Kernel kernel, std::initializer_list<std::uint64_t> args, std::uint32_t groups) {
        std::ranges::copy(args, data());
        start_at(kernel, kLocal, groups);
    }
    void start_at(Kernel kernel, std::uint64_t args, std::uint32_t groups) {
        orr_desc_kernel d{};
        d.op = ORR_DESC_KERNEL;
        d.asid = 1;
        std::memcpy(&d.entry, card.vram.data() + kernel * sizeof d.entry, sizeof d.entry);
        d.args = args;
        d.grid_x = groups;
        d.grid_y = d.grid_z = d.block_x = d.block_y = d.block_z = 1;
        done.clear();
        ASSERT_TRUE(unit.port(0).start(std::bit_cast<DescriptorWords>(d), 1));
    }
    // Puts what runs on port 0 aside, and has it go on there. False: it has ended before.
    bool take_turns(ModelTime aside) {
        constexpr std::uint64_t kArea = 4 << 20;
        EXPECT_TRUE(unit.port(0).preempt(Preempt::kNow, kArea));
        while (done.empty())
            EXPECT_TRUE(card.events.run_next(kNever - 1));
        if (done[0].status != ORR_DONE_PREEMPTED) return false;
        done.clear();
        const ModelTime until = card.events.now() + aside;
        while (card.events.run_next(until)) {
        }
        card.events.advance_to(until);
        EXPECT_TRUE(unit.port(0).resume(kArea, 1));
        return true;
    }
    void expect_end(std::uint32_t status, std::uint64_t fault = 0) {
        ASSERT_EQ(done.size(), 1u);
        EXPECT_EQ(done[0].status, status);
        EXPECT_EQ(done[0].fault, fault);
    }
    ModelTime took() const { return done.at(0).end_ps - done.at(0).start_ps; }

    NetCard& card;
    std::vector<Completion> done;

  private:
    static VectorConfig config(std::uint64_t lines, std::uint32_t cores) {
        VectorConfig config;
        config.cores = cores;
        config.hz = kHz;
        config.vlen = 1024;
        config.l1_bytes = 16 << 10;
        config.in_flight = lines;
        return config;
    }
    void map(std::uint64_t va, std::uint64_t bytes, unsigned target, std::uint64_t address, unsigned node,
             std::uint64_t rights = ORR_PTE_READ | ORR_PTE_WRITE) {
        for (std::uint64_t at = 0; at < bytes; at += ORR_PAGE_SIZE) {
            std::uint64_t table = root_;
            for (unsigned level = ORR_MMU_LEVELS - 1; level > 0; --level) {
                std::uint64_t& word = words(table)[(va + at) >> (12 + 9 * level) & 511];
                if ((word & ORR_PTE_VALID) == 0) word = ORR_PTE_VALID | new_table();
                table = word & ORR_PTE_ADDR_MASK;
            }
            words(table)[(va + at) >> 12 & 511] = ORR_PTE_VALID | ORR_PTE_LEAF | rights |
                                                  std::uint64_t{target} << ORR_PTE_TARGET_SHIFT |
                                                  std::uint64_t{node} << ORR_PTE_NODE_SHIFT | (address + at);
        }
    }
    std::uint64_t* words(std::uint64_t table) {
        return reinterpret_cast<std::uint64_t*>(card.vram.data() + table);
    }
    std::uint64_t new_table() { return tables_ -= ORR_PAGE_SIZE; }

    HostMemory host_;
    Mmu mmu_;
    MemorySystem memory_{{}};
    EngineContext context_;
    std::uint64_t tables_ = 0, root_ = 0;

  public:
    // kOther + 7 * kBytes: pages of the data of nodes `a` and `b` in turns.
    void map_in_turns(unsigned a, unsigned b, std::uint64_t bytes) {
        for (std::uint64_t at = 0; at < bytes; at += ORR_PAGE_SIZE)
            map(kOther + 7 * kBytes + at, ORR_PAGE_SIZE, ORR_TARGET_PEER, kDataOffset + at,
                at / ORR_PAGE_SIZE % 2 == 0 ? a : b);
    }
    EngineContext& context() { return context_; }
    VectorUnit unit;
};

class LinkKernels : public testing::TestWithParam<unsigned> {
  protected:
    explicit LinkKernels(unsigned cards) : net(cards, false) {
        EXPECT_TRUE(net.up());
        net.forward();
        allow(ORR_LINK_RIGHTS);
        for (auto& card : net.cards) {
            card->events.advance_to(1'000'000 * kPsPerNs);
            kernels.push_back(std::make_unique<Kernels>(*card, cards));
        }
    }
    LinkKernels() : LinkKernels(GetParam()) {}
    void allow(std::uint64_t rights) {
        for (auto& owner : net.cards)
            for (auto& from : net.cards)
                for (auto& port : owner->ports)
                    if (port && from != owner)
                        ASSERT_TRUE(port->set_grant(from->node - 1, 0, owner->vram.size(), from->node,
                                                    {.rights = rights}));
    }

    Net net;
    std::vector<std::unique_ptr<Kernels>> kernels;
};

class FourCardsKernels : public LinkKernels {
  protected:
    FourCardsKernels() : LinkKernels(4) {}
};
class ThreeCardsKernels : public LinkKernels {
  protected:
    ThreeCardsKernels() : LinkKernels(3) {}
};
class TwoCardsKernels : public LinkKernels {
  protected:
    TwoCardsKernels() : LinkKernels(2) {}
    std::uint64_t signals_ = 0;
};

// Each load takes the ways there and back, and its line's time on each wire of them.
TEST_P(LinkKernels, AScalarSumTakesTheWaysThereAndBackForEachWord) {
    constexpr std::uint64_t kWords = 500;
    for (unsigned n = 1; n < GetParam(); ++n) {
        std::iota(kernels[n]->data(4096), kernels[n]->data(4096) + kWords, n);
        Kernels& first = *kernels[0];
        std::iota(first.data(8192), first.data(8192) + kWords, n);
        first.start(kSum, {kLocal + 8192, kWords, kLocal + 4096}, 1);
        net.run();
        first.expect_end(ORR_DONE_OK);
        const ModelTime near = first.took();
        const std::uint64_t sum = first.data(4096)[0];
        first.start(kSum, {kOther + n * kBytes + 4096, kWords, kLocal + 4096}, 1);
        net.run();
        first.expect_end(ORR_DONE_OK);
        EXPECT_EQ(first.data(4096)[0], sum) << n;
        const ModelTime way = n * kLatency + (n - 1) * kSwitching;
        // One cycle more for each, as its instruction is come to twice.
        EXPECT_EQ(first.took() - near, kWords * (2 * way + 2 * on_wire(64) + kPsPerSecond / kHz)) << n;
    }
    EXPECT_EQ(net.sum(ORR_CTR_LINK_STRAGGLERS) + net.sum(ORR_CTR_LINK_DENIED), 0u);
}

// A vector load is one request for each page that it touches.
TEST_P(LinkKernels, AVectorLoadTakesItsBytesOnce) {
    constexpr std::uint64_t kRows = 16, kRow = 1024;
    const unsigned last = GetParam() - 1;
    Kernels& first = *kernels[0];
    std::iota(kernels[last]->data(4096), kernels[last]->data(4096) + kRows * kRow / 8, 3);
    const auto row = [&](std::uint64_t from) {
        first.start(kTriad, {kLocal + (1 << 19), from, kLocal + (1 << 18), kRows * kRow / 8}, 1);
        net.run();
        first.expect_end(ORR_DONE_OK);
        return first.took();
    };
    const ModelTime near = row(kLocal + (1 << 18));
    const ModelTime far = row(kOther + last * kBytes + 4096);
    for (std::uint64_t i = 0; i < kRows * kRow / 8; ++i)
        ASSERT_EQ(first.data(1 << 19)[i], 3 + i) << i;
    const ModelTime way = last * kLatency + (last - 1) * kSwitching;
    const ModelTime expected = kRows * (2 * way + on_wire(64) + on_wire(kRow));
    EXPECT_GE(far - near + 20 * kPsPerNs * kRows, expected);
    EXPECT_LE(far - near, expected + 20 * kPsPerNs * kRows);
}

// All cards count into one, twice with the same times.
TEST_P(LinkKernels, AllCountInOneCardsWords) {
    std::vector<ModelTime> times;
    for (int play = 0; play < 2; ++play) {
        std::uint64_t* counters = kernels[0]->data(65536);
        counters[0] = counters[1] = 0;
        counters[2] = 20;
        ModelTime now = 0;
        for (auto& card : net.cards)
            now = std::max(now, card->events.now());
        for (auto& card : net.cards)
            card->events.advance_to(now);
        for (auto& each : kernels)
            each->start_at(kAtomics, kOther + 65536, 4);
        net.run();
        for (auto& each : kernels) {
            each->expect_end(ORR_DONE_OK);
            if (play == 0)
                times.push_back(each->took());
            else
                EXPECT_EQ(each->took(), times[each->card.node - 1]);
        }
        EXPECT_EQ(counters[0], 20u * 4 * GetParam());
        EXPECT_EQ(counters[1], 20u * 4 * GetParam());
    }
    EXPECT_EQ(net.sum(ORR_CTR_LINK_STRAGGLERS) + net.sum(ORR_CTR_LINK_DENIED), 0u);
}

// Each atomic is done once, wherever those that do them are taken off their cores.
TEST_P(LinkKernels, TheyCountWhileTheyTakeTurns) {
    std::uint64_t* counters = kernels[0]->data(65536);
    counters[2] = 20;
    unsigned turns = 0;
    for (auto& each : kernels)
        each->start_at(kAtomics, kOther + 65536, 4);
    for (bool more = true; more;) {
        ASSERT_LT(++turns, 10'000u) << "it gets nowhere";
        ModelTime now = 0;
        for (auto& card : net.cards)
            now = std::max(now, card->events.now());
        net.run(now + 8 * GetParam() * kLatency + turns % 37 * kLatency / 10);
        more = false;
        for (auto& each : kernels) {
            if (!each->done.empty()) continue;
            if (each->take_turns(turns % 5 * kLatency)) more = true;
        }
    }
    for (auto& each : kernels)
        each->expect_end(ORR_DONE_OK);
    EXPECT_GT(turns, 10u);
    EXPECT_EQ(counters[0], 20u * 4 * GetParam());
    EXPECT_EQ(counters[1], 20u * 4 * GetParam());
}

INSTANTIATE_TEST_SUITE_P(Chains, LinkKernels, testing::Values(2u, 4u));

// The answers of the nearer card come first, by a port of their own.
TEST_F(FourCardsKernels, TwoPortsAtOnce) {
    constexpr std::uint64_t kPages = 16, kWords = kPages * ORR_PAGE_SIZE / 8;
    Kernels& second = *kernels[1];
    second.map_in_turns(4, 1, kPages * ORR_PAGE_SIZE);
    std::vector<std::uint64_t> expected(kWords);
    for (std::uint64_t i = 0; i < kWords; ++i) {
        const unsigned card = i * 8 / ORR_PAGE_SIZE % 2 == 0 ? 3 : 0;
        expected[i] = kernels[card]->data()[i] = i + 1000 * (card + 1);
    }
    CopyEngine engine(9, {}, second.context());
    orr_desc_copy copy{};
    copy.op = ORR_DESC_COPY;
    copy.asid = 1;
    copy.src = kOther + 7 * kBytes;
    copy.dst = kLocal + (1 << 20);
    copy.row_bytes = kPages * ORR_PAGE_SIZE;
    copy.rows = 1;
    ASSERT_TRUE(engine.start(std::bit_cast<DescriptorWords>(copy), 1));
    net.run();
    second.expect_end(ORR_DONE_OK);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), second.data(1 << 20)));
    // A page of each row, so that a load wants both.
    std::fill_n(second.data(1 << 20), kWords, 0);
    std::fill_n(second.data(1 << 19), kWords, 0);
    second.start(kTriad, {kLocal + (1 << 20), kOther + 7 * kBytes + 8, kLocal + (1 << 19), kWords - 1}, 1);
    net.run();
    second.expect_end(ORR_DONE_OK);
    EXPECT_TRUE(std::equal(expected.begin() + 1, expected.end(), second.data(1 << 20)));
}

// Card 1 passes on what others send each other, and executes nothing itself.
TEST_F(ThreeCardsKernels, AnOwnerThatDoesNotAnswerLeavesTagsForOthers) {
    net[1].stuck = true;
    ASSERT_EQ(net[0].ports[1]->signal(2, 1 << 16, 1), ORR_FAULT_NONE);
    Kernels& first = *kernels[0];
    const auto until = [&] { return net[0].events.now() + 20'000 * kPsPerNs; };
    first.start(kGather, {kOther + kBytes, 4096, 1, 1000, 0xc3, 0}, 8);
    for (unsigned turn = 0; turn < 5; ++turn) {
        net.run(until());
        ASSERT_TRUE(first.done.empty());
        ASSERT_TRUE(first.take_turns(0));
    }
    EXPECT_TRUE(net[0].has_said("node 2 has not answered"));
    EXPECT_FALSE(net[0].has_said("node 3 has not answered"));
    ASSERT_TRUE(first.unit.port(0).preempt(Preempt::kNow, 4 << 20));
    net.run();
    ASSERT_EQ(first.done.at(0).status, ORR_DONE_PREEMPTED);
    std::iota(kernels[2]->data(4096), kernels[2]->data(4096) + 100, 3);
    first.start(kSum, {kOther + 2 * kBytes + 4096, 100, kLocal + 4096}, 8);
    net.run(net[0].events.now() + 1'000'000 * kPsPerNs);
    first.expect_end(ORR_DONE_OK);
    EXPECT_EQ(std::accumulate(first.data(4096), first.data(4096) + 8, std::uint64_t{0}),
              100u * 3 + 99 * 100 / 2);
    // When it answers, all of them are free again.
    net[1].stuck = false;
    for (auto& port : net[1].ports)
        if (port) port->poke_room();
    net.run();
    first.start(kSum, {kOther + kBytes + 4096, 100, kLocal + 4096}, 8);
    net.run();
    first.expect_end(ORR_DONE_OK);
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DENIED), 0u);
}

// The word waits in its owner's inbox, whose core takes no signals. The flag is in the writer's own memory,
// where the owner looks for it: answers do not wait for requests.
TEST_F(TwoCardsKernels, WhatIsStoredBeforeAReleaseIsThere) {
    const auto seen = [&](unsigned how, bool preempt) {
        kernels[1]->data(4096)[0] = kernels[0]->data(4096)[0] = kernels[1]->data(8192)[0] = 0;
        net[1].stuck = true;
        EXPECT_EQ(net[0].ports[1]->signal(2, 1 << 16, ++signals_), ORR_FAULT_NONE);
        kernels[1]->start(kMailbox, {kOther + 4096, kLocal + 4096, kLocal + 8192}, 1);
        kernels[0]->start(kPublish, {kOther + kBytes + 4096, kLocal + 4096, 77, how}, 1);
        const auto run_on = [&] {
            ModelTime now = 0;
            for (auto& card : net.cards)
                now = std::max(now, card->events.now());
            net.run(now + 50'000 * kPsPerNs);
        };
        run_on();
        EXPECT_EQ(kernels[0]->done.empty(), how != 0);
        if (preempt) EXPECT_TRUE(kernels[0]->take_turns(0));
        run_on();
        net[1].stuck = false;
        for (auto& port : net[1].ports)
            if (port) port->poke_room();
        net.run();
        kernels[0]->expect_end(ORR_DONE_OK);
        kernels[1]->expect_end(ORR_DONE_OK);
        return kernels[1]->data(8192)[0];
    };
    EXPECT_EQ(seen(0, false), 0u) << "the word should be late";
    EXPECT_EQ(seen(1, false), 77u);
    EXPECT_EQ(seen(2, false), 77u);
    EXPECT_EQ(seen(3, false), 77u);
    EXPECT_EQ(seen(1, true), 77u);
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DENIED), 0u);
}

// A release behind stores takes the ways there and back; one behind none, or behind an answer, takes nothing.
TEST_F(TwoCardsKernels, WhatAReleaseTakes) {
    // Who may only write may release, too.
    allow(ORR_LINK_RIGHT_WRITE);
    const auto took = [&](std::uint64_t word, unsigned how) {
        kernels[0]->start(kPublish, {word, kLocal + 8192, 77, how}, 1);
        net.run();
        kernels[0]->expect_end(ORR_DONE_OK);
        return kernels[0]->took();
    };
    const std::uint64_t far = kOther + kBytes + 4096, near = kLocal + 4096;
    const ModelTime cycle = kPsPerSecond / kHz;
    const ModelTime there = took(far, 0) - took(near, 0), released = took(far, 1) - took(near, 1);
    // The fence is come to twice.
    EXPECT_EQ(released - there, 2 * (kLatency + on_wire(64)) + cycle);
    EXPECT_EQ(took(far, 3) - took(near, 3), released);
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DENIED), 0u);
}

// However many cores have much to ask for.
TEST_F(TwoCardsKernels, CopiesFindTagsBesideManyCores) {
    kernels[0] = std::make_unique<Kernels>(net[0], 2, 0, 64);
    Kernels& first = *kernels[0];
    CopyEngine engine(9, {}, first.context());
    orr_desc_copy copy{};
    copy.op = ORR_DESC_COPY;
    copy.asid = 1;
    copy.src = kOther + kBytes;
    copy.dst = kLocal + (1 << 20);
    copy.row_bytes = 1 << 19;
    copy.rows = 1;
    const auto took = [&] {
        first.done.clear();
        EXPECT_TRUE(engine.start(std::bit_cast<DescriptorWords>(copy), 1));
        for (ModelTime until = net[0].events.now(); engine.busy(); until += 1000 * kPsPerNs)
            net.run(until);
        return first.took();
    };
    const ModelTime alone = took();
    first.start(kGather, {kOther + kBytes, 1024, 1, 100'000, 0xc3, 0}, 64);
    net.run(net[0].events.now() + 20'000 * kPsPerNs);
    EXPECT_LE(took(), 2 * alone);
    ASSERT_TRUE(first.unit.port(0).busy());
    first.unit.port(0).abort();
    net.run();
}

TEST_F(TwoCardsKernels, WhatTheOwnerRefusesEndsTheKernel) {
    const auto tries = [&](Kernel kernel, std::uint64_t rights, bool good) {
        allow(rights);
        kernels[1]->data(4096)[2] = 1;
        kernels[0]->start_at(kernel, kOther + kBytes + 4096, 1);
        net.run();
        kernels[0]->expect_end(good ? ORR_DONE_OK : ORR_DONE_FAULT, good ? 0 : ORR_FAULT_PEER_DENIED);
        if (good) return;
        EXPECT_EQ(kernels[0]->done[0].detail & ~std::uint64_t{63}, kOther + kBytes + 4096);
    };
    tries(kLoad, ORR_LINK_RIGHT_READ, true);
    tries(kLoad, ORR_LINK_RIGHT_WRITE | ORR_LINK_RIGHT_ATOMIC, false);
    tries(kStore, ORR_LINK_RIGHT_WRITE, true);
    tries(kStore, ORR_LINK_RIGHT_READ, false);
    tries(kAtomics, ORR_LINK_RIGHT_READ | ORR_LINK_RIGHT_ATOMIC, true);
    tries(kAtomics, ORR_LINK_RIGHT_READ | ORR_LINK_RIGHT_WRITE, false);
}

// Rows are asked for ahead.
TEST_F(TwoCardsKernels, EightCoresFillTheLink) {
    constexpr std::uint64_t kGroups = 8, kWords = 1 << 13, kAll = kGroups * kWords * 8;
    kernels[0] = std::make_unique<Kernels>(net[0], 2, 512);
    Kernels& first = *kernels[0];
    std::iota(kernels[1]->data(1 << 20), kernels[1]->data(1 << 20) + kAll / 8, 7);
    first.start(kTriad, {kLocal + (1 << 20), kOther + kBytes + (1 << 20), kLocal + (1 << 19), kWords},
                kGroups);
    net.run();
    first.expect_end(ORR_DONE_OK);
    for (std::uint64_t i = 0; i < kAll / 8; ++i)
        ASSERT_EQ(first.data(1 << 20)[i], 7 + i) << i;
    EXPECT_LE(first.took(), on_wire(kAll) * 3 / 2) << "with its begin, and what nobody came to at its end";
}

// A grant that is cleared while requests are on their way.
TEST_F(TwoCardsKernels, ARevokedGrantEndsTheKernelThatReads) {
    kernels[0]->start(kSum, {kOther + kBytes, 1000, kLocal + 4096}, 8);
    net.run(net[0].events.now() + 20'000 * kPsPerNs);
    ASSERT_TRUE(kernels[0]->done.empty());
    ASSERT_TRUE(net[1].ports[0]->clear_grant(0));
    net.run();
    kernels[0]->expect_end(ORR_DONE_FAULT, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(kernels[0]->done[0].detail / kBytes, kOther / kBytes + 1);
    // Nobody else notices.
    kernels[1]->start(kSum, {kLocal, 1000, kLocal + 4096}, 8);
    kernels[0]->start(kSum, {kLocal, 1000, kLocal + 4096}, 8);
    net.run();
    kernels[0]->expect_end(ORR_DONE_OK);
    kernels[1]->expect_end(ORR_DONE_OK);
}

// What a peer that lies makes of a kernel's requests.
class LiarsKernels : public testing::Test {
  protected:
    void SetUp() override {
        card.route(2, 1);
        for (unsigned i = 0; i < 1000 && !card.ports[1]->up(); ++i) {
            card.ports[1]->service();
            peer.take(2);
            ::usleep(1000);
        }
        ASSERT_TRUE(card.ports[1]->up());
        peer.inbox->grants_end = 1;
        link::publish_grant(*peer.inbox.operator->(), 0,
                            {.base = 0, .size = 8 << 20, .node = 1, .rights = ORR_LINK_RIGHTS});
        std::atomic_ref(peer.inbox->grants_version).store(1);
    }
    void start() {
        kernels.start(kSum, {kOther + kBytes + 4096, 1, kLocal + 4096}, 1);
        run();
        ASSERT_TRUE(kernels.done.empty());
        last = peer.inbox->near.ring[(peer.inbox->near.produced - 1) % link::kRingEntries].tag;
        ASSERT_NE(last, 0u);
    }
    void answer(std::uint32_t tag, std::uint32_t bytes, std::uint64_t word) {
        link::Message message = peer.good();
        message.op = link::kOpAnswer;
        message.source = 2;
        message.destination = 1;
        message.offset = 0;
        message.bytes = bytes;
        message.index = next;
        message.tag = tag;
        message.payload_at = static_cast<std::uint32_t>(payload);
        for (unsigned at = 0; at + 8 <= bytes; at += 8)
            std::memcpy(peer.outbox->near_back.payload + payload + at, &word, 8);
        message.payload_end = payload += (bytes + 63) / 64 * 64;
        std::memcpy(&peer.outbox->near_back.ring[next], &message, sizeof message);
        std::atomic_ref(peer.outbox->near_back.produced).store(++next, std::memory_order_release);
        run();
    }
    void run() {
        while (card.ports[1]->poll() || card.events.run_next(kNever - 1)) {
        }
    }
    TempFolder folder;
    NetCard card{1};
    bool added = (card.add(1, true, folder.file("link")), true);
    RawPeer peer{folder.file("link")};
    Kernels kernels{card, 2};
    std::uint32_t last = 0;
    std::uint64_t next = 0, payload = 0;
};

TEST_F(LiarsKernels, NothingButTheAnswerCounts) {
    start();
    answer(last, 8, 7);
    kernels.expect_end(ORR_DONE_FAULT, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(kernels.done[0].detail, kOther + kBytes + 4096) << "it was too short";
    start();
    const std::uint32_t first = last;
    answer(first, 64, 7);
    kernels.expect_end(ORR_DONE_OK);
    EXPECT_EQ(kernels.data(4096)[0], 7u);
    start();
    answer(first, 64, 8);
    answer(last + 1, 64, 8);
    ASSERT_TRUE(kernels.done.empty()) << "twice, and what was not asked";
    const std::uint32_t second = last;
    kernels.unit.port(0).abort();
    run();
    EXPECT_EQ(kernels.done.at(0).status, ORR_DONE_ABORTED);
    // The same core asks for the same, and the answer to the old launch comes late.
    start();
    answer(second, 64, 8);
    ASSERT_TRUE(kernels.done.empty());
    answer(last, 64, 9);
    kernels.expect_end(ORR_DONE_OK);
    EXPECT_EQ(kernels.data(4096)[0], 9u);
    EXPECT_TRUE(card.ports[1]->up());
}

TEST_F(TwoCardsKernels, ALinkThatGoesEndsTheKernel) {
    for (const Kernel kernel : {kSum, kAtomics, kTriad}) {
        ASSERT_TRUE(net.up());
        kernels[1]->data(4096)[2] = 1'000'000;
        if (kernel == kAtomics)
            kernels[0]->start_at(kernel, kOther + kBytes + 4096, 8);
        else if (kernel == kSum)
            kernels[0]->start(kernel, {kOther + kBytes, 100'000, kLocal + 4096}, 8);
        else
            kernels[0]->start(kernel, {kOther + kBytes, kLocal, kLocal, 16'000}, 8);
        net.run(net[0].events.now() + (kernel == kTriad ? 2'000 : 20'000) * kPsPerNs);
        ASSERT_TRUE(kernels[0]->done.empty());
        net[0].ports[1]->unplug();
        net.run();
        kernels[0]->expect_end(ORR_DONE_FAULT, ORR_FAULT_PEER_DOWN);
        kernels[0]->start(kSum, {kLocal, 1000, kLocal + 4096}, 8);
        net.run();
        kernels[0]->expect_end(ORR_DONE_OK);
        ASSERT_TRUE(net[0].ports[1]->plug());
    }
}

}  // namespace
}  // namespace orrery::emu::test
