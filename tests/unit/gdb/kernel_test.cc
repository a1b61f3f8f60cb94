// gdb's packets at the harts of a vector unit: threads, points, steps, traps, and time that stands still.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "emulator/api/checks.h"
#include "emulator/card/kernel_target.h"
#include "emulator/gdb/session.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

class KernelGdbTest : public VectorUnitTest {
  protected:
    KernelGdbTest() : target_(unit->debugger(), [](const std::string&) {}) {}

    // What a card does: events run while nobody holds them. No kernel here needs as many as this before it
    // ends or stops.
    void go() {
        constexpr unsigned kMost = 100'000;
        unsigned events = 0;
        while (!unit->debugger().stopped() && rig.events.run_next(kNever - 1)) {
            if (++events == kMost) throw std::runtime_error("the kernel goes on and on");
        }
    }
    void attach() { session_ = std::make_unique<gdb::Session>(target_); }
    std::string ask(std::string_view packet) {
        send(packet);
        return answer();
    }
    // Until it stops; "" if it never does.
    std::string resume(std::string_view packet) {
        send(packet);
        for (;;) {
            go();
            if (session_->poll()) break;
            if (!unit->debugger().stopped() && rig.events.empty()) return "";
        }
        const std::string got = answer();
        // As gdb does.
        return got.find("library:") != std::string::npos ? resume("vCont;c") : got;
    }
    void send(std::string_view packet) {
        const std::string text = gdb::frame(packet);
        session_->receive({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    }
    void interrupt() {
        session_->receive(std::array<std::uint8_t, 1>{3});
        ASSERT_TRUE(session_->poll());
        EXPECT_EQ(answer(), "T02thread:1;");
    }
    std::string answer() {
        gdb::PacketReader reader;
        std::string got;
        for (const char c : session_->output()) {
            if (reader.put(static_cast<std::uint8_t>(c)) == gdb::PacketReader::Event::kPacket)
                got = reader.packet();
        }
        session_->output().clear();
        return got;
    }
    std::uint64_t reg(unsigned number) {
        const auto bytes = gdb::from_hex(ask(fmt::format("p{:x}", number)));
        std::uint64_t value = 0;
        if (bytes && bytes->size() <= sizeof value) std::memcpy(&value, bytes->data(), bytes->size());
        return value;
    }
    void start(Kernel kernel, std::uint64_t args, std::uint32_t groups, std::uint16_t items) {
        ASSERT_TRUE(unit->port(0).start(Rig::words_of(desc(kernel, args, groups, items)), 5));
    }

    static constexpr unsigned kPc = 32, kA0 = 10;
    KernelTarget target_;
    std::unique_ptr<gdb::Session> session_;
};

TEST_F(KernelGdbTest, WithoutAKernelThereIsOneIdleThread) {
    attach();
    EXPECT_NE(ask("qSupported").find("qXfer:libraries:read+"), std::string::npos);
    EXPECT_EQ(ask("?"), "T05thread:1;");
    EXPECT_EQ(ask("qfThreadInfo"), "m1");
    EXPECT_EQ(ask("qsThreadInfo"), "l");
    EXPECT_EQ(ask("T9"), "E02");
    EXPECT_EQ(*gdb::from_hex(ask("qThreadExtraInfo,1")), "core 0, idle: no kernel runs");
    EXPECT_EQ(ask("m40000000,8"), "E02");
    EXPECT_EQ(ask("P20=0000000000000000"), "E03");
    EXPECT_EQ(resume("vCont;s:1"), "T05thread:1;");
}

// All groups' cores come to it, one after another, none is passed while another one steps over it, and what
// the kernel computes and how long it takes is as without a debugger.
TEST_F(KernelGdbTest, ABreakpointStopsEachHart) {
    constexpr std::uint32_t kGroups = 4;
    const Completion plain = run(desc(kMark, kData, kGroups, 1));
    std::memset(data(), 0, kGroups * sizeof(std::uint64_t));
    rig.done.clear();
    const ModelTime began = rig.events.now();
    attach();
    ASSERT_EQ(ask(fmt::format("Z0,{:x},4", entry(kMark))), "OK");
    start(kMark, kData, kGroups, 1);
    for (std::uint32_t group = 0; group < kGroups; ++group) {
        const std::string stop = resume("vCont;c");
        ASSERT_EQ(stop, fmt::format("T05thread:{:x};", group + 1));
        EXPECT_EQ(reg(kPc), entry(kMark));
        EXPECT_EQ(reg(kA0), kData);
        EXPECT_EQ(reg(65 + ORR_CSR_GROUP_X), group);
        EXPECT_EQ(*gdb::from_hex(ask(fmt::format("qThreadExtraInfo,{:x}", group + 1))),
                  fmt::format("core {}, group ({},0,0) item (0,0,0)", group, group));
        // Over the breakpoint, as gdb goes over it.
        ASSERT_EQ(ask(fmt::format("z0,{:x},4", entry(kMark))), "OK");
        ASSERT_EQ(resume(fmt::format("vCont;s:{:x}", group + 1)), stop);
        EXPECT_NE(reg(kPc), entry(kMark));
        ASSERT_EQ(ask(fmt::format("Z0,{:x},4", entry(kMark))), "OK");
        EXPECT_TRUE(rig.done.empty());
    }
    EXPECT_EQ(resume("vCont;c"), "");
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    EXPECT_EQ(rig.done[0].end_ps - began, plain.end_ps - plain.start_ps);
    for (std::uint32_t group = 0; group < kGroups; ++group)
        EXPECT_EQ(data()[group], 1u);
}

TEST_F(KernelGdbTest, ItemsOfAGroupComeOneAfterAnotherOnOneThread) {
    attach();
    ASSERT_EQ(ask(fmt::format("Z0,{:x},4", entry(kMark))), "OK");
    start(kMark, kData, 1, 3);
    for (std::uint64_t item = 0; item < 3; ++item) {
        ASSERT_EQ(resume("vCont;c"), "T05thread:1;");
        EXPECT_EQ(reg(65 + ORR_CSR_ITEM_X), item);
        EXPECT_EQ(reg(kPc), entry(kMark));
    }
    // Steps to the end of the last item, and no further.
    ASSERT_EQ(ask(fmt::format("z0,{:x},4", entry(kMark))), "OK");
    for (unsigned step = 0; step < 100 && reg(kPc) != ORR_KERNEL_EXIT; ++step)
        ASSERT_EQ(resume("vCont;s:1"), "T05thread:1;");
    EXPECT_EQ(reg(kPc), ORR_KERNEL_EXIT);
    EXPECT_EQ(resume("vCont;s:1"), "T05thread:1;");
    EXPECT_EQ(reg(kPc), ORR_KERNEL_EXIT);
    EXPECT_EQ(resume("vCont;c"), "");
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(data()[2], 1u);
}

// From an item's last instruction a step leads to the first of the next.
TEST_F(KernelGdbTest, StepsGoFromItemToItem) {
    attach();
    ASSERT_EQ(ask(fmt::format("Z0,{:x},4", entry(kMark))), "OK");
    start(kMark, kData, 1, 2);
    ASSERT_EQ(resume("vCont;c"), "T05thread:1;");
    std::uint64_t before = 0;
    for (unsigned step = 0; step < 100 && reg(65 + ORR_CSR_ITEM_X) == 0; ++step) {
        before = reg(kPc);
        ASSERT_EQ(resume("vCont;s:1"), "T05thread:1;");
    }
    EXPECT_EQ(before, ORR_KERNEL_EXIT);
    EXPECT_EQ(reg(kPc), entry(kMark));
    EXPECT_EQ(reg(kA0), kData);
}

TEST_F(KernelGdbTest, ATrapStopsBeforeItIsReported) {
    attach();
    start(kIllegal, 0, 1, 1);
    ASSERT_EQ(resume("vCont;c"), "T04thread:1;");
    EXPECT_EQ(reg(kPc), entry(kIllegal));
    EXPECT_TRUE(rig.done.empty());
    // A step does not end the kernel either.
    EXPECT_EQ(resume("vCont;s:1"), "T05thread:1;");
    EXPECT_TRUE(rig.done.empty());
    EXPECT_EQ(resume("vCont;C04:1"), "");
    ASSERT_EQ(rig.done.size(), 1u);
    expect_end(rig.done[0], ORR_DONE_TRAP, 2, entry(kIllegal));
    // The same once more: a trap takes no step, so the core is at the step where it was.
    interrupt();
    start(kIllegal, 0, 1, 1);
    ASSERT_EQ(resume("vCont;c"), "T04thread:1;");
    EXPECT_EQ(resume("vCont;C04:1"), "");
    EXPECT_EQ(rig.done.size(), 2u);
}

TEST_F(KernelGdbTest, WhatADebuggerMendsGoesOn) {
    attach();
    start(kLoad, 0x7777'0000, 1, 1);
    ASSERT_EQ(resume("vCont;c"), "T0bthread:1;");
    ASSERT_EQ(ask(fmt::format("P{:x}=0000000010000000", kA0)), "OK");  // kData
    EXPECT_EQ(reg(kA0), kData);
    EXPECT_EQ(resume("vCont;c"), "");
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
}

TEST_F(KernelGdbTest, AWatchpointSeesMemoryOfTheCardAndOfTheCore) {
    attach();
    ASSERT_EQ(ask(fmt::format("Z0,{:x},4", entry(kMark))), "OK");
    start(kMark, kData, 1, 2);
    ASSERT_EQ(resume("vCont;c"), "T05thread:1;");
    ASSERT_EQ(ask(fmt::format("z0,{:x},4", entry(kMark))), "OK");
    ASSERT_EQ(ask(fmt::format("Z2,{:x},8", kData + 8)), "OK");
    EXPECT_EQ(resume("vCont;c"), fmt::format("T05watch:{:x};thread:1;", kData + 8));
    EXPECT_EQ(data()[1], 1u);
    EXPECT_EQ(reg(65 + ORR_CSR_ITEM_X), 1u);
    ASSERT_EQ(ask(fmt::format("z2,{:x},8", kData + 8)), "OK");
    EXPECT_EQ(resume("vCont;c"), "");
    interrupt();

    ASSERT_EQ(ask(fmt::format("Z0,{:x},4", entry(kLocal))), "OK");
    auto local = desc(kLocal, kData, 2, 2);
    local.local_bytes = 4096;
    ASSERT_TRUE(unit->port(0).start(Rig::words_of(local), 6));
    ASSERT_EQ(resume("vCont;c"), "T05thread:1;");
    ASSERT_EQ(ask(fmt::format("z0,{:x},4", entry(kLocal))), "OK");
    // Work-group memory is the core's own: the other group is not seen.
    ASSERT_EQ(ask(fmt::format("Z2,{:x},8", ORR_LOCAL_BASE + 8)), "OK");
    EXPECT_EQ(resume("vCont;c"), fmt::format("T05watch:{:x};thread:1;", ORR_LOCAL_BASE + 8));
    EXPECT_EQ(resume("vCont;c"), "");
    EXPECT_EQ(data()[0], 3u);
    EXPECT_EQ(data()[1], 3u);
}

TEST_F(KernelGdbTest, MemoryIsThatOfTheHart) {
    attach();
    ASSERT_EQ(ask(fmt::format("Z0,{:x},4", entry(kMark))), "OK");
    data()[0] = 0x1122334455667788;
    start(kMark, kData, 1, 1);
    ASSERT_EQ(resume("vCont;c"), "T05thread:1;");
    const std::uint64_t misses = rig.counters.get(ORR_CTR_MMU_TLB_MISSES);
    EXPECT_EQ(ask(fmt::format("m{:x},8", kData)), "8877665544332211");
    EXPECT_EQ(ask(fmt::format("m{:x},8", kData + kDataBytes)), "E02");
    EXPECT_EQ(ask(fmt::format("M{:x},2:0000", kData)), "OK");
    EXPECT_EQ(data()[0], 0x1122334455660000u);
    EXPECT_EQ(ask(fmt::format("M{:x},2:0000", entry(kMark))), "E02") << "code cannot be written";
    EXPECT_EQ(ask(fmt::format("m{:x},8", ORR_STACK_TOP - 8)).size(), 16u);
    EXPECT_EQ(rig.counters.get(ORR_CTR_MMU_TLB_MISSES), misses);
    EXPECT_EQ(rig.counters.get(ORR_CTR_MMU_FAULTS), 0u);
}

TEST_F(KernelGdbTest, CtrlCStopsAKernelThatLoops) {
    attach();
    start(kLoop, 0, 1, 1);
    send("vCont;c");
    go();
    session_->poll();  // a launch without a module
    answer();
    for (unsigned event = 0; event < 20; ++event)
        ASSERT_TRUE(rig.events.run_next(kNever - 1));
    interrupt();
    EXPECT_EQ(reg(kPc), entry(kLoop));
    EXPECT_EQ(ask("D"), "OK");
    EXPECT_FALSE(unit->debugger().stopped());
    unit->port(0).abort();
    go();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED);
}

// Whoever attaches to a kernel that hangs looks at it step by step: nothing else goes on.
TEST_F(KernelGdbTest, AStepOfALaunchThatWasThereBeforeIsOneStep) {
    start(kMark, kData, 1, 1);
    while (!unit->debugger().place(0))
        ASSERT_TRUE(rig.events.run_next(kNever - 1));
    const ModelTime now = rig.events.now();
    attach();
    EXPECT_EQ(reg(kPc), entry(kMark));
    ASSERT_EQ(resume("vCont;s:1"), "T05thread:1;");
    EXPECT_GT(reg(kPc), entry(kMark));
    EXPECT_EQ(rig.events.now(), now);
    EXPECT_EQ(resume("vCont;c"), "");
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
}

TEST_F(KernelGdbTest, CtrlCIsNotLostWhileALaunchIsLookedAt) {
    attach();
    start(kLoop, 0, 1, 1);
    send("vCont;c");
    for (unsigned round = 0; round < 2; ++round) {
        go();
        ASSERT_EQ(unit->debugger().stop().kind, KernelStop::Kind::kLaunch);
        ASSERT_NO_FATAL_FAILURE(interrupt());
        send("vCont;c");
    }
    EXPECT_EQ(ask("k"), "");
    unit->reset();
}

TEST_F(KernelGdbTest, OldLaunchesAreForgotten) {
    attach();
    send("vCont;c");
    for (unsigned launch = 0; launch < 200; ++launch) {
        start(kMark, kData, 2, 1);
        do {
            go();
            session_->poll();
        } while (unit->debugger().stopped() || !rig.events.empty());
    }
    EXPECT_EQ(rig.done.size(), 200u);
    EXPECT_LE(unit->debugger().known_launches(), 4 * unit->debugger().cores());
}

TEST_F(KernelGdbTest, ItemsThatAreSteppedReadTheTimeAsOthersDo) {
    constexpr std::uint16_t kItems = 6;
    const auto times = [&] {
        std::vector<std::uint64_t> out;
        for (unsigned item = 1; item < kItems; ++item)
            out.push_back(data()[4 * item] - data()[0]);
        return out;
    };
    ASSERT_EQ(run(desc(kClock, kData, 1, kItems)).status, ORR_DONE_OK);
    const auto plain = times();
    std::memset(data(), 0, 4 * kItems * sizeof(std::uint64_t));
    attach();
    ASSERT_EQ(ask(fmt::format("Z0,{:x},4", entry(kClock))), "OK");
    start(kClock, kData, 1, kItems);
    ASSERT_EQ(resume("vCont;c"), "T05thread:1;");
    ASSERT_EQ(ask(fmt::format("z0,{:x},4", entry(kClock))), "OK");
    for (unsigned step = 0; step < 1000 && reg(65 + ORR_CSR_ITEM_X) < kItems - 2; ++step)
        ASSERT_EQ(resume("vCont;s:1"), "T05thread:1;");
    EXPECT_EQ(resume("vCont;c"), "");
    const auto stepped = times();
    // Of whole ns: the launch began at another part of one.
    for (unsigned i = 0; i < plain.size(); ++i)
        EXPECT_LE(std::max(plain[i], stepped[i]) - std::min(plain[i], stepped[i]), 1u) << "item " << i + 1;
}

TEST_F(KernelGdbTest, StepsTakeTheirTimeAlsoIfTheGroupIsSaved) {
    start(kLoop, 0, 1, 1);
    for (unsigned event = 0; event < 20; ++event)
        ASSERT_TRUE(rig.events.run_next(kNever - 1));
    const std::uint64_t instructions = rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS);
    // With the quantum whose time has still to pass.
    const std::uint64_t began = rig.events.now();
    const std::uint64_t quantum = rig.events.next_time() - began;
    const std::uint64_t busy = rig.counters.get(ORR_CTR_VECTOR_BUSY_PS) + unit->busy_now() + quantum;
    attach();
    for (unsigned step = 0; step < 60; ++step)
        ASSERT_EQ(resume("vCont;s:1"), "T05thread:1;");
    ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, 32 << 20));
    EXPECT_EQ(resume("vCont;c"), "");
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS), instructions + 60);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_BUSY_PS), busy + 60 * kPsPerSecond / config().hz);
}

