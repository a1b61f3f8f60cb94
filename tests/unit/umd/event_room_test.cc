// Records of events on a stream whose ring is full: nobody who could make room is held up by the event.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/asleep.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd::test {
namespace {

// Only what hangs takes so long.
constexpr std::chrono::seconds kHang{60};

// A stream whose ring is full behind a wait for `gate`, and an event, of this process alone or of several,
// that was recorded on it.
class EventRoom : public ::testing::TestWithParam<unsigned> {
  protected:
    void SetUp() override {
        ASSERT_OK(orrStreamCreate(&full_, 0));
        ASSERT_OK(orrStreamCreate(&other_, 0));
        ASSERT_OK(orrSemaphoreCreate(&gate_, 0));
        ASSERT_OK(orrEventCreate(&event_, GetParam()));
        ASSERT_OK(orrEventCreate(&filler_, orrEventDisableTiming));
        ASSERT_OK(orrEventRecord(event_, full_));
        ASSERT_OK(orrStreamSynchronize(full_));
        ASSERT_OK(orrStreamWaitSemaphore(full_, gate_, 1, nullptr));
        const auto stream = Runtime::usable()->streams.find(full_);
        while (stream->submitted() < stream->executed() + stream->entries())
            ASSERT_OK(orrEventRecord(filler_, full_));
        system_.card().on_wait = [this] { waiting_ = true; };
    }
    void TearDown() override {
        ASSERT_OK(orrDeviceSynchronize());
        system_.card().on_wait = nullptr;
        ASSERT_OK(orrEventSynchronize(event_));
        for (orrEvent_t event : {event_, filler_})
            ASSERT_OK(orrEventDestroy(event));
        ASSERT_OK(orrSemaphoreDestroy(gate_));
        for (orrStream_t stream : {full_, other_})
            ASSERT_OK(orrStreamDestroy(stream));
    }
    // All that a thread may do with the event before it lets the stream go on.
    void use_event_and_signal() {
        auto helper = std::async(std::launch::async, [this] {
            EXPECT_OK(orrEventQuery(event_)) << "its last record is done";
            EXPECT_OK(orrStreamWaitEvent(other_, event_, nullptr));
            EXPECT_OK(orrEventRecord(event_, other_));
            EXPECT_OK(orrEventSynchronize(event_));
            EXPECT_OK(orrSemaphoreSignal(gate_, 1));
        });
        if (helper.wait_for(kHang) == std::future_status::ready) return;
        ADD_FAILURE() << "whoever uses the event waits for the one who waits for room";
        EXPECT_OK(orrSemaphoreSignal(gate_, 1));
    }
    static void await(const std::function<bool()>& there) {
        while (!there())
            std::this_thread::yield();
    }

    FakeSystem system_{1};
    orrStream_t full_ = nullptr, other_ = nullptr;
    orrSemaphore_t gate_ = nullptr;
    orrEvent_t event_ = nullptr, filler_ = nullptr;
    std::atomic<bool> waiting_{false};
};

TEST_P(EventRoom, ARecordThatWaitsForRoomHoldsNobodyUp) {
    std::thread recorder([this] { EXPECT_OK(orrEventRecord(event_, full_)); });
    await([this] { return waiting_.load(); });
    use_event_and_signal();
    recorder.join();
}

// Another thread waits for the room, and the record for that thread.
TEST_P(EventRoom, NorOneThatWaitsForTheOneWhoWaits) {
    std::thread first([this] { EXPECT_OK(orrEventRecord(filler_, full_)); });
    await([this] { return waiting_.load(); });
    std::atomic<pid_t> id{0};
    std::thread recorder([&] {
        id = ::gettid();
        EXPECT_OK(orrEventRecord(event_, full_));
    });
    await([&] { return id != 0 && asleep(id); });
    use_event_and_signal();
    recorder.join();
    first.join();
}

INSTANTIATE_TEST_SUITE_P(OfAll, EventRoom,
                         ::testing::Values(0u, orrEventInterprocess | orrEventDisableTiming));

}  // namespace
}  // namespace orrery::umd::test
