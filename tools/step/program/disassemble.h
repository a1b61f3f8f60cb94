// RV64IMAC, Zicsr and Zifencei as text. (The disassembler that Debian 12 packages does not know RISC-V.)
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace orrery::step {

struct Instruction {
    std::string text;  // "addi a0, a0, 16"; ".half 0x1234" if it is none
    unsigned bytes = 4;
};
// `bits`: the halfword at `pc` in 15:0, the next in 31:16. `symbol` names targets of jumps; may be empty.
Instruction disassemble(std::uint32_t bits, std::uint64_t pc,
                        const std::function<std::string(std::uint64_t)>& symbol);

const char* register_name(unsigned number);  // ABI name: "a0"; number < 32
std::string csr_name(std::uint32_t number);

}  // namespace orrery::step
