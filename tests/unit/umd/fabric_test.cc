// Memory and semaphores of another machine: card 0 is one's, card 1 the other's, and this process plays both.
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

constexpr std::uint64_t kLongNs = 100'000'000'000;
constexpr std::size_t kBytes = 8192;

class FabricTest : public ::testing::Test {
  protected:
    FabricTest() {
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrIpcMalloc(&memory_, kBytes, 0));
        EXPECT_OK(orrMemset(memory_, 0, kBytes));
        EXPECT_OK(orrSemaphoreCreate(&semaphore_, orrSemaphoreInterprocess));
        EXPECT_OK(orrSemaphoreSetName(semaphore_, "from the other machine"));
        EXPECT_OK(orrStreamCreate(&waiting_, 0));
        EXPECT_OK(orrSetDevice(1));
        EXPECT_OK(orrMalloc(&source_, kBytes));
        EXPECT_OK(orrMemset(source_, 7, kBytes));
        EXPECT_OK(orrStreamCreate(&sending_, 0));
    }
    void TearDown() override {
        for (orrStream_t stream : {waiting_, sending_})
            EXPECT_OK(orrStreamDestroy(stream));
        if (memory_ != nullptr) {
            EXPECT_OK(orrFree(memory_));
        }
        EXPECT_OK(orrFree(source_));
        if (semaphore_ != nullptr) {
            EXPECT_OK(orrSemaphoreDestroy(semaphore_));
        }
    }
    // By card 1, which is current.
    void* imported(const orrFabricHandle& handle) {
        void* there = nullptr;
        std::size_t bytes = 0;
        EXPECT_OK(orrFabricImportMemory(&there, &bytes, &handle, 0));
        EXPECT_EQ(bytes, kBytes);
        return there;
    }
    orrSemaphore_t imported_semaphore() {
        orrFabricHandle handle{};
        orrSemaphore_t there = nullptr;
        EXPECT_OK(orrFabricExportSemaphore(&handle, semaphore_, 0));
        EXPECT_OK(orrFabricImportSemaphore(&there, &handle, 0));
        return there;
    }
    orrFabricHandle exported() {
        orrFabricHandle handle{};
        EXPECT_OK(orrFabricExportMemory(&handle, memory_, 0));
        return handle;
    }
    orrError_t import_error(const orrFabricHandle& handle) {
        void* there = nullptr;
        std::size_t bytes = 0;
        return orrFabricImportMemory(&there, &bytes, &handle, 0);
    }

    FakeSystem system_{2};
    void *memory_ = nullptr, *source_ = nullptr;
    orrSemaphore_t semaphore_ = nullptr;
    orrStream_t waiting_ = nullptr, sending_ = nullptr;
};

// The wait first, so that what follows it sees what the other side wrote before its signal.
TEST_F(FabricTest, WritesArriveBeforeTheSignalBehindThem) {
    void* there = imported(exported());
    orrSemaphore_t full = imported_semaphore();
    void* copy = nullptr;
    ASSERT_OK(orrMallocHost(&copy, kBytes, 0));
    ASSERT_OK(orrStreamWaitSemaphore(waiting_, semaphore_, 5, nullptr));
    ASSERT_OK(orrMemcpyAsync(copy, memory_, kBytes, orrMemcpyDefault, waiting_));
    ASSERT_OK(orrMemcpyAsync(there, source_, kBytes - 1, orrMemcpyDefault, sending_));
    ASSERT_OK(orrMemsetAsync(at(there, kBytes - 1), 9, 1, sending_));
    ASSERT_OK(orrStreamSignalSemaphore(sending_, full, 5));
    ASSERT_OK(orrStreamSynchronize(waiting_));
    EXPECT_EQ(static_cast<std::uint8_t*>(copy)[0], 7);
    EXPECT_EQ(static_cast<std::uint8_t*>(copy)[kBytes - 2], 7);
    EXPECT_EQ(static_cast<std::uint8_t*>(copy)[kBytes - 1], 9);
    ASSERT_OK(orrSemaphoreSignal(full, 6)) << "from the host, too";
    EXPECT_OK(orrSemaphoreWait(semaphore_, 6, kLongNs));
    ASSERT_OK(orrSemaphoreDestroy(full));
    ASSERT_OK(orrFree(there));
    ASSERT_OK(orrFreeHost(copy));
}

