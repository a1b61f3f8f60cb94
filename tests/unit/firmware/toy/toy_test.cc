// The firmware with kinds of engines of the test's own (kinds.h): a third kind is a row in its tables.
#include <orrery/fw/trace.h>

#include <algorithm>

#include "tests/unit/firmware/bench.h"

namespace orrery::fw::test {
namespace {

constexpr std::uint32_t kFirstToy = 4;  // behind two copy engines and two vector ports
constexpr std::uint32_t kFixed = 6;

FakeSoc::Config with_toys() {
    FakeSoc::Config config;
    config.more_ports = {ORR_ENGINE_TOY, ORR_ENGINE_TOY, ORR_ENGINE_FIXED};
    return config;
}

orr_packet toy(std::uint64_t work, std::uint16_t flags = 0) {
    orr_packet p = packet(ORR_PKT_MATRIX, flags);
    p.word[0] = work;
    p.word[6] = ~work;  // all words of a packet reach the engine
    return p;
}
orr_packet fixed(std::uint64_t work) {
    orr_packet p = packet(ORR_PKT_INDIRECT);
    p.word[0] = work;
    return p;
}

class ToyTest : public testing::Test {
  protected:
    void SetUp() override {
        bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_areas), std::uint64_t{8} << 32);
        bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_base), 0x900000);
        ASSERT_TRUE(bench.boot());
        bench.create_context(1, 0);
        for (std::uint32_t n = 0; n < 4; ++n)
            queues.push_back(bench.create_queue(n, 1));
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
    }
    bool busy(std::uint32_t port) const { return bench.soc.engines[port].busy; }
    std::uint64_t completed(std::uint32_t queue) const { return bench.status(queue).completed; }
    void finish(std::uint32_t port) {
        bench.soc.finish(port);
        bench.run();
    }
    // Words behind the headers of all records of a type about this queue.
    std::vector<std::uint64_t> told(std::uint32_t type, std::uint32_t queue) const {
        std::vector<std::uint64_t> b;
        const auto& words = bench.soc.trace_words;
        for (std::size_t n = 0; n < words.size(); n += 1 + ORR_TRACE_WORDS(words[n])) {
            if (ORR_TRACE_TYPE(words[n]) == type && ORR_TRACE_A(words[n]) == queue)
                b.push_back(ORR_TRACE_B(words[n]));
        }
        return b;
    }

    Bench bench{with_toys()};
    std::vector<ProcessQueue> queues;
};

TEST_F(ToyTest, ItsPacketsRunOnItsPortsBesideTheOthers) {
    bench.submit(queues[0], {toy(77), copy(0x1000), dispatch(0x2000), fixed(5), signal(kSharedVa, 1)});
    ASSERT_TRUE(busy(kFirstToy));
    EXPECT_TRUE(busy(0));
    EXPECT_TRUE(busy(2));
    EXPECT_TRUE(busy(kFixed));
    const auto& desc = bench.soc.engines[kFirstToy].desc;
    EXPECT_EQ(desc[0], ORR_PKT_MATRIX | std::uint64_t{1} << 32)
        << "its opcode, and the queue's address space";
    EXPECT_EQ(desc[1], 77u);
    EXPECT_EQ(desc[7], ~std::uint64_t{77});
    EXPECT_EQ(completed(0), 0u);
    for (const std::uint32_t port : {0u, 2u, kFirstToy, kFixed})
        finish(port);
    EXPECT_EQ(completed(0), 5u);
    EXPECT_EQ(bench.shared(0), 1u);
}

TEST_F(ToyTest, WhatDoesNotMakeSenseStopsItsQueue) {
    bench.submit(queues[0], {toy(0)});
    expect_error(bench, queues[0], ORR_QERR_BAD_PACKET, 0, 0, 1);
    bench.submit(queues[1], {toy(1, ORR_PKT_F_RESIDENT)});
    expect_error(bench, queues[1], ORR_QERR_BAD_PACKET, 0, 0, 0);
}

