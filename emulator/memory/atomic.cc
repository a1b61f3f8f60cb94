#include "emulator/memory/atomic.h"

#include <algorithm>
#include <atomic>
#include <type_traits>

#include <orrery/hw/link.h>

namespace orrery::emu {

namespace {

template <class Word>
Word result_of(std::uint32_t function, Word old, Word operand, Word compare) {
    using Signed = std::make_signed_t<Word>;
    const auto s = [](Word word) { return static_cast<Signed>(word); };
    switch (function) {
        case ORR_ATOMIC_ADD:
            return old + operand;
        case ORR_ATOMIC_SWAP:
            return operand;
        case ORR_ATOMIC_COMPARE_SWAP:
            return old == compare ? operand : old;
        case ORR_ATOMIC_MIN:
            return s(operand) < s(old) ? operand : old;
        case ORR_ATOMIC_MAX:
            return s(operand) > s(old) ? operand : old;
        case ORR_ATOMIC_UMIN:
            return std::min(operand, old);
        case ORR_ATOMIC_UMAX:
            return std::max(operand, old);
        case ORR_ATOMIC_XOR:
            return old ^ operand;
        case ORR_ATOMIC_AND:
            return old & operand;
        case ORR_ATOMIC_OR:
            return old | operand;
        default:
            return old;
    }
}

template <class Word>
std::uint64_t carry_out(std::uint8_t* at, const LinkAtomic& atomic) {
    std::atomic_ref word(*reinterpret_cast<Word*>(at));
    Word old = word.load(std::memory_order_acquire);
    const auto operand = static_cast<Word>(atomic.operand), compare = static_cast<Word>(atomic.compare);
    while (!word.compare_exchange_weak(old, result_of(atomic.function, old, operand, compare),
                                       std::memory_order_acq_rel, std::memory_order_acquire)) {
    }
    return old;
}

}  // namespace

std::uint64_t atomic_on(std::uint8_t* at, const LinkAtomic& atomic) {
    return atomic.bytes == 4 ? carry_out<std::uint32_t>(at, atomic) : carry_out<std::uint64_t>(at, atomic);
}

}  // namespace orrery::emu
