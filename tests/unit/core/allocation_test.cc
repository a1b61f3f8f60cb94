// run() does not allocate: not for new pages, not for new code, not for exceptions.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"

namespace {
std::atomic<std::uint64_t> allocations{0};
}

void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace orrery::emu::test {
namespace {

TEST(Allocation, RunDoesNotAllocate) {
    Config config = fp_config();
    config.code_pages = 2;
    Machine m(config);
    // Walks through all of RAM as code and as data, then into nothing; the handler starts again.
    for (std::uint64_t va = kRam; va < kRam + kRamBytes; va += 8)
        m.bus.put_code(va, {addi(a0, a0, 8), sd(a1, a0, 0)});
    m.bus.put_code(kRam, {csrw(kCsrMtvec, a2), csrrwi(x0, kCsrFcsr, 4), fdiv_d(1, 2, 3), auipc(a0, 0)});
    m.hart.set_x(a2, kRam);
    const std::uint64_t before = allocations;
    m.hart.run(1'000'000);
    EXPECT_EQ(allocations - before, 0u);
    EXPECT_NE(m.hart.state().mcause, 0u);
    // The counter does count.
    const auto something = std::make_unique<int>(1);
    EXPECT_EQ(allocations - before, 1u) << *something;
}

}  // namespace
}  // namespace orrery::emu::test
