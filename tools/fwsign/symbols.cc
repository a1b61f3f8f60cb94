// SPDX-License-Identifier: MIT
#include "tools/fwsign/symbols.h"

#include <elf.h>
#include <fmt/format.h>
#include <orrery/hw/trace.h>
#include <sodium.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace orrery::fwsign {
namespace {

constexpr std::size_t kMostFile = 64 << 20;
constexpr int kLevel = 19;  // once a build, and then in every recording
constexpr std::string_view kElfName = "orrery-fw.elf";
constexpr std::string_view kLeftOut = ".debug_aranges";  // no reader needs it

struct Sections {
    Elf64_Ehdr header{};
    std::vector<Elf64_Shdr> all;
    std::vector<std::string_view> names;
};

// Of an ELF that a linker of ours wrote; anything else is refused.
std::expected<Sections, std::string> sections_of(const Bytes& elf) {
    Sections out;
    if (elf.size() < sizeof out.header) return std::unexpected("this is no ELF");
    std::memcpy(&out.header, elf.data(), sizeof out.header);
    const Elf64_Ehdr& h = out.header;
    if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64)
        return std::unexpected("this is no ELF of 64 bits");
    if (h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shnum == 0 || h.e_shstrndx >= h.e_shnum ||
        h.e_shoff > elf.size() || elf.size() - h.e_shoff < std::size_t{h.e_shnum} * sizeof(Elf64_Shdr))
        return std::unexpected("its section headers make no sense");
    out.all.resize(h.e_shnum);
    std::memcpy(out.all.data(), elf.data() + h.e_shoff, out.all.size() * sizeof(Elf64_Shdr));
    for (const Elf64_Shdr& section : out.all) {
        if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
        if (section.sh_offset > elf.size() || section.sh_size > elf.size() - section.sh_offset)
            return std::unexpected("a section lies outside the file");
    }
    const Elf64_Shdr& strings = out.all[h.e_shstrndx];
    const auto* text = reinterpret_cast<const char*>(elf.data() + strings.sh_offset);
    for (const Elf64_Shdr& section : out.all) {
        if (section.sh_name >= strings.sh_size) return std::unexpected("a section has no name");
        out.names.emplace_back(text + section.sh_name,
                               strnlen(text + section.sh_name, strings.sh_size - section.sh_name));
    }
    return out;
}

void append(Bytes& to, const void* from, std::size_t bytes) {
    const auto* begin = static_cast<const std::uint8_t*>(from);
    to.insert(to.end(), begin, begin + bytes);
}

void append_file(Bytes& to, const std::string& name, const Bytes& contents) {
    orr_otrace_file file{};
    file.name_bytes = static_cast<std::uint32_t>(name.size());
    file.bytes = static_cast<std::uint32_t>(contents.size());
    append(to, &file, sizeof file);
    append(to, name.data(), name.size());
    append(to, contents.data(), contents.size());
}

}  // namespace

std::expected<Bytes, std::string> slim_elf(Bytes elf) {
    auto sections = sections_of(elf);
    if (!sections) return std::unexpected(sections.error());
    Bytes out(sizeof(Elf64_Ehdr));
    for (std::size_t n = 0; n < sections->all.size(); ++n) {
        Elf64_Shdr& section = sections->all[n];
        if (section.sh_type == SHT_NULL) continue;
        if ((section.sh_flags & SHF_ALLOC) != 0) {
            section.sh_type = SHT_NOBITS;
            section.sh_offset = out.size();
            continue;
        }
        const std::uint64_t from = section.sh_offset;
        if (sections->names[n] == kLeftOut) section.sh_size = 0;
        out.resize((out.size() + 7) / 8 * 8);
        section.sh_offset = out.size();
        append(out, elf.data() + from, section.sh_type == SHT_NOBITS ? 0 : section.sh_size);
    }
    out.resize((out.size() + 7) / 8 * 8);
    Elf64_Ehdr header = sections->header;
    header.e_phoff = 0;
    header.e_phnum = 0;
    header.e_shoff = out.size();
    append(out, sections->all.data(), sections->all.size() * sizeof(Elf64_Shdr));
    std::memcpy(out.data(), &header, sizeof header);
    return out;
}

std::expected<Bytes, std::string> code_hash(const Bytes& elf) {
    const auto sections = sections_of(elf);
    if (!sections) return std::unexpected(sections.error());
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    bool any = false;
    for (const Elf64_Shdr& section : sections->all) {
        if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_EXECINSTR) == 0) continue;
        crypto_hash_sha256_update(&state, reinterpret_cast<const std::uint8_t*>(&section.sh_addr),
                                  sizeof section.sh_addr);
        crypto_hash_sha256_update(&state, elf.data() + section.sh_offset, section.sh_size);
        any = true;
    }
    if (!any) return std::unexpected("it has no code");
    Bytes hash(crypto_hash_sha256_BYTES);
    crypto_hash_sha256_final(&state, hash.data());
    return hash;
}

std::expected<Bytes, std::string> pack_symbols(const SymbolOptions& options) {
    const auto elf = read_file(options.elf, kMostFile);
    if (!elf) return std::unexpected(elf.error());
    const auto wrong = [&](const std::string& reason) {
        return std::unexpected(fmt::format("{}: {}", options.elf.string(), reason));
    };
    const auto hash = code_hash(*elf);
    if (!hash) return wrong(hash.error());
    const auto slim = slim_elf(*elf);
    if (!slim) return wrong(slim.error());

    Bytes files;
    append_file(files, std::string(kElfName), *slim);
    for (const auto& path : options.files) {
        const auto contents = read_file(path, kMostFile);
        if (!contents) return std::unexpected(contents.error());
        append_file(files, std::filesystem::relative(path, options.root).generic_string(), *contents);
    }

    orr_otrace_symbols head{};
    head.magic = ORR_OTRACE_SYMBOLS_MAGIC;
    head.version = ORR_OTRACE_SYMBOLS_VERSION;
    head.files = static_cast<std::uint32_t>(options.files.size() + 1);
    head.raw_bytes = files.size();
    std::memcpy(head.build_id, options.build_id.data(),
                std::min(options.build_id.size(), sizeof head.build_id));
    std::ranges::copy(*hash, head.code_sha256);
    Bytes out(sizeof head + ZSTD_compressBound(files.size()));
    const std::size_t packed =
        ZSTD_compress(out.data() + sizeof head, out.size() - sizeof head, files.data(), files.size(), kLevel);
    if (ZSTD_isError(packed) != 0) return wrong(ZSTD_getErrorName(packed));
    out.resize(sizeof head + packed);
    if (out.size() > ORR_OTRACE_MAX_BLOCK)
        return wrong(fmt::format("its symbols and sources take {} bytes, and a recording has room for {}",
                                 out.size(), ORR_OTRACE_MAX_BLOCK));
    std::memcpy(out.data(), &head, sizeof head);
    return out;
}

}  // namespace orrery::fwsign
