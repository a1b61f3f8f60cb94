// A static ELF program, as qemu-riscv64 runs it, in our interpreter.
#pragma once

#include <string>

#include "emulator/core/hart.h"

namespace orrery::riscv::test {

// Runs it until it exits and returns what it wrote; `input` is what it reads. It may read, write, exit and
// map memory at an address of its own choice. Anything else, and a trap, is an error: the message is in
// `error`.
std::string run_user_program(const std::string& elf, const std::string& input, emu::Config config,
                             std::string& error);

std::string read_file(const std::string& path);

}  // namespace orrery::riscv::test
