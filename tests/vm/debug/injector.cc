#include "tests/vm/debug/injector.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace orrery::kmod_test {

namespace {

constexpr unsigned kMaxPoints = 100'000;

constexpr const char* kKinds[] = {"failslab", "fail_page_alloc", "fail_usercopy"};

void set(const std::string& path, const std::string& value) {
    std::ofstream file("/sys/kernel/debug/" + path);
    file << value << std::flush;
    EXPECT_TRUE(file.good()) << path;
}

// Where a function lies: from its first byte to that of the next.
std::pair<std::string, std::string> range_of(const std::string& function) {
    std::ifstream symbols("/proc/kallsyms");
    std::vector<std::uint64_t> all;
    std::uint64_t begin = 0;
    for (std::string address, type, name, rest; symbols >> address >> type >> name;
         std::getline(symbols, rest)) {
        all.push_back(std::stoull(address, nullptr, 16));
        if (name == function) begin = all.back();
    }
    EXPECT_NE(begin, 0u) << "the kernel has no function " << function;
    std::uint64_t end = ~std::uint64_t{0};
    for (const std::uint64_t address : all)
        if (address > begin && address < end) end = address;
    return {fmt::format("{:#x}", begin), fmt::format("{:#x}", end)};
}

// Where a module lies.
std::pair<std::string, std::string> range_of_module(const std::string& module) {
    std::ifstream modules("/proc/modules");
    for (std::string line; std::getline(modules, line);) {
        std::istringstream words(line);
        std::string name, size, users, by, state, address;
        words >> name >> size >> users >> by >> state >> address;
        if (name != module) continue;
        // Its code; its data, which is counted in the size, lies elsewhere.
        const std::uint64_t begin = std::stoull(address, nullptr, 16);
        return {fmt::format("{:#x}", begin), fmt::format("{:#x}", begin + std::stoull(size))};
    }
    ADD_FAILURE() << "the kernel has no module " << module;
    return {"0", "0"};
}

}  // namespace

Injector::Injector() : nth_(::open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC)) {
    EXPECT_TRUE(nth_) << "this kernel injects no failures: " << std::strerror(errno);
    // By default only those allocations fail that may not sleep.
    set("failslab/ignore-gfp-wait", "N");
    set("fail_page_alloc/ignore-gfp-wait", "N");
    set("fail_page_alloc/ignore-gfp-highmem", "N");
    set("fail_page_alloc/min-order", "0");
    for (const char* kind : kKinds)
        set(std::string(kind) + "/verbose", "0");
}

void Injector::spare(const std::string& function) {
    const auto [begin, end] = range_of(function);
    for (const char* kind : kKinds) {
        set(std::string(kind) + "/reject-start", begin);
        set(std::string(kind) + "/reject-end", end);
    }
}

void Injector::only_below(const std::string& module) {
    const auto [begin, end] = range_of_module(module);
    for (const char* kind : kKinds) {
        const std::string folder = std::string(kind) + "/";
        set(folder + "stacktrace-depth", "32");
        set(folder + "require-start", begin);
        set(folder + "require-end", end);
    }
}

void Injector::below_anything() {
    for (const char* kind : kKinds) {
        set(std::string(kind) + "/require-start", "0");
        set(std::string(kind) + "/require-end", "0xffffffffffffffff");
    }
}

void Injector::fail_all_in(const std::string& function) {
    const auto [begin, end] = range_of(function);
    for (const char* kind : kKinds) {
        const std::string folder = std::string(kind) + "/";
        set(folder + "require-start", begin);
        set(folder + "require-end", end);
        set(folder + "stacktrace-depth", "32");
        set(folder + "times", std::to_string(kMaxPoints));
        set(folder + "probability", "100");
    }
}

unsigned Injector::stop_all() {
    unsigned failed = 0;
    for (const char* kind : kKinds) {
        const std::string folder = std::string(kind) + "/";
        set(folder + "probability", "0");
        unsigned left = 0;
        std::ifstream("/sys/kernel/debug/" + folder + "times") >> left;
        failed += kMaxPoints - left;
        set(folder + "times", "1");
    }
    below_anything();
    return failed;
}

bool Injector::fail_nth(unsigned n, const std::function<void()>& action) {
    const std::string text = std::to_string(n);
    failed_ = false;
    running_ = ::pwrite(nth_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
    EXPECT_TRUE(running_) << "fail-nth cannot be set: " << std::strerror(errno);
    if (!running_) return false;
    action();
    stop();
    return failed_;
}

void Injector::stop() {
    if (!running_) return;
    running_ = false;
    char left[16] = {};
    // If it is this read that fails, the action had one point less.
    failed_ = ::pread(nth_.get(), left, sizeof left - 1, 0) > 0 && std::stoi(left) == 0;
    // And this is what fails if it has exactly one more left.
    const bool off = ::pwrite(nth_.get(), "0", 1, 0) == 1 || ::pwrite(nth_.get(), "0", 1, 0) == 1;
    EXPECT_TRUE(off);
}

unsigned Injector::each_point(const std::function<void(unsigned n)>& action) {
    for (unsigned n = 1; n <= kMaxPoints; n++)
        if (!fail_nth(n, [&] { action(n); })) return n - 1;
    ADD_FAILURE() << "no end of points that can fail";
    return kMaxPoints;
}

}  // namespace orrery::kmod_test
