// Random programs that end: straight code with forward branches in a counted loop, loads and stores near
// three base registers that nothing else writes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace orrery::emu::test {

struct ProgramOptions {
    bool fp = false;
    bool compressed = true;
    bool atomics = true;
    unsigned instructions = 200;
    unsigned rounds = 3;
};

struct Program {
    std::vector<std::uint8_t> code;  // falls off its end when done
    std::vector<std::uint32_t> listing;
};

// sp, s0 and s1 must point into memory with 2 KiB + 8 bytes around them, 8-byte aligned; s0 also 4 KiB in.
// x31 and x30 are the loop's own.
Program make_program(std::mt19937_64& random, const ProgramOptions& options);

// Integer and FP operands that find mistakes more often than uniform ones.
std::uint64_t interesting_integer(std::mt19937_64& random);
std::uint64_t interesting_double(std::mt19937_64& random);
std::uint32_t interesting_float(std::mt19937_64& random);

}  // namespace orrery::emu::test
