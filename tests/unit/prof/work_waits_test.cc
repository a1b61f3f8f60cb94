// Waits of streams are told with who ended them, or with nobody where that is not sure.
#include <gtest/gtest.h>
#include <orrery/prof.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "tests/unit/prof/work_fixture.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

TEST_F(Work, OfAWaitIsFromItsBeginToItsEnd) {
    Watched watched;
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    fill(64);
    until_waits(1);
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "wait");
    EXPECT_EQ(all[0].work.operation, static_cast<std::uint32_t>(orrProfOperationWait));
    EXPECT_LT(all[0].work.begin_ps, all[0].work.end_ps);
    EXPECT_LE(all[0].work.end_ps, all[1].work.begin_ps);
    EXPECT_EQ(all[0].work.from, static_cast<std::uint32_t>(orrProfFromHost));
    EXPECT_EQ(all[0].from_name, "");
}

// So whoever reads it can go from a wait to what it waited for.
TEST_F(Work, OfAWaitHasTheStreamThatEndedIt) {
    Watched watched;
    orrSemaphore_t semaphore = nullptr;
    orrStream_t other = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrSemaphoreSetName(semaphore, "gate"));
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    // `stream_` waits for the host; `other` for an event of it.
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    fill(64);
    ASSERT_OK(orrEventRecord(event, stream_));
    ASSERT_OK(orrStreamWaitEvent(other, event, 0));
    until_waits(2);
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    ASSERT_OK(orrStreamSynchronize(other));
    const auto all = watched.flushed();
    const auto of = [&](const std::string& name, auto&& has) -> const Done& {
        return *std::ranges::find_if(all, [&](const Done& one) { return one.name == name && has(one); });
    };
    ASSERT_EQ(all.size(), 3u);
    const Done& filled = of("fill", [](const Done&) { return true; });
    const Done& first = of("wait", [&](const Done& one) { return one.work.stream == filled.work.stream; });
    const Done& second = of("wait", [&](const Done& one) { return one.work.stream != filled.work.stream; });
    EXPECT_EQ(first.from_name, "gate");
    EXPECT_EQ(first.work.from, static_cast<std::uint32_t>(orrProfFromHost));
    EXPECT_EQ(second.work.from, static_cast<std::uint32_t>(orrProfFromStream));
    EXPECT_EQ(second.work.from_stream, filled.work.stream);
    EXPECT_EQ(second.work.from_index, filled.work.index + 1);
    EXPECT_OK(orrStreamDestroy(other));
    EXPECT_OK(orrEventDestroy(event));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

// The memory of one that was destroyed is the next one's.
TEST_F(Work, OfAWaitDoesNotHaveWhoSignalledAnEarlierSemaphore) {
    Watched watched;
    orrStream_t other = nullptr, third = nullptr;
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrStreamCreate(&third, 0));
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    for (std::uint64_t value = 1; value <= 10; ++value)
        ASSERT_OK(orrStreamSignalSemaphore(other, semaphore, value));
    ASSERT_OK(orrStreamSynchronize(other));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 5, nullptr));
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, third));
    ASSERT_OK(orrStreamSignalSemaphore(third, semaphore, 10));
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    const auto [filled, waited] =
        all[0].name == "fill" ? std::pair(all[0], all[1]) : std::pair(all[1], all[0]);
    EXPECT_NE(waited.work.from, static_cast<std::uint32_t>(orrProfFromOutside)) << "nobody else has it";
    if (waited.work.from == orrProfFromStream) {
        EXPECT_EQ(waited.work.from_stream, filled.work.stream);
    }
    EXPECT_OK(orrStreamDestroy(other));
    EXPECT_OK(orrStreamDestroy(third));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

// Who signals before somebody listens is not another process.
TEST_F(Work, OfAWaitForWhatWasSubmittedBeforeIsNobodys) {
    orrStream_t other = nullptr, third = nullptr;
    orrSemaphore_t semaphore = nullptr, gate = nullptr, shared = nullptr;
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrStreamCreate(&third, 0));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrSemaphoreCreate(&shared, orrSemaphoreInterprocess));
    ASSERT_OK(orrStreamWaitSemaphore(other, gate, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(other, semaphore, 1));
    ASSERT_OK(orrStreamSignalSemaphore(other, shared, 1));
    Watched watched;
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    ASSERT_OK(orrStreamWaitSemaphore(third, shared, 1, nullptr));
    until_waits(3);
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    synchronize();
    ASSERT_OK(orrStreamSynchronize(third));
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    for (const Done& one : all)
        EXPECT_EQ(one.work.from, static_cast<std::uint32_t>(orrProfFromUnknown));
    EXPECT_OK(orrStreamDestroy(other));
    EXPECT_OK(orrStreamDestroy(third));
    for (const orrSemaphore_t one : {semaphore, gate, shared})
        EXPECT_OK(orrSemaphoreDestroy(one));
}

}  // namespace
}  // namespace orrery::umd::test
