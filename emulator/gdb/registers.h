// The registers of a hart as gdb numbers them.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/core/hart.h"

namespace orrery::emu::gdb {

// In the packet with all registers: x0 to x31 and pc.
inline constexpr unsigned kGeneralRegisters = 33;

// false: there is no such register.
bool read_register(const HartState& state, std::uint64_t number, std::uint64_t& value);
// false: there is none, or it cannot be written.
bool write_register(HartState& state, std::uint64_t number, std::uint64_t value);
// The target description that gdb asks for.
const std::string& target_description();

}  // namespace orrery::emu::gdb
