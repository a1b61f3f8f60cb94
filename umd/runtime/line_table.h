// Which source line an instruction of a module is from: the line tables (DWARF 2 to 5) that `orrery-cc -g`
// leaves in it. They come from a file, and nothing in them is believed: what cannot be right has no line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::umd {

// Sections of the file, as they stand in it; empty: it has none.
struct LineTables {
    std::vector<std::byte> line;      // .debug_line
    std::vector<std::byte> line_str;  // .debug_line_str
    std::vector<std::byte> str;       // .debug_str

    static LineTables of(std::span<const std::byte> elf_file);
    // "gemm.cc:42" for the instruction at this offset from the load address; empty: not known.
    std::string find(std::uint64_t offset) const;
    // Of a function of so many bytes there: its first line in the file that was compiled, past what is
    // inlined from others.
    std::string find_function(std::uint64_t offset, std::uint64_t bytes) const;
};

}  // namespace orrery::umd
