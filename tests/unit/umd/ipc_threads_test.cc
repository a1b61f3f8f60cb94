// What threads of the process do meanwhile, and who waits for whom.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "tests/unit/umd/asleep.h"
#include "tests/unit/umd/ipc_fixture.h"
#include "umd/runtime/runtime.h"
#include "umd/runtime/shared_event.h"

namespace orrery::umd::test {
namespace {

// Only what hangs takes so long.
constexpr std::chrono::seconds kHang{60};

SharedPage& page_of(orrEvent_t event) {
    return SharedSemaphores::page(Runtime::usable()->events.find(event)->shared()->slot());
}

class IpcWaits : public IpcTest {
  protected:
    // A stream of device 1 waits for an event of another process on device 0, which never comes.
    void SetUp() override {
        ASSERT_OK(orrEventCreate(&event_, orrEventInterprocess | orrEventDisableTiming));
        ASSERT_OK(orrIpcImportEvent(&theirs_, exported(event_), 0));
        std::atomic_ref(page_of(theirs_).recorded).store(1);
        ASSERT_OK(orrMalloc(&memory_, 4096));
        ASSERT_OK(orrSetDevice(1));
        ASSERT_OK(orrStreamCreate(&waits_, 0));
        ASSERT_OK(orrStreamWaitEvent(waits_, theirs_, nullptr));
        ASSERT_OK(orrSetDevice(0));
    }
    void TearDown() override {
        for (orrEvent_t event : {event_, theirs_})
            EXPECT_OK(orrEventDestroy(event));
        EXPECT_OK(orrStreamDestroy(waits_));
        IpcTest::TearDown();
    }
    static bool ends(const std::function<void()>& what, const std::function<void()>& rescue) {
        auto helper = std::async(std::launch::async, what);
        const bool ended = helper.wait_for(kHang) == std::future_status::ready;
        if (!ended) rescue();
        return ended;
    }
    std::shared_ptr<Stream> relay() {
        const auto stream = Runtime::usable()->streams.find_shared(waits_);
        const auto found = stream->relay(0, []() -> Result<std::shared_ptr<Stream::Relay>> {
            return fail(orrErrorInternal, "there is one");
        });
        EXPECT_TRUE(found.has_value());
        return (*found)->source;
    }