TEST_F(FabricTest, MemoryOfTheHostOfTheWriterGoesThere) {
    void* there = imported(exported());
    const std::vector<std::uint8_t> bytes(kBytes, 0x31);
    ASSERT_OK(orrMemcpy(there, bytes.data(), kBytes, orrMemcpyHostToDevice));
    // A write that is done is on the link; what is carried out there first is seen by a look at the card.
    while (system_.card(0).arrivals() != 0) {
    }
    std::uint8_t byte = 0;
    ASSERT_OK(orrMemcpy(&byte, at(memory_, kBytes - 1), 1, orrMemcpyDeviceToHost));
    EXPECT_EQ(byte, 0x31);
    ASSERT_OK(orrFree(there));
}

TEST_F(FabricTest, NobodyReadsAnotherMachine) {
    void* there = imported(exported());
    EXPECT_FAIL(orrMemcpy(source_, there, kBytes, orrMemcpyDefault), orrErrorInvalidValue,
                "another machine's memory, which can be written only");
    std::uint8_t byte = 0;
    EXPECT_FAIL(orrMemcpy(&byte, there, 1, orrMemcpyDefault), orrErrorInvalidValue, "written only");
    EXPECT_FAIL(orrMemcpyReduceAsync(there, source_, 4, orrInt32, orrReduceSum, 0, sending_),
                orrErrorInvalidValue, "have its owner reduce it");
    EXPECT_FAIL(orrMemset(there, 0, kBytes + 1), orrErrorInvalidValue, "memory of another machine");
    int fd = -1;
    EXPECT_FAIL(orrIpcExportMemory(&fd, there, 0), orrErrorInvalidValue, "only its owner gives it on");
    orrFabricHandle handle{};
    EXPECT_FAIL(orrFabricExportMemory(&handle, there, 0), orrErrorInvalidValue, "only its owner");
    // Another card of this process does not reach it, whether it may reach the one that does or not.
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    EXPECT_FAIL(orrMemcpyAsync(there, memory_, kBytes, orrMemcpyDefault, waiting_), orrErrorPeerAccess,
                "only device 1 reaches");
    ASSERT_OK(orrFree(there));
}

TEST_F(FabricTest, ASemaphoreThereIsSignalledAndNothingElse) {
    orrSemaphore_t full = imported_semaphore();
    std::uint64_t value = 0;
    EXPECT_FAIL(orrStreamWaitSemaphore(sending_, full, 1, nullptr), orrErrorNotSupported, "only there");
    EXPECT_FAIL(orrSemaphoreWait(full, 1, 0), orrErrorNotSupported, "only there");
    EXPECT_FAIL(orrSemaphoreGetValue(&value, full), orrErrorNotSupported, "only there");
    EXPECT_FAIL(orrSemaphoreAddSignaller(full, sending_), orrErrorInvalidValue, "need not be added");
    EXPECT_FAIL(orrSemaphoreAddSignaller(semaphore_, waiting_), orrErrorInvalidValue, "need not be added");
    EXPECT_FAIL(orrStreamSignalSemaphore(waiting_, full, 1), orrErrorPeerAccess, "only device 1 reaches");
    int fd = -1;
    EXPECT_FAIL(orrIpcExportSemaphore(&fd, full, 0), orrErrorInvalidValue, "only its owner gives it on");
    orrFabricHandle handle{};
    EXPECT_FAIL(orrFabricExportSemaphore(&handle, full, 0), orrErrorInvalidValue, "another machine's");
    ASSERT_OK(orrSemaphoreDestroy(full));
}

