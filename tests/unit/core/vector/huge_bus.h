// Two pages of 2 MiB beside what TestBus has.
#pragma once

#include <vector>

#include "tests/unit/core/vector/vector_machine.h"

namespace orrery::emu::test {

inline constexpr std::uint64_t kHuge = 2 << 20, kHere = 0x4000'0000, kThere = kHere + kHuge;
inline constexpr std::uint8_t kAll = kPageRead | kPageWrite | kPageExec;

// Two pages of 2 MiB, `second` before `first` in the host's memory.
class HugeBus : public TestBus {
  public:
    PageRef translate(std::uint64_t va, Access access) override {
        if (va < kHere || va >= kHere + 2 * kHuge) return TestBus::translate(va, access);
        ++translations;
        const std::uint8_t right = access == Access::kLoad    ? kPageRead
                                   : access == Access::kStore ? kPageWrite
                                                              : kPageExec;
        if ((rights & right) == 0) return PageRef::fault();
        return PageRef::memory(at(va & ~(kPageBytes - 1)), rights, PagePlace::kVram, true, whole);
    }
    std::uint8_t* at(std::uint64_t va) { return memory.data() + (va - kHere + moved + kHuge) % (2 * kHuge); }

    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(2 * kHuge);
    std::uint64_t moved = 0;
    std::uint8_t rights = kAll;
    bool whole = true;
};

}  // namespace orrery::emu::test
