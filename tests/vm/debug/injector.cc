#include "tests/vm/debug/injector.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace orrery::kmod_test {

namespace {

constexpr unsigned kMaxPoints = 100'000;

constexpr const char* kKinds[] = {"failslab", "fail_page_alloc", "fail_usercopy"};

void set(const std::string& path, const std::string& value) {
    std::ofstream file("/sys/kernel/debug/" + path);
    file << value << std::flush;
    EXPECT_TRUE(file.good()) << path;
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
    std::ifstream symbols("/proc/kallsyms");
    std::string begin;
    for (std::string address, type, name, rest; symbols >> address >> type >> name;
         std::getline(symbols, rest)) {
        if (begin.empty() && name == function) {
            begin = "0x" + address;
        } else if (!begin.empty() && "0x" + address != begin) {
            for (const char* kind : kKinds) {
                set(std::string(kind) + "/reject-start", begin);
                set(std::string(kind) + "/reject-end", "0x" + address);
            }
            return;
        }
    }
    ADD_FAILURE() << "the kernel has no function " << function;
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
