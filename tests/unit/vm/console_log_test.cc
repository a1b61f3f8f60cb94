#include "tools/vm/console_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/vm/files.h"

namespace orrery::vm {
namespace {

TEST(Classify, FindsTroubleBehindEveryKindOfStamp) {
    EXPECT_EQ(classify("[    3.14] WARNING: CPU: 1 PID: 9 at orr.c:3 f+0x1/0x2 [orrery]"), Trouble::kWarning);
    EXPECT_EQ(classify("[    3.14][   T12] WARNING: orr.c:3 at f, CPU#0: insmod/9"), Trouble::kWarning);
    EXPECT_EQ(classify("[    1.0] ------------[ cut here ]------------"), Trouble::kWarning);
    EXPECT_EQ(classify("BUG: kernel NULL pointer dereference, address: 0000000000000000"), Trouble::kFault);
    EXPECT_EQ(classify("[ 9.1] Oops: general protection fault, probably for non-canonical address"),
              Trouble::kFault);
    EXPECT_EQ(classify("[ 9.1] BUG: KASAN: slab-use-after-free in orr_open+0x10/0x20"), Trouble::kFault);
    EXPECT_EQ(classify("[ 9.1] WARNING: possible circular locking dependency detected"), Trouble::kFault);
    EXPECT_EQ(classify("[ 9.1] INFO: task insmod:99 blocked for more than 120 seconds."), Trouble::kFault);
    EXPECT_EQ(classify("[ 9.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"), Trouble::kFault);
    EXPECT_EQ(classify("[ 9.1] Kernel panic - not syncing: Fatal exception"), Trouble::kPanic);
}

// One line of each kind that the debug kernel's detectors print, as they print it.
TEST(Classify, KnowsEveryDetectorOfTheDebugKernel) {
    for (const char* line : {
             "BUG: KASAN: slab-out-of-bounds in orr_bo_get+0x10/0x20 [orrery]",
             "BUG kmalloc-64 (Tainted: G           O      ): Right Redzone overwritten",
             "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:585",
             "BUG: scheduling while atomic: insmod/9/0x00000002",
             "[ BUG: Invalid wait context ]",
             "WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected",
             "WARNING: possible recursive locking detected",
             "WARNING: possible irq lock inversion dependency detected",
             "WARNING: inconsistent lock state",
             "WARNING: held lock freed!",
             "WARNING: bad unlock balance detected!",
             "WARNING: lock held when returning to user space!",
             "WARNING: kmod_test/77 still has locks held!",
             "WARNING: suspicious RCU usage",
             "INFO: trying to register non-static key.",
             "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
             "kmemleak: Cannot allocate a kmemleak_object structure",
             "WARNING: CPU: 1 PID: 77 at kernel/dma/debug.c:1055 check_unmap+0x10/0x20",
             "WARNING: CPU: 1 PID: 77 at lib/debugobjects.c:514 debug_print_object+0x10/0x20",
             "ODEBUG: free active (active state 0) object: 00000000 object type: work_struct",
             "UBSAN: shift-out-of-bounds in orr_pt.c:12:3",
         }) {
        const auto found = classify(std::string("[   12.345678] ") + line);
        ASSERT_TRUE(found) << line;
        if (std::string_view(line).find("debugobjects") == std::string_view::npos)
            EXPECT_EQ(*found, Trouble::kFault) << line;
    }
}

TEST(Classify, LeavesOrdinaryLinesAlone) {
    EXPECT_FALSE(classify("[    0.2] DMA-API: preallocated 65536 debug entries"));
    EXPECT_FALSE(classify("[    0.2] DMA-API: debugging enabled by kernel config"));
    EXPECT_FALSE(
        classify("[    0.2] kmemleak: Kernel memory leak detector initialized (mem pool available: 1)"));
    EXPECT_FALSE(classify("[    0.2] FAULT_INJECTION: forcing a failure."));
    EXPECT_FALSE(classify("[    0.2] kmemleak: Cannot allocate a scan area, scanning the full object"));
    EXPECT_FALSE(classify("[    1.2] orrery: loading out-of-tree module taints kernel."));
    EXPECT_FALSE(classify("[    1.2] traps: prog[77] general protection fault ip:4011 sp:7ffc error:0"));
    EXPECT_FALSE(classify("[    1.2] prog[77]: segfault at 0 ip 401136 sp 7ffd error 4"));
    EXPECT_FALSE(classify(
        "[    1.2] clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable"));
    EXPECT_FALSE(classify(""));
    EXPECT_FALSE(classify("["));
}

class ConsoleLogTest : public testing::Test {
  protected:
    void SetUp() override {
        const int fd = ::mkstemp(name_);
        ASSERT_GE(fd, 0);
        log_.emplace(Fd(fd));
    }
    void TearDown() override { ::unlink(name_); }

    char name_[32] = "/tmp/console-log-test-XXXXXX";
    std::optional<ConsoleLog> log_;
};

TEST_F(ConsoleLogTest, KeepsAllLinesWithoutCarriageReturns) {
    log_->feed("one\r\ntw");
    log_->feed("o\r\nthree");
    log_->feed("\n");
    EXPECT_EQ(read_file(name_).value(), "one\ntwo\nthree\n");
    EXPECT_FALSE(log_->trouble());
}

TEST_F(ConsoleLogTest, TellsTheOopsThatLedToThePanic) {
    log_->feed("[ 1.0] fine\n[ 2.0] BUG: kernel NULL pointer dereference\n[ 2.1] RIP: orr_open\n");
    EXPECT_EQ(log_->trouble(), Trouble::kFault);
    log_->feed("[ 3.0] Kernel panic - not syncing: Fatal exception\n");
    EXPECT_EQ(log_->trouble(), Trouble::kPanic);
    EXPECT_EQ(log_->line(), "BUG: kernel NULL pointer dereference");
    EXPECT_NE(log_->context().find("RIP: orr_open"), std::string::npos);
    EXPECT_EQ(log_->context().find("fine"), std::string::npos);
}

TEST_F(ConsoleLogTest, NamesTheLineAfterTheScissors) {
    log_->feed("[ 1.0] ------------[ cut here ]------------\n[ 1.0] orrery: a count is wrong\n");
    EXPECT_EQ(log_->line(), "orrery: a count is wrong");
    log_->feed("[ 1.1] WARNING: CPU: 0 PID: 1 at x\n[ 2.0] BUG: worse\n");
    EXPECT_EQ(log_->line(), "BUG: worse");
}

TEST_F(ConsoleLogTest, AnEndlessLineDoesNotGrowWithoutBound) {
    for (int i = 0; i < 100; ++i)
        log_->feed(std::string(1000, 'x'));
    log_->feed("\n");
    EXPECT_EQ(read_file(name_).value().size(), 100001U);
}

}  // namespace
}  // namespace orrery::vm