    orrEvent_t event_ = nullptr, theirs_ = nullptr;
    orrStream_t waits_ = nullptr;
    void* memory_ = nullptr;
};

TEST_F(IpcWaits, NothingOfTheEventsCardWaitsForItsMaker) {
    const auto rescue = [this] { EXPECT_OK(orrStreamAbort(waits_)); };
    EXPECT_TRUE(ends([this] { EXPECT_OK(orrFree(memory_)); }, rescue));
    EXPECT_TRUE(ends([] { EXPECT_OK(orrDeviceSynchronize()); }, rescue));
    EXPECT_FALSE(relay()->error().has_value());
    EXPECT_OK(orrStreamAbort(waits_));
}

TEST_F(IpcWaits, WhatWaitsForAStreamEndsWithIt) {
    ASSERT_OK(orrFree(memory_));
    ASSERT_OK(orrStreamAbort(waits_));
    while (!relay()->error())
        (*Runtime::usable()->context(0))->fleet().watch();
    EXPECT_EQ(relay()->error()->code, orrErrorAborted);
    // And no more is put behind it, until its ring would be full.
    for (int i = 0; i < 1024; ++i)
        ASSERT_EQ(orrStreamWaitEvent(waits_, theirs_, nullptr), orrErrorAborted);
}

// One looks for the value of a semaphore whose page another gives back.
TEST_F(IpcTest, APageGoesWhileItsValueIsLookedFor) {
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    Context& context = **Runtime::usable()->context(0);
    const std::uint64_t va = Runtime::usable()->semaphores.find(semaphore)->slot->va;
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    std::atomic<bool> stop{false};
    std::thread looks([&] {
        while (!stop)
            EXPECT_EQ(context.semaphore_value(va).value_or(0), 0u);
    });
    for (int i = 0; i < 2000; ++i) {
        ASSERT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
        EXPECT_EQ(Runtime::usable()->semaphores.find(semaphore)->slot->va, va);
        ASSERT_OK(orrSemaphoreDestroy(semaphore));
    }
    stop = true;
    looks.join();
}

// Threads make, import and destroy semaphores while another waits on both cards, which looks at all.
TEST_F(IpcTest, ThreadsComeAndGo) {
    std::atomic<bool> stop{false};
    const auto make = [&](int device) {
        EXPECT_OK(orrSetDevice(device));
        orrStream_t stream = nullptr;
        EXPECT_OK(orrStreamCreate(&stream, 0));
        for (int i = 0; i < 200; ++i) {
            orrSemaphore_t semaphore = nullptr, other = nullptr;
            int fd = -1;
            ASSERT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
            ASSERT_OK(orrIpcExportSemaphore(&fd, semaphore, 0));
            ASSERT_OK(orrIpcImportSemaphore(&other, fd, 0));
            ::close(fd);
            ASSERT_OK(orrStreamWaitSemaphore(stream, other, 1, nullptr));
            ASSERT_OK(orrSemaphoreDestroy(other));
            ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
            ASSERT_OK(orrSemaphoreDestroy(semaphore));
        }
        EXPECT_OK(orrStreamDestroy(stream));
    };
    std::thread looks([&] {
        while (!stop)
            (*Runtime::usable()->context(0))->fleet().watch();
    });
    std::thread first(make, 0), second(make, 0), third(make, 1);
    for (std::thread* each : {&first, &second, &third})
        each->join();
    stop = true;
    looks.join();
}

// The probe of a card that does not have the buffer makes a handle there.
TEST_F(IpcTest, AProbeIsMetByNobody) {
    void *memory = nullptr, *source = nullptr;
    orrIpcMemory other = ORR_INIT(orrIpcMemory);
    ASSERT_OK(orrMalloc(&source, 4096));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrIpcMalloc(&memory, 4096, 0));
    const int fd = exported(memory);
    std::thread peer;
    std::atomic<pid_t> id{0};
    std::atomic<bool> done{false};
    system_.card(0).on_probe = [&] {
        peer = std::thread([&] {
            id = ::gettid();
            EXPECT_OK(orrSetDevice(0));
            EXPECT_OK(orrDeviceEnablePeerAccess(1, 0));
            done = true;
        });
        while (!done && (id == 0 || !asleep(id)))
            std::this_thread::yield();
        if (done) peer.join();
    };
    ASSERT_OK(orrIpcImportMemory(&other, fd, 0));
    if (peer.joinable()) peer.join();
    EXPECT_OK(orrMemcpy(memory, source, 4096, orrMemcpyDeviceToDevice));
    for (void* each : {memory, source, other.ptr})
        EXPECT_OK(orrFree(each));
}

TEST_F(IpcTest, ACardThatCannotSayIsPassedOver) {
    void* memory = nullptr;
    orrIpcMemory other = ORR_INIT(orrIpcMemory);
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrIpcMalloc(&memory, 4096, 0));
    const int fd = exported(memory);
    for (const int number : {ENOMEM, ENOSPC, ENODEV, EIO}) {
        system_.card(0).probe_errno = number;
        ASSERT_OK(orrIpcImportMemory(&other, fd, 0));
        EXPECT_EQ(other.device, 1);
        ASSERT_OK(orrFree(other.ptr));
    }
    system_.card(1).probe_errno = ENOMEM;
    system_.card(0).probe_errno = 0;
    EXPECT_EQ(orrIpcImportMemory(&other, fd, 0), orrErrorOutOfMemory) << orrGetLastErrorText();
    ASSERT_OK(orrFree(memory));
}

