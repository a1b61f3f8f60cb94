// Which module the code of a kernel comes from: its ELF header and its name are among what was loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace orrery::emu {

struct KernelModule {
    std::uint64_t base = 0;   // where its address 0 is
    std::uint64_t first = 0;  // address of its first segment
    std::string name;         // a file's, without folders
    bool operator==(const KernelModule&) const = default;
};

// `read` says false where nothing can be read. What stands in memory is a guest's, and nothing of it is
// believed. Nothing: there is no module of orrery-cc around `code`.
std::optional<KernelModule> find_module(
    std::uint64_t code, const std::function<bool(std::uint64_t va, std::span<std::uint8_t> out)>& read);

}  // namespace orrery::emu