TEST_F(FabricTest, WhatIsNoHandleIsRefused) {
    const orrFabricHandle good = exported();
    void* there = nullptr;
    std::size_t bytes = 0;
    orrSemaphore_t semaphore = nullptr;
    EXPECT_FAIL(orrFabricImportMemory(&there, &bytes, nullptr, 0), orrErrorInvalidValue, "handle is null");
    EXPECT_FAIL(orrFabricImportMemory(nullptr, &bytes, &good, 0), orrErrorInvalidValue, "ptr is null");
    EXPECT_FAIL(orrFabricImportMemory(&there, nullptr, &good, 0), orrErrorInvalidValue, "bytes is null");
    EXPECT_FAIL(orrFabricImportMemory(&there, &bytes, &good, 2), orrErrorInvalidValue, "flags");
    EXPECT_FAIL(orrFabricImportSemaphore(&semaphore, &good, 0), orrErrorInvalidValue,
                "use orrFabricImportMemory");
    // Any byte that is another one: no handle, another card's, or one that its owner does not know.
    for (std::size_t i = 0; i < sizeof good; ++i) {
        orrFabricHandle wrong = good;
        reinterpret_cast<std::uint8_t*>(&wrong)[i] ^= 0x40;
        const orrError_t error = import_error(wrong);
        EXPECT_TRUE(error == orrErrorInvalidValue || error == orrErrorInvalidHandle ||
                    error == orrErrorPeerAccess)
            << i << ": " << orrGetErrorName(error);
        EXPECT_NE(orrFabricRevoke(&wrong), orrSuccess) << i;
    }
    ASSERT_OK(orrSetDevice(0));
    EXPECT_FAIL(import_error(good), orrErrorInvalidValue, "orrIpcExportMemory");
    // Each has to be whole pages of its own, of a card.
    orrFabricHandle handle{};
    void *small = nullptr, *host = nullptr;
    ASSERT_OK(orrMalloc(&small, 64));
    ASSERT_OK(orrMallocHost(&host, kBytes, 0));
    EXPECT_FAIL(orrFabricExportMemory(&handle, small, 0), orrErrorInvalidValue, "share their pages");
    EXPECT_FAIL(orrFabricExportMemory(&handle, host, 0), orrErrorInvalidValue, "memory of the host");
    EXPECT_FAIL(orrFabricExportMemory(&handle, at(memory_, 16), 0), orrErrorInvalidValue, "no start");
    EXPECT_FAIL(orrFabricExportMemory(nullptr, memory_, 0), orrErrorInvalidValue, "handle is null");
    orrSemaphore_t plain = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&plain, 0));
    EXPECT_FAIL(orrFabricExportSemaphore(&handle, plain, 0), orrErrorInvalidValue,
                "orrSemaphoreInterprocess");
    ASSERT_OK(orrSemaphoreDestroy(plain));
    ASSERT_OK(orrFree(small));
    ASSERT_OK(orrFreeHost(host));
}