TEST_F(KernelGdbTest, ADebuggerThatGoesLeavesNothing) {
    attach();
    ASSERT_EQ(ask(fmt::format("Z0,{:x},4", entry(kMark))), "OK");
    start(kMark, kData, 4, 2);
    ASSERT_EQ(resume("vCont;c"), "T05thread:1;");
    session_.reset();  // its connection is closed
    go();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
}

// A watched page is served behind the check's back.
TEST_F(KernelGdbTest, ACardThatChecksHasNoWatchpoints) {
    VectorConfig with = config();
    with.check = kCheckMemory;
    VectorUnit checked(with, rig.context);
    std::string log;
    KernelTarget target(checked.debugger(), [&](const std::string& text) { log = text; });
    target.attach();
    ASSERT_TRUE(checked.port(0).start(Rig::words_of(desc(kLoop, 0, 1, 1)), 5));
    target.resume(gdb::Resume::kContinue);
    while (!checked.debugger().stopped() && rig.events.run_next(kNever - 1)) {
    }
    ASSERT_TRUE(checked.debugger().place(0));
    EXPECT_FALSE(target.insert_watchpoint(kData, 8, gdb::Watch::kWrite));
    EXPECT_NE(log.find("--check"), std::string::npos);
    EXPECT_TRUE(target.insert_breakpoint(entry(kLoop)));
    checked.reset();
}

