#include "tools/step/program/debugger_elf.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace orrery::step {
namespace {

// A list of what is harmful would never be complete: gdb also takes .zdebug_gdb_scripts for
// .debug_gdb_scripts, and what .gnu_debugdata unpacks to is a file with sections of its own.
constexpr std::array<std::string_view, 15> kServed = {
    ".debug_abbrev", ".debug_addr",     ".debug_frame",    ".debug_info",   ".debug_line",
    ".debug_loc",    ".debug_loclists", ".debug_line_str", ".debug_ranges", ".debug_rnglists",
    ".debug_str",    ".debug_types",    ".strtab",         ".symtab",       ".debug_str_offsets"};

bool is_served(const GElf_Shdr& header, std::string_view name) {
    if (header.sh_type != SHT_PROGBITS && header.sh_type != SHT_SYMTAB && header.sh_type != SHT_STRTAB)
        return false;
    return std::ranges::find(kServed, name) != kServed.end();
}

// Sections keep their numbers, because symbols name them by these. Nothing is copied that has not been
// understood: the file's header and the names of sections are written anew.
class Rebuilt {
  public:
    explicit Rebuilt(std::size_t most) : most_(most), bytes_(sizeof(Elf64_Ehdr)), sections_(1) {}

    void add_unused() { sections_.emplace_back(); }
    bool add(const GElf_Shdr& header, std::string_view name, std::span<const std::uint8_t> contents) {
        // In a file that tells the truth no two sections are the same bytes.
        if (contents.size() + name.size() > most_) return false;
        most_ -= contents.size() + name.size();
        Elf64_Shdr& section = sections_.emplace_back(header);
        section.sh_name = static_cast<Elf64_Word>(names_.size());
        names_.append(name).push_back('\0');
        bytes_.resize((bytes_.size() + 7) / 8 * 8);
        section.sh_offset = bytes_.size();
        bytes_.insert(bytes_.end(), contents.begin(), contents.end());
        return true;
    }
    std::vector<std::uint8_t> finish(const GElf_Ehdr& of) {
        Elf64_Shdr names{};
        names.sh_name = static_cast<Elf64_Word>(names_.size());
        names.sh_type = SHT_STRTAB;
        names.sh_addralign = 1;
        names_.append(".shstrtab").push_back('\0');
        names.sh_offset = bytes_.size();
        names.sh_size = names_.size();
        bytes_.insert(bytes_.end(), names_.begin(), names_.end());
        sections_.push_back(names);
        bytes_.resize((bytes_.size() + 7) / 8 * 8);
        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, of.e_ident, EI_NIDENT);
        header.e_type = of.e_type;
        header.e_machine = of.e_machine;
        header.e_version = EV_CURRENT;
        header.e_entry = of.e_entry;
        header.e_flags = of.e_flags;
        header.e_ehsize = sizeof header;
        header.e_shoff = bytes_.size();
        header.e_shentsize = sizeof(Elf64_Shdr);
        header.e_shnum = static_cast<Elf64_Half>(sections_.size());
        header.e_shstrndx = static_cast<Elf64_Half>(sections_.size() - 1);
        const auto* begin = reinterpret_cast<const std::uint8_t*>(sections_.data());
        bytes_.insert(bytes_.end(), begin, begin + sections_.size() * sizeof(Elf64_Shdr));
        std::memcpy(bytes_.data(), &header, sizeof header);
        return std::move(bytes_);
    }

  private:
    std::size_t most_;  // bytes of contents and names
    std::vector<std::uint8_t> bytes_;
    std::vector<Elf64_Shdr> sections_;
    std::string names_ = std::string(1, '\0');
};

}  // namespace

std::vector<std::uint8_t> elf_for_debugger(std::vector<std::uint8_t>& elf) {
    elf_version(EV_CURRENT);
    const std::unique_ptr<Elf, int (*)(Elf*)> handle(
        elf_memory(reinterpret_cast<char*>(elf.data()), elf.size()), elf_end);
    GElf_Ehdr header;
    std::size_t count = 0, names = 0;
    if (!handle || gelf_getehdr(handle.get(), &header) == nullptr || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || elf_getshdrnum(handle.get(), &count) != 0 ||
        count + 1 >= SHN_LORESERVE || elf_getshdrstrndx(handle.get(), &names) != 0)
        return {};
    Rebuilt out(elf.size());
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(handle.get(), section)) != nullptr;) {
        GElf_Shdr from;
        if (gelf_getshdr(section, &from) == nullptr) return {};
        const char* name = elf_strptr(handle.get(), names, from.sh_name);
        if (name != nullptr && (from.sh_flags & SHF_ALLOC) != 0) {
            from.sh_type = SHT_NOBITS;
            from.sh_flags &= ~std::uint64_t{SHF_COMPRESSED};
            from.sh_link = from.sh_info = 0;
            if (!out.add(from, name, {})) return {};
        } else if (name != nullptr && is_served(from, name)) {
            const Elf_Data* data = elf_rawdata(section, nullptr);
            if (data == nullptr) return {};
            from.sh_size = data->d_buf == nullptr ? 0 : data->d_size;
            if (!out.add(from, name, {static_cast<const std::uint8_t*>(data->d_buf), from.sh_size}))
                return {};
        } else {
            out.add_unused();
        }
    }
    return out.finish(header);
}

}  // namespace orrery::step