// Both directions in one page: what this process itself did is told by its name.
TEST_F(IpcTest, OwnFailuresAreOwn) {
    orrSemaphore_t semaphore = nullptr, gate = nullptr;
    orrStream_t stream = nullptr, waits = nullptr, host = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    // A stream of ours was to signal it; who waits asks when the page has gone.
    ASSERT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    orrStreamAttributes named = ORR_INIT(orrStreamAttributes);
    named.name = "mine";
    ASSERT_OK(orrStreamCreateWithAttributes(&stream, &named));
    ASSERT_OK(orrStreamCreate(&waits, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream, gate, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(stream, semaphore, 1));
    ASSERT_OK(orrStreamWaitSemaphore(waits, semaphore, 1, nullptr));
    ASSERT_OK(orrStreamAbort(stream));
    const auto ring = Runtime::usable()->streams.find_shared(waits);
    while (!ring->poisoned())
        std::this_thread::yield();
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    EXPECT_FAIL(orrStreamSynchronize(waits), orrErrorAborted, "'mine'");
    ASSERT_OK(orrStreamDestroy(waits));
    ASSERT_OK(orrStreamDestroy(stream));
    // The host was to signal it.
    ASSERT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    ASSERT_OK(orrStreamCreate(&host, 0));
    ASSERT_OK(orrStreamWaitSemaphore(host, semaphore, 1, nullptr));
    system_.card().pause(true);
    std::thread signals([&] { EXPECT_NE(orrSemaphoreSignal(semaphore, 1), orrSuccess); });
    const auto sender = *(*Runtime::usable()->context(0))->signal_stream(false);
    while (sender->submitted() == sender->executed())
        std::this_thread::yield();
    system_.card().crash("signals from the host");
    signals.join();
    system_.card().pause(false);
    EXPECT_FAIL(orrStreamSynchronize(host), orrErrorFirmware, "signals from the host");
    ASSERT_OK(orrStreamDestroy(host));
    for (orrSemaphore_t each : {semaphore, gate})
        ASSERT_OK(orrSemaphoreDestroy(each));
}

// Whoever asks how much memory there is, frees some or ends a stream finds the pages given back.
TEST_F(IpcTest, PagesComeBackWithoutAnotherSemaphore) {
    orrSemaphore_t semaphore = nullptr;
    orrStream_t stream = nullptr;
    void* memory = nullptr;
    std::size_t before = 0, after = 0, total = 0;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    // What waits and signals need stays.
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrMalloc(&memory, 64));
    ASSERT_OK(orrMemGetInfo(&before, &total));
    for (int way = 0; way < 3; ++way) {
        orrSemaphore_t other = nullptr;
        ASSERT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
        ASSERT_OK(orrIpcImportSemaphore(&other, exported(semaphore), 0));
        ASSERT_OK(orrStreamWaitSemaphore(stream, other, 1, nullptr));
        ASSERT_OK(orrSemaphoreDestroy(other));
        ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
        ASSERT_OK(orrSemaphoreDestroy(semaphore));
        ASSERT_OK(orrStreamSynchronize(stream));
        if (way == 1) ASSERT_OK(orrFree(std::exchange(memory, nullptr)));
        if (way == 2) ASSERT_OK(orrStreamDestroy(stream));
        if (way != 0) {
            EXPECT_EQ(system_.card().vram_used, total - before) << way;
        }
        ASSERT_OK(orrMemGetInfo(&after, &total));
        EXPECT_EQ(before, after) << way;
    }
}

// The maker of an event knows what it has recorded.
TEST_F(IpcTest, TheMakerDoesNotBelieveThePage) {
    orrEvent_t event = nullptr;
    orrStream_t stream = nullptr, waits = nullptr;
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrEventCreate(&event, orrEventInterprocess | orrEventDisableTiming));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrStreamCreate(&waits, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream, gate, 1, nullptr));
    ASSERT_OK(orrEventRecord(event, stream));
    for (const std::uint64_t lie : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{77}}) {
        std::atomic_ref(page_of(event).recorded).store(lie);
        EXPECT_EQ(orrEventQuery(event), orrErrorNotReady);
        ASSERT_OK(orrStreamWaitEvent(waits, event, nullptr));
        EXPECT_EQ(orrStreamQuery(waits), orrErrorNotReady);
    }
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    EXPECT_OK(orrEventSynchronize(event));
    EXPECT_OK(orrStreamSynchronize(waits));
    for (orrStream_t each : {stream, waits})
        ASSERT_OK(orrStreamDestroy(each));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrSemaphoreDestroy(gate));
}

}  // namespace
}  // namespace orrery::umd::test
