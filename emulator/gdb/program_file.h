// The one file that a debugger can read over its connection: the ELF of what runs. So it needs none of its
// own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace orrery::emu::gdb {

inline constexpr std::string_view kProgramPath = "/orrery-fw.elf";

// The answer to vFile:REQUEST, of gdb's host I/O packets those with which it reads. Nothing is kept between
// two of them: there is only one descriptor. An empty answer: there is no such request.
std::string program_file(std::string_view request, std::span<const std::uint8_t> file);

}  // namespace orrery::emu::gdb
