// Kernels at work in another card's memory when that card's driver leaves it. They end, with the cause;
// nothing of theirs gets into what is another's there afterwards; no other process on their own card notices.
// The test uses no card itself, as one goes: processes of its own do (workers.h).
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <orrery/embedded_kernel.hpp>

#include "tests/vm/umd/helpers.h"
#include "tests/vm/umd/workers.h"

ORR_EMBEDDED_KERNEL(umd_test_kernels);

namespace orrery::umd::vm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBegun = "/tmp/owner-lost-begun";  // kernels are at work there
constexpr const char* kOver = "/tmp/owner-lost-over";    // and have ended

#define TRY(call)                                                                   \
    do {                                                                            \
        if ((call) != orrSuccess) {                                                 \
            std::fprintf(stderr, "worker: %s: %s\n", #call, orrGetLastErrorText()); \
            return 1;                                                               \
        }                                                                           \
    } while (false)

void put(const char* flag) {
    std::ofstream(flag) << "1\n";
}

bool put_into(const fs::path& file, const std::string& text) {
    return static_cast<bool>(std::ofstream(file) << text << std::flush);
}

}  // namespace

// Loads, stores and atomics on the last card.
int lose_owner() {
    constexpr unsigned kStreams = 3, kApart = 8;  // words
    int cards = 0;
    TRY(orrGetDeviceCount(&cards));
    const int owner = cards - 1;
    void *there = nullptr, *host = nullptr, *here = nullptr;
    TRY(orrSetDevice(owner));
    TRY(orrMalloc(&there, 1 << 20));
    TRY(orrMemset(there, 0, 1 << 20));
    TRY(orrSetDevice(0));
    TRY(orrDeviceEnablePeerAccess(owner, 0));
    TRY(orrMalloc(&here, 1 << 20));
    TRY(orrMallocHost(&host, 4096, 0));
    std::memset(host, 0, 4096);
    auto* const words = static_cast<std::uint64_t*>(host);
    orrModule_t module = nullptr;
    orrFunction_t cross = nullptr;
    const auto image = umd_test_kernels_image();
    TRY(orrModuleLoadData(&module, image.data(), image.size()));
    TRY(orrModuleGetFunction(&cross, module, "cross_there"));
    orrStream_t streams[kStreams] = {};
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.limit_us = kNoLimitUs;
    for (unsigned i = 0; i < kStreams; ++i) {
        TRY(orrStreamCreateWithAttributes(&streams[i], &attributes));
        const TestArgs args{words + kApart * i, i, reinterpret_cast<std::uintptr_t>(at(there, 64 * i))};
        TRY(orrLaunchKernel(cross, {1, 1, 1}, {1, 1, 1}, &args, sizeof(args), 0, streams[i]));
    }
    for (unsigned i = 0; i < kStreams; ++i)
        while (__atomic_load_n(&words[kApart * i + 1], __ATOMIC_ACQUIRE) == 0)
            if (orrStreamQuery(streams[i]) != orrErrorNotReady) return 1;
    put(kBegun);

    int status = 0;
    const std::string wanted = " on device " + std::to_string(owner) + ", and that device is lost: ";
    for (unsigned i = 0; i < kStreams; ++i) {
        const orrError_t told = orrStreamSynchronize(streams[i]);
        const std::string text = orrGetLastErrorText();
        std::fprintf(stderr, "worker: %s: %s\n", orrGetErrorName(told), text.c_str());
        if (told != orrErrorDeviceLost || !text.starts_with("kernel 'cross_there' accessed ") ||
            text.find(wanted) == std::string::npos)
            status = 1;
        // Its way there is its own, so it is not told by what became of the others.
        TRY(orrStreamDestroy(streams[i]));
    }
    put(kOver);
    TRY(orrMemset(here, 1, 1 << 20));
    if (orrMemcpy(there, here, 1 << 20, orrMemcpyDefault) != orrErrorDeviceLost) {
        std::fprintf(stderr, "worker: a copy there: %s\n", orrGetLastErrorText());
        return 1;
    }
    return status;
}

// The next user of the last card: what is his stays as he has left it.
int watch_memory() {
    constexpr std::size_t kPieces = 4, kBytes = 16 << 20;
    int cards = 0;
    TRY(orrGetDeviceCount(&cards));
    TRY(orrSetDevice(cards - 1));
    void* pieces[kPieces] = {};
    const std::vector<std::uint8_t> wanted(kBytes, 0x5a);
    for (void*& piece : pieces) {
        TRY(orrMalloc(&piece, kBytes));
        TRY(orrMemset(piece, 0x5a, kBytes));
    }
    std::vector<std::uint8_t> got(kBytes);
    for (bool over = false, last = false; !last; last = over) {
        over = fs::exists(kOver);
        for (void* piece : pieces) {
            TRY(orrMemcpy(got.data(), piece, kBytes, orrMemcpyDefault));
            if (got != wanted) {
                std::fprintf(stderr, "worker: somebody has written there\n");
                return 1;
            }
        }
    }
    return 0;
}

namespace {

TEST(OwnerLost, KernelsAtWorkThereAreTold) {
    if (!fs::exists("/sys/class/accel/accel1")) GTEST_SKIP() << "needs two cards";
    int nodes = 0;
    while (fs::exists("/sys/class/accel/accel" + std::to_string(nodes)))
        ++nodes;
    const fs::path card = fs::canonical("/sys/class/accel/accel" + std::to_string(nodes - 1) + "/device");
    const std::string address = card.filename();
    const fs::path driver = "/sys/bus/pci/drivers/orrery";
    const pid_t loser = start_worker("lose-owner"), neighbour = start_worker("add");
    while (!fs::exists(kBegun)) {
        ASSERT_TRUE(fs::exists("/proc/" + std::to_string(loser) + "/exe")) << "it has ended";
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    // Not waiting for anybody: what the kernels do yet is done while the next user comes.
    ASSERT_TRUE(put_into(driver / "unbind", address));
    ASSERT_TRUE(put_into(driver / "bind", address));
    const pid_t next = start_worker("watch-memory");
    EXPECT_EQ(wait_for(loser), 0);
    put(kOver);
    EXPECT_EQ(wait_for(next), 0);
    EXPECT_EQ(wait_for(neighbour), 0);
}

}  // namespace
}  // namespace orrery::umd::vm