class VectorGdbTest : public KernelGdbTest {
  protected:
    VectorGdbTest()
        : vectors_(wide(), rig.context), vector_target_(vectors_.debugger(), [](const std::string&) {}) {}
    static VectorConfig wide() {
        VectorConfig config;
        config.first_port = 2;
        config.vlen = 2048;
        return config;
    }
    VectorUnit vectors_;
    KernelTarget vector_target_;
};

TEST_F(VectorGdbTest, VectorRegistersAreAsWideAsTheCardsAre) {
    EXPECT_NE(vector_target_.description().find(R"(name="v31" bitsize="2048")"), std::string::npos);
    EXPECT_EQ(target_.description().find("riscv.vector"), std::string::npos);
    vector_target_.attach();
    ASSERT_TRUE(vectors_.port(0).start(Rig::words_of(desc(kLoop, 0, 1, 1)), 5));
    vector_target_.resume(gdb::Resume::kContinue);
    while (!vectors_.debugger().stopped() && rig.events.run_next(kNever - 1)) {
    }
    std::vector<std::uint8_t> wide(256);
    for (unsigned i = 0; i < wide.size(); ++i)
        wide[i] = static_cast<std::uint8_t>(i + 1);
    constexpr unsigned kV31 = 4162 + 31, kVl = 65 + 0xc20, kVlenb = 65 + 0xc22;
    EXPECT_EQ(vector_target_.write_register(kV31, wide), gdb::Written::kDone);
    EXPECT_EQ(vector_target_.read_register(kV31), wide);
    EXPECT_EQ(vector_target_.read_register(kVlenb), (std::vector<std::uint8_t>{0, 1, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(vector_target_.write_register(kVlenb, std::vector<std::uint8_t>(8)), gdb::Written::kNotAllowed);
    EXPECT_EQ(vector_target_.read_register(kVl).size(), 8u);
    EXPECT_EQ(vector_target_.write_register(kV31, std::vector<std::uint8_t>(8)), gdb::Written::kWrongSize);
    EXPECT_TRUE(vector_target_.read_register(9999).empty());
    vectors_.reset();
}

}  // namespace
}  // namespace orrery::emu::test
