// What a handler does first, for those who do instructions in one go without calling their handlers
// (vector/run.cc): there is nothing else in an Op that says which instruction it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "emulator/core/op.h"

namespace orrery::emu {

struct KnownHandler {
    Handler fn = nullptr;
    OpCode code = OpCode::kCount;
    std::uint8_t length = 0;  // in halfwords
};

// Of what keeps the count of a loop: additions and moves, also as the first of a pair (handlers_pair.cc),
// branches in a page, and vset{i}vl{i}.
class KnownHandlers {
  public:
    KnownHandlers();
    // nullptr: another one. The rest of its Op is that of the instruction.
    const KnownHandler* find(Handler fn) const {
        for (std::size_t at = place_of(fn);; at = (at + 1) % kSlots) {
            if (slots_[at].fn == fn) return &slots_[at];
            if (slots_[at].fn == nullptr) return nullptr;
        }
    }

  private:
    static constexpr unsigned kLog2 = 11;
    static constexpr std::size_t kSlots = std::size_t{1} << kLog2;
    static std::size_t place_of(Handler fn) {
        constexpr std::uint64_t kFibonacci = 0x9e37'79b9'7f4a'7c15;
        return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(fn) * kFibonacci >> (64 - kLog2));
    }
    void add(const KnownHandler& one);

    std::array<KnownHandler, kSlots> slots_{};
    std::size_t used_ = 0;
};
const KnownHandlers& known_handlers();

}  // namespace orrery::emu
