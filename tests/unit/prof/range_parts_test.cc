// Of kernels, copies and fills that were preempted a range has all parts, and each of them once.
#include <orrery/prof.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "tests/unit/prof/range_fixture.h"

namespace orrery::umd::test {
namespace {

class RangeParts : public RangeWork {
  protected:
    void SetUp() override {
        RangeWork::SetUp();
        ASSERT_OK(orrModuleLoad(&module_, TEST_KERNELS));
        ASSERT_OK(orrModuleGetFunction(&kernel_, module_, "add_value"));
    }
    void TearDown() override {
        if (module_ != nullptr) ASSERT_OK(orrModuleUnload(module_));
    }
    void launch() { ASSERT_OK(orrLaunchKernel(kernel_, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream_)); }
    // What comes next is preempted so often. Behind all that was before.
    void preempt(unsigned times, bool loses_end = false) {
        synchronize();
        with_card([&](FakeCard& card) {
            card.preempts_next = times;
            card.loses_next_end = loses_end;
        });
    }

    orrModule_t module_ = nullptr;
    orrFunction_t kernel_ = nullptr;
};

// How long the parts of this kind of work were, and for how long they had an engine.
struct Times {
    std::uint64_t ps = 0, used_ps = 0;
};
Times times_of(const std::vector<orrProfWork>& work, bool kernels) {
    Times times;
    for (const orrProfWork& one : work) {
        if ((one.operation == orrProfOperationKernel) != kernels) continue;
        times.ps += one.end_ps - one.begin_ps;
        times.used_ps += one.used_ps;
    }
    return times;
}

TEST_F(RangeParts, OfOnePieceOfWorkAreOne) {
    Listener listener;
    push("outer");
    push("kernel");
    preempt(2);
    launch();
    pop();
    preempt(1);
    fill(64);
    preempt(3);
    copy(128);
    launch();
    pop();
    synchronize();
    const Range outer = listener.flushed("outer"), kernel = listener.flushed("kernel");
    const auto work = listener.work();
    const auto counters = listener.counters();
    ASSERT_EQ(work.size(), 10u);
    ASSERT_EQ(counters.size(), 10u);
    EXPECT_EQ(std::ranges::count(work, orrProfOutcomePreempted, &orrProfWork::outcome), 6);
    EXPECT_EQ(outer.work.kernels, 2u);
    EXPECT_EQ(outer.work.fills, 1u);
    EXPECT_EQ(outer.work.copies, 1u);
    EXPECT_EQ(outer.work.failed, 0u);
    EXPECT_EQ(outer.work.missing, 0u);
    EXPECT_EQ(outer.work.records, 10u);
    EXPECT_EQ(outer.work.counted, 10u);
    const Times kernels = times_of(work, true), copies = times_of(work, false);
    EXPECT_EQ(kernels.used_ps, 1000u) << "as the card has it of parts: the test sees them all";
    EXPECT_EQ(outer.work.kernel_ps, kernels.ps);
    EXPECT_EQ(outer.work.copy_ps, copies.ps);
    EXPECT_EQ(outer.work.used_ps, kernels.used_ps + copies.used_ps);
    ASSERT_TRUE(outer.counters && kernel.counters);
    std::uint64_t busy = 0, of_kernel = 0, cores = 0;
    for (std::size_t i = 0; i < counters.size(); ++i) {
        busy += counters[i].busy_ps;
        of_kernel += i < 3 ? counters[i].busy_ps : 0;
        cores = std::max(cores, counters[i].cores);
    }
    EXPECT_EQ(outer.counters->busy_ps, busy);
    EXPECT_EQ(outer.counters->cores, cores);
    EXPECT_EQ(kernel.work.kernels, 1u);
    EXPECT_EQ(kernel.work.records, 3u);
    EXPECT_EQ(kernel.work.kernel_ps, 1000u);
    EXPECT_EQ(kernel.counters->busy_ps, of_kernel);
}

// A part is not its end.
TEST_F(RangeParts, AreNotAllThatWasSubmittedBeforeTheLastOne) {
    Listener listener;
    std::atomic<unsigned> parts{0};
    listener.and_then = [&](const orrProfRecord& record) {
        if (record.kind != orrProfWorkDone) return;
        ++parts;
        EXPECT_TRUE(listener.ranges().empty()) << "after part " << parts;
    };
    push("waits");
    preempt(3);
    launch();
    pop();
    synchronize();
    const Range range = listener.flushed("waits");
    EXPECT_EQ(parts, 4u);
    EXPECT_EQ(range.behind, 4u);
    EXPECT_EQ(range.work.kernels, 1u);
}

TEST_F(RangeParts, OfAKernelThatFailsAtLastHaveFailedOnce) {
    Listener listener;
    system_.card().on_dispatch = [](FakeCard&, const FakeDispatch&) {
        return FakeOutcome{.error = ORR_QERR_FAULT};
    };
    push("fails");
    preempt(2);
    launch();
    pop();
    EXPECT_FALSE(orrStreamSynchronize(stream_) == orrSuccess);
    const Range range = listener.flushed("fails");
    EXPECT_EQ(range.work.records, 3u);
    EXPECT_EQ(range.work.kernels, 1u);
    EXPECT_EQ(range.work.failed, 1u);
    EXPECT_EQ(range.work.missing, 0u);
    ASSERT_OK(orrStreamDestroy(stream_));
}

// What ended it is not known, so it is none of the kernels; what its parts took is.
TEST_F(RangeParts, WithoutTheLastOneAreOneThatIsMissing) {
    Listener listener;
    push("lost");
    preempt(2, true);
    launch();
    synchronize();
    fill(64);
    pop();
    synchronize();
    const Range range = listener.flushed("lost");
    EXPECT_EQ(range.work.kernels, 0u);
    EXPECT_EQ(range.work.missing, 1u);
    EXPECT_EQ(range.work.fills, 1u);
    EXPECT_EQ(range.work.records, 3u);
    EXPECT_EQ(range.work.kernel_ps, 500u) << "two parts, of which the first took no time";
}

}  // namespace
}  // namespace orrery::umd::test
