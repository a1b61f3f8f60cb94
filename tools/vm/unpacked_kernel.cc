#include "tools/vm/unpacked_kernel.h"

#include <elf.h>
#include <zstd.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "tools/vm/files.h"
#include "tools/vm/value_at.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostUnpacked = std::size_t{512} << 20;
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

// Documentation/arch/x86/boot.rst: the payload lies behind the sectors of the setup code.
std::string_view payload_of(std::string_view image) {
    constexpr std::size_t kSetupSectors = 0x1f1, kMagic = 0x202, kPayloadOffset = 0x248,
                          kPayloadLength = 0x24c;
    const auto offset = value_at<std::uint32_t>(image, kPayloadOffset);
    const auto length = value_at<std::uint32_t>(image, kPayloadLength);
    if (!offset || !length || image.substr(kMagic, 4) != "HdrS") return {};
    const auto sectors = static_cast<unsigned char>(image[kSetupSectors]);
    const std::size_t at = (std::size_t{sectors == 0 ? 4u : sectors} + 1) * 512 + *offset;
    if (at > image.size()) return {};
    return image.substr(at, *length);
}

// What is behind the frame, the kernel's build puts the size there, is left alone.
std::optional<std::string> unzstd(std::string_view packed) {
    if (!packed.starts_with(kZstdMagic)) return std::nullopt;
    const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
    if (!context) return std::nullopt;
    constexpr std::size_t kStep = std::size_t{256} << 10;
    std::string text;
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    for (;;) {
        const std::size_t had = text.size(), read = in.pos;
        if (had >= kMostUnpacked) return std::nullopt;
        text.resize(had + kStep);
        ZSTD_outBuffer out{text.data() + had, kStep, 0};
        const std::size_t left = ZSTD_decompressStream(context.get(), &out, &in);
        text.resize(had + out.pos);
        if (left == 0) return text;
        if (ZSTD_isError(left) != 0 || (out.pos == 0 && in.pos == read)) return std::nullopt;
    }
}

// Xen's note of the entry for PVH (xen/interface/elfnote.h: XEN_ELFNOTE_PHYS32_ENTRY).
bool has_pvh_entry(std::string_view notes) {
    constexpr std::uint32_t kPhys32Entry = 18;
    for (std::size_t at = 0; const auto note = value_at<Elf64_Nhdr>(notes, at);) {
        const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
        const std::size_t name = at + sizeof(Elf64_Nhdr);
        if (note->n_type == kPhys32Entry && name <= notes.size() &&
            notes.substr(name, 4) == std::string_view("Xen\0", 4))
            return true;
        at = name + padded(note->n_namesz) + padded(note->n_descsz);
    }
    return false;
}

}  // namespace

bool is_bootable(std::string_view elf) {
    const auto header = value_at<Elf64_Ehdr>(elf, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr))
        return false;
    bool entry = false;
    for (std::size_t n = 0; n < header->e_phnum; ++n) {
        const auto segment = value_at<Elf64_Phdr>(elf, header->e_phoff + n * sizeof(Elf64_Phdr));
        if (!segment || segment->p_offset > elf.size() || segment->p_filesz > elf.size() - segment->p_offset)
            return false;
        entry |=
            segment->p_type == PT_NOTE && has_pvh_entry(elf.substr(segment->p_offset, segment->p_filesz));
    }
    return entry;
}

std::optional<std::string> unpack_kernel(const std::string& bzimage) {
    auto elf = unzstd(payload_of(bzimage));
    if (!elf || !is_bootable(*elf)) return std::nullopt;
    return elf;
}

fs::path boot_file(const Tree& tree, const Kernel& kernel, bool make) {
    // The others are built again under the same release.
    if (kernel.name == "own" || kernel.name == "debug") return kernel.image;
    const fs::path target = tree.cache() / kernel.release / "kernel";
    if (const auto kept = FileView::open(target)) {
        // Empty: there is none, and nobody looks again. What a host that crashed left of one is made anew.
        if (kept->bytes().empty()) return kernel.image;
        if (is_bootable(kept->bytes())) return target;
    }
    if (!make) return kernel.image;
    const auto image = read_file(kernel.image);
    const std::string elf = image ? unpack_kernel(*image).value_or("") : "";
    if (!image || !keep(target, elf) || elf.empty()) return kernel.image;
    return target;
}

}  // namespace orrery::vm
