// A thread of the host waits for a semaphore.
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

class HostWait : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        ASSERT_OK(orrSemaphoreCreate(&semaphore_, 0));
    }
    void TearDown() override { EXPECT_OK(orrStreamDestroy(stream_)); }
    // What the wait of another thread came to, and its text.
    struct Outcome {
        orrError_t code = orrSuccess;
        std::string text;
    };
    std::jthread wait_elsewhere(Outcome& outcome) {
        return std::jthread([this, &outcome] {
            outcome.code = orrSemaphoreWait(semaphore_, 3, ORR_NO_LIMIT);
            outcome.text = orrGetLastErrorText();
        });
    }

    FakeSystem system_;
    orrStream_t stream_{};
    orrSemaphore_t semaphore_{};
};

TEST_F(HostWait, EndsWithTheValueOrWithTheTime) {
    EXPECT_OK(orrSemaphoreWait(semaphore_, 0, 0));
    ASSERT_OK(orrSemaphoreSetName(semaphore_, "door"));
    EXPECT_FAIL(orrSemaphoreWait(semaphore_, 1, 0), orrErrorTimeout, "semaphore 'door' is 0");
    EXPECT_FAIL(orrSemaphoreWait(semaphore_, 1, 2'000'000), orrErrorTimeout, "semaphore 'door' is 0");
    EXPECT_FAIL(orrSemaphoreWait(semaphore_, ORR_SEMAPHORE_VALUE_MAX + 1, 0), orrErrorInvalidValue, "2^63");
    Outcome outcome{orrErrorInternal, {}};
    {
        const auto waiter = wait_elsewhere(outcome);
        ASSERT_OK(orrStreamSignalSemaphore(stream_, semaphore_, 3));
    }
    EXPECT_EQ(outcome.code, orrSuccess) << outcome.text;
    EXPECT_OK(orrSemaphoreWait(semaphore_, 2, 0));
    EXPECT_OK(orrSemaphoreDestroy(semaphore_));
}

TEST_F(HostWait, EndsWhenNobodyIsLeft) {
    ASSERT_OK(orrSemaphoreAddSignaller(semaphore_, stream_));
    Outcome outcome;
    {
        const auto waiter = wait_elsewhere(outcome);
        ASSERT_OK(orrSemaphoreRemoveSignaller(semaphore_, stream_));
    }
    EXPECT_EQ(outcome.code, orrErrorAbandoned) << outcome.text;
    EXPECT_OK(orrSemaphoreDestroy(semaphore_));
}

TEST_F(HostWait, EndsWhenTheSemaphoreFails) {
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, gate, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(stream_, semaphore_, 3));
    Outcome outcome;
    {
        const auto waiter = wait_elsewhere(outcome);
        ASSERT_OK(orrStreamAbort(stream_));
    }
    EXPECT_EQ(outcome.code, orrErrorAborted) << outcome.text;
    EXPECT_OK(orrSemaphoreDestroy(gate));
    EXPECT_OK(orrSemaphoreDestroy(semaphore_));
}

TEST_F(HostWait, EndsWithTheCard) {
    Outcome outcome;
    {
        const auto waiter = wait_elsewhere(outcome);
        system_.card().lose();
    }
    EXPECT_EQ(outcome.code, orrErrorDeviceLost) << outcome.text;
    EXPECT_OK(orrSemaphoreDestroy(semaphore_));
}

TEST_F(HostWait, EndsWithTheSemaphore) {
    Outcome outcome;
    {
        const auto waiter = wait_elsewhere(outcome);
        EXPECT_OK(orrSemaphoreDestroy(semaphore_));
    }
    EXPECT_EQ(outcome.code, orrErrorInvalidHandle) << outcome.text;
}

}  // namespace
}  // namespace orrery::umd::test
