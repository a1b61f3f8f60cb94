// The blocks with which a core begins: START, and RESUME, which is a START behind a state.
#pragma once

#include <cstddef>
#include <cstdint>

#include <orrery/hw/trace.h>

namespace orrery::emu {

inline bool begins_core(std::uint32_t kind) {
    return kind == ORR_OTRACE_START || kind == ORR_OTRACE_RESUME;
}
// Bytes of the payload before its struct orr_otrace_start.
inline std::size_t resume_bytes(std::uint32_t kind) {
    return kind == ORR_OTRACE_RESUME ? sizeof(orr_otrace_resume) : 0;
}

}  // namespace orrery::emu
