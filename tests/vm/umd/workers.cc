#include "tests/vm/umd/workers.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <orrery/embedded_kernel.hpp>

#include "tests/vm/umd/helpers.h"

ORR_EMBEDDED_KERNEL(umd_test_kernels);

namespace orrery::umd::vm {
namespace {

#define TRY(call)                                                                   \
    do {                                                                            \
        if ((call) != orrSuccess) {                                                 \
            std::fprintf(stderr, "worker: %s: %s\n", #call, orrGetLastErrorText()); \
            return 1;                                                               \
        }                                                                           \
    } while (false)

// Adds 1 to an array again and again and checks it; other processes' mishaps must not reach it.
int add_steadily() {
    constexpr std::uint64_t kCount = 4096;
    orrModule_t module = nullptr;
    orrFunction_t function = nullptr;
    void* memory = nullptr;
    const auto image = umd_test_kernels_image();
    TRY(orrModuleLoadData(&module, image.data(), image.size()));
    TRY(orrModuleGetFunction(&function, module, "add_value"));
    TRY(orrMalloc(&memory, kCount * 8));
    TRY(orrMemset(memory, 0, kCount * 8));
    const TestArgs args{static_cast<std::uint64_t*>(memory), kCount, 1};
    std::vector<std::uint64_t> back(kCount);
    for (std::uint64_t round = 1; round <= 60; ++round) {
        TRY(orrLaunchKernel(function, {4, 1, 1}, {16, 1, 1}, &args, sizeof(args), 0, nullptr));
        TRY(orrMemcpy(back.data(), memory, kCount * 8, orrMemcpyDeviceToHost));
        for (const std::uint64_t word : back) {
            if (word != round) {
                std::fprintf(stderr, "worker: %llu instead of %llu\n", static_cast<unsigned long long>(word),
                             static_cast<unsigned long long>(round));
                return 1;
            }
        }
    }
    return 0;
}

// From here on every system call but exit and write ends the process.
bool forbid_system_calls() {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{sizeof(filter) / sizeof(filter[0]), filter};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int submit_without_system_calls() {
    orrStream_t stream = nullptr;
    orrEvent_t event = nullptr;
    orrModule_t module = nullptr;
    orrFunction_t function = nullptr;
    void *memory = nullptr, *flag = nullptr;
    const auto image = umd_test_kernels_image();
    TRY(orrModuleLoadData(&module, image.data(), image.size()));
    TRY(orrModuleGetFunction(&function, module, "add_value"));
    TRY(orrStreamCreate(&stream, 0));
    TRY(orrEventCreate(&event, 0));
    TRY(orrMalloc(&memory, 4096));
    TRY(orrMallocHost(&flag, 8, 0));
    TRY(orrMemset(memory, 0, 4096));
    const TestArgs args{static_cast<std::uint64_t*>(memory), 1, 1};
    const auto submit = [&]() -> int {
        TRY(orrMemsetAsync(at(memory, 64), 1, 64, stream));
        TRY(orrMemcpyAsync(at(memory, 128), at(memory, 64), 64, orrMemcpyDeviceToDevice, stream));
        TRY(orrLaunchKernel(function, {1, 1, 1}, {1, 1, 1}, &args, sizeof(args), 0, stream));
        TRY(orrEventRecord(event, stream));
        return 0;
    };
    if (submit() != 0) return 1;  // what is made at first use
    TRY(orrStreamSynchronize(stream));
    (void)orrEventQuery(event);
    if (!forbid_system_calls()) {
        std::perror("worker: seccomp");
        return 1;
    }
    for (int i = 0; i < 1000; ++i) {
        if (submit() != 0) ::_exit(1);
        if (i % 100 != 99) continue;  // the ring is not full before
        // Who polls by orrStreamQuery asks the driver now and then whether the card is still there.
        const int round = i / 100 + 1;
        if (orrMemsetAsync(flag, round, 8, stream) != orrSuccess) ::_exit(1);
        while (*static_cast<volatile std::uint8_t*>(flag) != round) {
        }
    }
    ::_exit(0);
}

int spin() {
    orrModule_t module = nullptr;
    orrFunction_t function = nullptr;
    const auto image = umd_test_kernels_image();
    TRY(orrModuleLoadData(&module, image.data(), image.size()));
    TRY(orrModuleGetFunction(&function, module, "spin_for_ever"));
    TRY(orrLaunchKernel(function, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, nullptr));
    return orrDeviceSynchronize() == orrErrorLaunchTimeout ? 0 : 1;
}

// Another user, whose kernels have all cores of some cards until they are told to end: of high priority on
// the last card, or a launch of its own over the second half of them.
int keep_cores(bool of_high_priority) {
    struct stat node{};
    if (::stat("/dev/accel/accel0", &node) != 0 || ::setgid(node.st_gid) != 0 || ::setuid(1001) != 0)
        return 2;
    int cards = 0;
    TRY(orrGetDeviceCount(&cards));
    const int first = of_high_priority ? cards - 1 : cards / 2;
    orrLibrary_t library = nullptr;
    orrFunction_t function = nullptr;
    void* memory = nullptr;
    const auto image = umd_test_kernels_image();
    TRY(orrLibraryLoadData(&library, image.data(), image.size()));
    TRY(orrLibraryGetFunction(&function, library, "meet"));
    TRY(orrMallocHost(&memory, 4096, 0));
    auto* const arrived = static_cast<std::uint64_t*>(memory);
    std::memset(memory, 0, 4096);
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.priority = of_high_priority ? -1 : 0;
    attributes.limit_us = 10'000'000;  // more needs a privilege
    std::vector<orrLaunchParams> parts;
    std::uint32_t groups = 0;
    for (int device = first; device < cards; ++device) {
        orrLaunchParams& part = parts.emplace_back(ORR_INIT(orrLaunchParams));
        part.function = function;
        part.block = {1, 1, 1};
        std::uint32_t cores = 0;
        TRY(orrSetDevice(device));
        TRY(orrStreamCreateWithAttributes(&part.stream, &attributes));
        TRY(orrOccupancyMaxActiveGroups(&cores, function, part.block, 0, 0));
        part.grid = {cores, 1, 1};
        groups += cores;
    }
    // The last one is the host.
    const TestArgs args{arrived, groups + 1, 1};
    std::vector<const orrLaunchParams*> pointers;
    for (orrLaunchParams& part : parts) {
        part.args = &args;
        part.bytes = sizeof(args);
        pointers.push_back(&part);
    }
    if (of_high_priority) {
        const orrLaunchParams& part = parts.front();
        TRY(orrLaunchKernel(function, part.grid, part.block, &args, sizeof(args), 0, part.stream));
    } else {
        TRY(orrLaunchGang(pointers.data(), pointers.size(), 0));
    }
    while (__atomic_load_n(arrived, __ATOMIC_SEQ_CST) < groups) {
        for (const orrLaunchParams& part : parts)
            if (orrStreamQuery(part.stream) != orrErrorNotReady) return 1;  // it has ended without them
        ::usleep(1000);
    }
    std::ofstream("/tmp/cores-kept") << "1\n";
    while (::access("/tmp/cores-free", F_OK) != 0)
        ::usleep(1000);
    __atomic_fetch_add(arrived, 1, __ATOMIC_SEQ_CST);
    for (const orrLaunchParams& part : parts)
        TRY(orrStreamSynchronize(part.stream));
    return 0;
}

}  // namespace

int run_worker(const std::string& name) {
    if (name == "add") return add_steadily();
    if (name == "no-system-calls") return submit_without_system_calls();
    if (name == "spin") return spin();
    if (name == "times") return report_times();
    if (name == "lose-owner") return lose_owner();
    if (name == "watch-memory") return watch_memory();
    if (name == "keep-cores-high") return keep_cores(true);
    if (name == "keep-cores-gang") return keep_cores(false);
    std::fprintf(stderr, "no worker '%s'\n", name.c_str());
    return 2;
}

}  // namespace orrery::umd::vm