TEST_F(FabricTest, WhatTheDriverSaysIsTold) {
    const orrFabricHandle handle = exported();
    const struct {
        int number;
        orrError_t error;
        const char* text;
    } answers[] = {{ETIMEDOUT, orrErrorTimeout, "does not answer"},
                   {ENOTCONN, orrErrorPeerAccess, "has just gone"},
                   {ESTALE, orrErrorPeerAccess, "try again"},
                   {EPROTO, orrErrorPeerAccess, "the same version"},
                   {EBUSY, orrErrorTimeout, "try again"},
                   {EOWNERDEAD, orrErrorAbandoned, "is closed"},
                   {ENOSPC, orrErrorOutOfMemory, "no grants left"},
                   {EDQUOT, orrErrorOutOfMemory, "no grants left"},
                   {EOPNOTSUPP, orrErrorNotSupported, "older than this library"},
                   {ENODEV, orrErrorDeviceLost, "reset or removed"}};
    for (const auto& answer : answers) {
        system_.card(1).fabric_errno = answer.number;
        EXPECT_FAIL(import_error(handle), answer.error, answer.text);
    }
    system_.card(1).fabric_errno = 0;
    system_.card(1).cut_link();
    EXPECT_FAIL(import_error(handle), orrErrorPeerAccess, "leads to card 1");
    system_.card(1).mend_link();
    system_.card(0).fabric_errno = EOPNOTSUPP;
    orrFabricHandle other{};
    EXPECT_FAIL(orrFabricExportMemory(&other, memory_, 0), orrErrorNotSupported, "older");
    system_.card(0).fabric_errno = ENOSPC;
    EXPECT_NE(orrFabricExportSemaphore(&other, semaphore_, 0), orrSuccess);
    system_.card(0).fabric_errno = 0;
    system_.card(0).fabric_semaphores = false;
    EXPECT_FAIL(orrFabricExportSemaphore(&other, semaphore_, 0), orrErrorNotSupported, "would not notice");
    EXPECT_OK(orrSemaphoreAddSignaller(semaphore_, waiting_)) << "it stays this machine's";
    system_.card(0).fabric_semaphores = true;
    EXPECT_FAIL(orrFabricExportSemaphore(&other, semaphore_, 0), orrErrorInvalidValue, "were added");
}

TEST_F(FabricTest, WhatIsTakenBackIsWrittenNoMore) {
    const orrFabricHandle handle = exported();
    void* there = imported(handle);
    ASSERT_OK(orrFabricRevoke(&handle));
    EXPECT_FAIL(orrFabricRevoke(&handle), orrErrorInvalidHandle, "no such handle");
    EXPECT_FAIL(import_error(handle), orrErrorInvalidHandle, "does not know the handle");
    ASSERT_OK(orrMemcpyAsync(there, source_, kBytes, orrMemcpyDefault, sending_));
    EXPECT_FAIL(orrStreamSynchronize(sending_), orrErrorPeerAccess, "not opened to this card");
    ASSERT_OK(orrFree(there));
    std::uint8_t byte = 1;
    ASSERT_OK(orrMemcpy(&byte, memory_, 1, orrMemcpyDeviceToHost));
    EXPECT_EQ(byte, 0);
}

TEST_F(FabricTest, FreeingTakesBack) {
    const orrFabricHandle handle = exported(), second = exported();
    void* there = imported(second);
    ASSERT_OK(orrFree(memory_));
    memory_ = nullptr;
    EXPECT_FAIL(import_error(handle), orrErrorInvalidHandle, "does not know");
    EXPECT_FAIL(orrFabricRevoke(&second), orrErrorInvalidHandle, "freed its memory");
    ASSERT_OK(orrMemcpyAsync(there, source_, kBytes, orrMemcpyDefault, sending_));
    EXPECT_EQ(orrStreamSynchronize(sending_), orrErrorPeerAccess);
    ASSERT_OK(orrFree(there));
}

