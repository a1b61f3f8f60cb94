#include "emulator/card/kernel_modules.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include <fmt/format.h>

namespace orrery::emu {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostPages = (64 << 20) / kPage;  // of a module
constexpr std::uint64_t kMostHeaders = 64;
constexpr std::uint64_t kMostDynamic = 64;
constexpr std::size_t kMostName = 64;

using Read = std::function<bool(std::uint64_t va, std::span<std::uint8_t> out)>;

template <class T>
bool get(const Read& read, std::uint64_t va, T& value) {
    return read(va, {reinterpret_cast<std::uint8_t*>(&value), sizeof value});
}

bool is_module(const Elf64_Ehdr& header) {
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_machine == EM_RISCV && header.e_type == ET_DYN && header.e_phnum <= kMostHeaders &&
           header.e_phentsize == sizeof(Elf64_Phdr);
}

// A debugger opens a file of this name: it must not lead it anywhere else.
std::string name_at(const Read& read, std::uint64_t va) {
    std::string name;
    std::uint8_t byte = 0;
    while (name.size() < kMostName && read(va + name.size(), {&byte, 1}) && byte != 0) {
        const bool plain = std::isalnum(byte) != 0 || std::strchr("._-+", byte) != nullptr;
        if (!plain) return {};
        name.push_back(static_cast<char>(byte));
    }
    return byte == 0 && !name.starts_with('.') ? name : std::string();
}

std::string soname(const Read& read, std::uint64_t base, const Elf64_Phdr& dynamic) {
    std::uint64_t strings = 0;
    std::optional<std::uint64_t> name;
    for (std::uint64_t i = 0; i < std::min(dynamic.p_memsz / sizeof(Elf64_Dyn), kMostDynamic); ++i) {
        Elf64_Dyn entry;
        if (!get(read, base + dynamic.p_vaddr + i * sizeof entry, entry) || entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
        if (entry.d_tag == DT_SONAME) name = entry.d_un.d_val;
    }
    return name ? name_at(read, base + strings + *name) : std::string();
}

}  // namespace

std::optional<KernelModule> find_module(std::uint64_t code, const Read& read) {
    std::uint64_t base = code & ~(kPage - 1);
    Elf64_Ehdr header;
    for (std::uint64_t pages = 0;; ++pages, base -= kPage) {
        if (pages == kMostPages || base == 0) return std::nullopt;
        if (get(read, base, header) && is_module(header)) break;
    }
    KernelModule module;
    module.base = base;
    bool found = false;
    Elf64_Phdr dynamic{};
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (!get(read, base + header.e_phoff + i * sizeof segment, segment)) break;
        if (segment.p_type == PT_DYNAMIC) dynamic = segment;
        if (segment.p_type != PT_LOAD || found) continue;
        found = true;
        module.first = segment.p_vaddr;
    }
    module.name = soname(read, base, dynamic);
    // gdb then says that it has no such file.
    if (module.name.empty()) module.name = fmt::format("module-at-{:x}.elf", base);
    return module;
}

}  // namespace orrery::emu
