#include "tests/vm/umd/helpers.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <orrery/embedded_kernel.hpp>

ORR_EMBEDDED_KERNEL(umd_test_kernels);

namespace orrery::umd::vm {

std::vector<std::uint8_t> random_bytes(std::size_t size, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> bytes(size);
    for (auto& byte : bytes)
        byte = static_cast<std::uint8_t>(random());
    return bytes;
}

Card::Card(int number, std::uint32_t limit_us) : device(number), limit_us_(limit_us) {
    EXPECT_OK(orrSetDevice(device));
    const auto image = umd_test_kernels_image();
    EXPECT_OK(orrModuleLoadData(&module, image.data(), image.size()));
    make_stream();
}

void Card::make_stream() {
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.limit_us = limit_us_;
    EXPECT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
}

Card::~Card() {
    EXPECT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrModuleUnload(module));
}

orrFunction_t Card::kernel(const char* name) const {
    orrFunction_t function = nullptr;
    EXPECT_OK(orrModuleGetFunction(&function, module, name));
    return function;
}

orrError_t Card::launch(const char* name, const TestArgs& args, std::uint32_t groups, std::uint32_t items,
                        std::size_t local) const {
    return orrLaunchKernel(kernel(name), {groups, 1, 1}, {items, 1, 1}, &args, sizeof(args), local, stream);
}

void Card::renew_stream() {
    EXPECT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrSetDevice(device));
    make_stream();
}

pid_t start_worker(const std::string& worker) {
    std::string program = "umd_vm_test", argument = "--worker=" + worker;
    char* arguments[] = {program.data(), argument.data(), nullptr};
    pid_t child = -1;
    EXPECT_EQ(::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ), 0);
    return child;
}

int wait_for(pid_t worker) {
    int status = 0;
    while (::waitpid(worker, &status, 0) < 0) {
        if (errno != EINTR) return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace orrery::umd::vm
