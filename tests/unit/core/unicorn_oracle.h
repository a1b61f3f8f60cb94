// Unicorn as a second opinion.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "emulator/core/hart.h"
#include "tests/unit/core/instruction_class.h"

struct uc_struct;

namespace orrery::emu::test {

class UnicornOracle {
  public:
    // `ram` is mapped at `base`; both multiples of 4 KiB, and used in place.
    UnicornOracle(std::uint64_t base, std::span<std::uint8_t> ram);
    ~UnicornOracle();
    UnicornOracle(const UnicornOracle&) = delete;
    UnicornOracle& operator=(const UnicornOracle&) = delete;

    // x, f (if fp), fcsr and pc of `state`.
    void set(const HartState& state, bool fp);
    HartState get(bool fp) const;
    // Executes `count` instructions, or fewer if pc reaches `until`. Empty, or what went wrong.
    std::string run(std::uint64_t until, std::uint64_t count);
    // The same, looking at each instruction before it is executed: what they were.
    std::string run(std::uint64_t until, std::uint64_t count, ClassCounts& executed);

  private:
    uc_struct* uc_ = nullptr;
    std::uint64_t base_;
    std::uint64_t size_;
    std::span<const std::uint8_t> ram_;
};

}  // namespace orrery::emu::test
