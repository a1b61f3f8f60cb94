#include "tools/vm/debug_info.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace orrery::vm {

namespace {

constexpr std::size_t kMostPadding = std::size_t{1} << 20;

bool lies_in(std::string_view elf, std::uint64_t at, std::uint64_t bytes) {
    return at <= elf.size() && bytes <= elf.size() - at;
}

bool is_debug_name(std::string_view name) {
    if (name.starts_with(".rela")) name.remove_prefix(5);
    return name.starts_with(".debug_") || name == ".gdb_index";
}

// Where what is loaded ends; a relocatable file has no such part. 0: it makes no sense.
std::uint64_t end_of_segments(std::string_view elf, const Elf64_Ehdr& header) {
    std::uint64_t end = sizeof header;
    if (header.e_phnum == 0) return end;
    if (header.e_phentsize != sizeof(Elf64_Phdr) ||
        !lies_in(elf, header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)))
        return 0;
    end = std::max(end, header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr));
    for (std::size_t n = 0; n < header.e_phnum; ++n) {
        Elf64_Phdr segment;
        std::memcpy(&segment, elf.data() + header.e_phoff + n * sizeof segment, sizeof segment);
        if (!lies_in(elf, segment.p_offset, segment.p_filesz)) return 0;
        end = std::max(end, segment.p_offset + segment.p_filesz);
    }
    return end;
}

}  // namespace

std::string without_debug_info(std::string_view elf) {
    Elf64_Ehdr header;
    if (elf.size() < sizeof header) return std::string(elf);
    std::memcpy(&header, elf.data(), sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum ||
        !lies_in(elf, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
        return std::string(elf);
    const std::uint64_t loaded = end_of_segments(elf, header);
    if (loaded == 0) return std::string(elf);
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    std::memcpy(sections.data(), elf.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
    const Elf64_Shdr names = sections[header.e_shstrndx];
    if (names.sh_type == SHT_NOBITS) return std::string(elf);
    for (const auto& section : sections)
        if ((section.sh_type != SHT_NOBITS && !lies_in(elf, section.sh_offset, section.sh_size)) ||
            section.sh_name >= names.sh_size)
            return std::string(elf);

    std::string slim(elf.substr(0, loaded));
    for (auto& section : sections) {
        const std::string_view name(
            elf.data() + names.sh_offset + section.sh_name,
            strnlen(elf.data() + names.sh_offset + section.sh_name, names.sh_size - section.sh_name));
        if ((section.sh_flags & SHF_ALLOC) == 0 && is_debug_name(name)) section.sh_size = 0;
        if (section.sh_type == SHT_NOBITS || section.sh_size == 0) {
            section.sh_offset = std::min<std::uint64_t>(section.sh_offset, loaded);
            continue;
        }
        if (section.sh_offset + section.sh_size <= loaded) continue;
        const std::uint64_t align = std::clamp<std::uint64_t>(section.sh_addralign, 1, 4096);
        slim.resize((slim.size() + align - 1) / align * align);
        const std::uint64_t at = slim.size();
        slim.append(elf.substr(section.sh_offset, section.sh_size));
        if (slim.size() > elf.size() + kMostPadding) return std::string(elf);  // they overlap
        section.sh_offset = at;
    }
    slim.resize((slim.size() + 7) / 8 * 8);
    header.e_shoff = slim.size();
    std::memcpy(slim.data(), &header, sizeof header);
    slim.append(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof(Elf64_Shdr));
    return slim;
}

}  // namespace orrery::vm
