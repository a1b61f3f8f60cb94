// Vector instructions as text, in the notation of llvm-mc -M no-aliases.
#pragma once

#include <cstdint>
#include <string>

namespace orrery::riscv::test {

// "" if the table has no such instruction.
std::string disassemble(std::uint32_t bits);

}  // namespace orrery::riscv::test