TEST_F(FabricTest, TheLastWhoLetsGoEndsWaits) {
    orrFabricHandle handle{};
    ASSERT_OK(orrFabricExportSemaphore(&handle, semaphore_, 0));
    orrSemaphore_t full = nullptr;
    ASSERT_OK(orrFabricImportSemaphore(&full, &handle, 0));
    ASSERT_OK(orrStreamWaitSemaphore(waiting_, semaphore_, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(sending_, full, 1));
    ASSERT_OK(orrStreamSynchronize(waiting_));
    ASSERT_OK(orrStreamWaitSemaphore(waiting_, semaphore_, 2, nullptr));
    EXPECT_EQ(orrStreamQuery(waiting_), orrErrorNotReady);
    ASSERT_OK(orrStreamSynchronize(sending_));
    ASSERT_OK(orrSemaphoreDestroy(full));
    EXPECT_FAIL(orrStreamSynchronize(waiting_), orrErrorAbandoned, "'from the other machine'");
    EXPECT_EQ(orrSemaphoreWait(semaphore_, 2, kLongNs), orrErrorAbandoned);
}

// Destroyed while the stream is busy: it is let go of when the stream has been waited for.
TEST_F(FabricTest, WhoIsDoneWithAStreamLetsGo) {
    orrSemaphore_t full = imported_semaphore();
    ASSERT_OK(orrStreamWaitSemaphore(waiting_, semaphore_, 2, nullptr));
    system_.card(1).pause(true);
    ASSERT_OK(orrStreamSignalSemaphore(sending_, full, 1));
    ASSERT_OK(orrSemaphoreDestroy(full));
    system_.card(1).pause(false);
    ASSERT_OK(orrStreamSynchronize(sending_));
    EXPECT_FAIL(orrStreamSynchronize(waiting_), orrErrorAbandoned, "'from the other machine'");
}

// A signal of the host to another machine that fails is nothing to those of this one.
TEST_F(FabricTest, ASignalToAnotherMachineFailsAlone) {
    orrFabricHandle handle{};
    ASSERT_OK(orrFabricExportSemaphore(&handle, semaphore_, 0));
    orrSemaphore_t full = nullptr, local = nullptr;
    ASSERT_OK(orrFabricImportSemaphore(&full, &handle, 0));
    ASSERT_OK(orrSemaphoreCreate(&local, 0));
    ASSERT_OK(orrFabricRevoke(&handle));
    system_.card(1).pause(true);
    std::thread abroad([&] { EXPECT_NE(orrSemaphoreSignal(full, 1), orrSuccess); });
    std::thread here([&] { EXPECT_OK(orrSemaphoreSignal(local, 1)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that both are queued, in either order
    system_.card(1).pause(false);
    abroad.join();
    here.join();
    std::uint64_t value = 0;
    EXPECT_OK(orrSemaphoreGetValue(&value, local));
    EXPECT_EQ(value, 1u);
    ASSERT_OK(orrSemaphoreDestroy(local));
    ASSERT_OK(orrSemaphoreDestroy(full));
}

TEST_F(FabricTest, ALinkThatGoesEndsWaitsAndWrites) {
    void* there = imported(exported());
    orrSemaphore_t full = imported_semaphore();
    ASSERT_OK(orrStreamWaitSemaphore(waiting_, semaphore_, 1, nullptr));
    system_.card(0).cut_link();
    EXPECT_FAIL(orrStreamSynchronize(waiting_), orrErrorPeerAccess, "'from the other machine'");
    EXPECT_EQ(orrSemaphoreWait(semaphore_, 1, kLongNs), orrErrorAbandoned);
    system_.card(1).pause(true);
    ASSERT_OK(orrMemcpyAsync(there, source_, kBytes, orrMemcpyDefault, sending_));
    ASSERT_OK(orrStreamSignalSemaphore(sending_, full, 1));
    system_.card(1).pause(false);
    EXPECT_FAIL(orrStreamSynchronize(sending_), orrErrorPeerAccess, "another machine");
    ASSERT_OK(orrSemaphoreDestroy(full));
    ASSERT_OK(orrFree(there));
}

// What a stream had to do yet when it stopped fails what waits there, with its own cause.
TEST_F(FabricTest, AStreamThatStopsFailsWhatItWouldHaveSignalled) {
    orrSemaphore_t full = imported_semaphore();
    ASSERT_OK(orrStreamWaitSemaphore(waiting_, semaphore_, 1, nullptr));
    system_.card(1).pause(true);
    ASSERT_OK(orrStreamSignalSemaphore(sending_, full, 1));
    ASSERT_OK(orrStreamAbort(sending_));
    system_.card(1).pause(false);
    EXPECT_EQ(orrStreamSynchronize(waiting_), orrErrorAborted);
    ASSERT_OK(orrSemaphoreDestroy(full));
}

}  // namespace
}  // namespace orrery::umd::test
