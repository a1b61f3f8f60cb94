#include "emulator/core/known.h"

#include "emulator/core/decode.h"

namespace orrery::emu {

void KnownHandlers::add(const KnownHandler& one) {
    // A search ends at a place that is free. What is not known is done by its handler.
    if (used_ + 1 == kSlots) return;
    std::size_t at = place_of(one.fn);
    while (slots_[at].fn != nullptr && slots_[at].fn != one.fn)
        at = (at + 1) % kSlots;
    used_ += slots_[at].fn == nullptr;
    slots_[at] = one;
}

KnownHandlers::KnownHandlers() {
    const HandlerTable& table = handler_table();
    for (const OpCode code :
         {OpCode::kAdd, OpCode::kSub, OpCode::kAddi, OpCode::kMv, OpCode::kBeqNear, OpCode::kBneNear,
          OpCode::kBltNear, OpCode::kBgeNear, OpCode::kBltuNear, OpCode::kBgeuNear, OpCode::kVectorConfig}) {
        for (const std::uint8_t length : {std::uint8_t{1}, std::uint8_t{2}}) {
            const Handler alone = table.of[static_cast<std::size_t>(code)][length - 1];
            if (alone != nullptr) add({alone, code, length});
            for (const Handler pair : pair_handlers(code, length))
                add({pair, code, length});
        }
    }
}

const KnownHandlers& known_handlers() {
    static const KnownHandlers all;
    return all;
}

}  // namespace orrery::emu