TEST_F(ToyTest, WhoFindsNoPortWaitsForOneOfThisKind) {
    for (auto& queue : queues)
        bench.submit(queue, {toy(9)});
    EXPECT_TRUE(busy(kFirstToy) && busy(kFirstToy + 1));
    EXPECT_FALSE(busy(0) || busy(2) || busy(kFixed));
    EXPECT_EQ(told(ORR_TRACE_STATE, 2).back(), TOY_WAITING);
    finish(kFirstToy + 1);
    EXPECT_TRUE(busy(kFirstToy + 1));
    finish(kFirstToy);
    finish(kFirstToy + 1);
    finish(kFirstToy);
    for (std::uint32_t n = 0; n < 4; ++n)
        EXPECT_EQ(completed(n), 1u) << n;
    const auto decisions = told(ORR_TRACE_DECISION, 3);
    EXPECT_TRUE(
        std::ranges::any_of(decisions, [](std::uint64_t b) { return (b >> 8 & 0xff) == TOY_RESOURCE; }));
}

TEST_F(ToyTest, AHigherClassPreemptsItAndItGoesOn) {
    bench.submit(queues[0], {toy(1)});
    bench.submit(queues[1], {toy(2)});
    bench.call(ORR_MBOX_QUEUE_SET, {2, ORR_PRIORITY_HIGH, ORR_WEIGHT_DEFAULT, 0});
    bench.submit(queues[2], {toy(3)});
    const auto runs = [&](std::uint64_t work) {
        return std::ranges::any_of(bench.soc.engines, [&](const FakeSoc::Engine& engine) {
            return engine.busy && engine.kind == ORR_ENGINE_TOY && engine.desc[1] == work;
        });
    };
    EXPECT_TRUE(runs(3)) << "it took the place of another";
    EXPECT_EQ(bench.soc.saved.size(), 1u);
    for (int n = 0; n < 3; ++n)
        for (const std::uint32_t port : bench.soc.busy_ports())
            finish(port);
    for (std::uint32_t n = 0; n < 3; ++n)
        EXPECT_EQ(completed(n), 1u) << n;
}

TEST_F(ToyTest, AKindThatCannotBePreemptedIsNot) {
    bench.submit(queues[0], {fixed(1)});
    bench.call(ORR_MBOX_QUEUE_SET, {1, ORR_PRIORITY_REALTIME, ORR_WEIGHT_DEFAULT, 0});
    bench.submit(queues[1], {fixed(2)});
    EXPECT_EQ(bench.soc.engines[kFixed].preempt, 0u);
    EXPECT_EQ(bench.soc.engines[kFixed].desc[1], 1u);
    finish(kFixed);
    EXPECT_EQ(bench.soc.engines[kFixed].desc[1], 2u);
    finish(kFixed);
    EXPECT_EQ(completed(1), 1u);
}

TEST_F(ToyTest, ItsLimitAndItsEndsAreTheQueues) {
    ProcessQueue hasty = bench.create_queue(5, 1, 16, 100);
    bench.submit(hasty, {toy(1)});
    ASSERT_NE(bench.soc.timer, kEmpty);
    bench.soc.time = bench.soc.timer;
    bench.run();
    expect_error(bench, hasty, ORR_QERR_TIMEOUT, 0, 0, 0);
    bench.submit(queues[0], {toy(2)});
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {0}).status, ORR_STATUS_OK);
    EXPECT_TRUE(bench.soc.busy_ports().empty());
}

TEST_F(ToyTest, ARestartOfTheCoreKeepsWhatRunsOnIt) {
    bench.submit(queues[0], {toy(1)});
    bench.submit(queues[1], {fixed(2)});
    ASSERT_TRUE(bench.restart());
    EXPECT_TRUE(busy(kFirstToy) && busy(kFixed));
    finish(kFirstToy);
    finish(kFixed);
    EXPECT_EQ(completed(0), 1u);
    EXPECT_EQ(completed(1), 1u);
}

}  // namespace
}  // namespace orrery::fw::test
