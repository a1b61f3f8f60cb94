#include "emulator/soc/boot_rom.h"

#include <elf.h>
#include <sodium.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include <orrery/hw/bar0.h>
#include <orrery/hw/soc.h>

namespace orrery::emu {

namespace {

// SOC_BASE is 0x10000000, SOC_BOOT_ENTRY its first register.
constexpr std::array<std::uint8_t, 12> kRomCode = {
    0xb7, 0x02, 0x00, 0x10,  // lui  t0, 0x10000
    0x03, 0xb3, 0x02, 0x00,  // ld   t1, 0(t0)
    0x67, 0x00, 0x03, 0x00,  // jr   t1
};
static_assert(ORR_SOC_BASE == 0x10000000 && SOC_BOOT_ENTRY == 0);

constexpr unsigned kMaxSegments = 64;

BootResult failed(std::uint32_t status, std::uint32_t detail, const char* reason) {
    return {status, detail, 0, reason};
}

template <class T>
std::optional<T> read_at(std::span<const std::uint8_t> bytes, std::uint64_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

bool all_zero(std::span<const std::uint8_t> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

struct Segment {
    std::uint64_t file_offset;
    std::uint64_t file_bytes;
    std::uint64_t sram_offset;
    std::uint64_t sram_bytes;  // zeros behind the bytes of the file
};

bool in_sram(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t offset = address - ORR_SRAM_BASE;
    return address >= ORR_SRAM_BASE && offset <= ORR_SRAM_SIZE && bytes <= ORR_SRAM_SIZE - offset;
}

BootResult load_elf(std::span<const std::uint8_t> elf, std::span<std::uint8_t> sram, Load load) {
    const auto bad = [](const char* reason) { return failed(ORR_BOOT_BAD_ELF, 0, reason); };
    const auto header = read_at<Elf64_Ehdr>(elf, 0);
    if (!header) return bad("the ELF is shorter than its header");
    if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return bad("no ELF magic");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
        return bad("not a little-endian ELF64");
    }
    if (header->e_machine != EM_RISCV) return bad("not for RISC-V");
    if (header->e_type != ET_EXEC) return bad("not an executable with fixed addresses");
    if (header->e_phentsize != sizeof(Elf64_Phdr)) return bad("program headers of another size");
    if (header->e_phnum > kMaxSegments) return bad("too many program headers");

    std::vector<Segment> segments;
    for (std::uint32_t i = 0; i < header->e_phnum; ++i) {
        const std::uint64_t at = header->e_phoff + std::uint64_t{i} * sizeof(Elf64_Phdr);
        if (at < header->e_phoff) return bad("program headers outside the file");
        const auto segment = read_at<Elf64_Phdr>(elf, at);
        if (!segment) return bad("program headers outside the file");
        if (segment->p_type == PT_INTERP || segment->p_type == PT_DYNAMIC) return bad("dynamically linked");
        if (segment->p_type != PT_LOAD || segment->p_memsz == 0) continue;
        if (segment->p_filesz > segment->p_memsz)
            return bad("a segment with more bytes in the file than in memory");
        if (segment->p_offset > elf.size() || segment->p_filesz > elf.size() - segment->p_offset) {
            return bad("a segment outside the file");
        }
        if (!in_sram(segment->p_paddr, segment->p_memsz)) {
            return failed(ORR_BOOT_ELF_RANGE, i, "a segment outside SRAM");
        }
        segments.push_back(
            {segment->p_offset, segment->p_filesz, segment->p_paddr - ORR_SRAM_BASE, segment->p_memsz});
    }
    if (segments.empty()) return bad("no segment to load");
    if (!in_sram(header->e_entry, 2) || header->e_entry % 2 != 0) {
        return failed(ORR_BOOT_ELF_RANGE, header->e_phnum, "the entry outside SRAM");
    }
    if (load == Load::kClear) std::fill(sram.begin(), sram.end(), std::uint8_t{0});
    for (const Segment& segment : segments) {
        std::ranges::fill(sram.subspan(segment.sram_offset, segment.sram_bytes), std::uint8_t{0});
        std::copy_n(elf.begin() + static_cast<std::ptrdiff_t>(segment.file_offset), segment.file_bytes,
                    sram.begin() + static_cast<std::ptrdiff_t>(segment.sram_offset));
    }
    return {ORR_BOOT_OK, 0, header->e_entry, "good"};
}

}  // namespace

std::span<const std::uint8_t> boot_rom_code() {
    return kRomCode;
}

ImageReader::ImageReader() {
    crypto_hash_sha256_init(&hash_);
}

void ImageReader::take(std::span<const std::uint8_t> piece) {
    image_.insert(image_.end(), piece.begin(), piece.end());
    const auto header = read_at<orr_image_header>(image_, 0);
    if (!header) return;
    const std::size_t end = std::min<std::size_t>(image_.size(), header->image_size);
    if (end <= hashed_) return;
    crypto_hash_sha256_update(&hash_, image_.data() + hashed_, end - hashed_);
    hashed_ = end;
}

BootResult verify_and_load(std::span<const std::uint8_t> image, const std::optional<PublicKey>& key,
                           std::span<std::uint8_t> sram, Load load) {
    ImageReader reader;
    reader.take(image);
    return reader.finish(key, sram, load);
}

BootResult ImageReader::finish(const std::optional<PublicKey>& key, std::span<std::uint8_t> sram, Load load) {
    const std::span<const std::uint8_t> image = image_;
    const auto header = read_at<orr_image_header>(image, 0);
    if (!header) {
        return failed(ORR_BOOT_TOO_SMALL, sizeof(orr_image_header), "the image is shorter than its header");
    }
    // What has no magic has no sizes either.
    if (header->magic != ORR_IMAGE_MAGIC) return failed(ORR_BOOT_BAD_MAGIC, 0, "no firmware image");
    if (header->header_size != sizeof(orr_image_header) || header->image_size < sizeof(orr_image_header) ||
        header->image_size > ORR_IMAGE_MAX_SIZE) {
        return failed(ORR_BOOT_BAD_HEADER, 0, "sizes in the header make no sense");
    }
    if (image.size() < header->image_size) {
        return failed(ORR_BOOT_TOO_SMALL, header->image_size, "the image is shorter than its header says");
    }
    if (header->reserved0 != 0 || !all_zero(header->reserved1)) {
        return failed(ORR_BOOT_BAD_HEADER, 0, "reserved bytes of the header are not zero");
    }
    if (header->hw_version >> 16 != ORR_HW_VERSION_MAJOR ||
        (header->hw_version & 0xffffu) > ORR_HW_VERSION_MINOR) {
        return failed(ORR_BOOT_HW_VERSION, header->hw_version, "built for another hardware version");
    }
    const auto elf = image.subspan(sizeof(orr_image_header), header->image_size - sizeof(orr_image_header));
    std::array<std::uint8_t, crypto_hash_sha256_BYTES> hash;
    crypto_hash_sha256_final(&hash_, hash.data());
    if (!std::equal(hash.begin(), hash.end(), header->sha256)) {
        return failed(ORR_BOOT_BAD_HASH, 0, "the hash does not fit: corrupted");
    }
    if (all_zero(header->signature)) return failed(ORR_BOOT_UNSIGNED, 0, "not signed");
    if (!key) return failed(ORR_BOOT_NO_KEY, 0, "no public key in the card's fuses (--fuses)");
    if (crypto_sign_verify_detached(header->signature, image.data(), offsetof(orr_image_header, signature),
                                    key->data()) != 0) {
        return failed(ORR_BOOT_BAD_SIGNATURE, 0, "not signed with the key in the card's fuses");
    }
    BootResult result = load_elf(elf, sram, load);
    return result;
}

std::expected<PublicKey, std::string> load_fuses(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return std::unexpected(fmt::format("{}: this key file cannot be read", file.string()));
    std::string text(1025, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    PublicKey key{};
    if (text.size() == key.size()) {
        std::memcpy(key.data(), text.data(), key.size());
        return key;
    }
    std::erase_if(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
    std::size_t bytes = 0;
    const char* end = nullptr;
    if (text.size() != 2 * key.size() ||
        sodium_hex2bin(key.data(), key.size(), text.data(), text.size(), nullptr, &bytes, &end) != 0 ||
        bytes != key.size() || end != text.data() + text.size()) {
        return std::unexpected(fmt::format(
            "{}: this is no key: expected 32 raw bytes or 64 hexadecimal digits of an Ed25519 public key",
            file.string()));
    }
    return key;
}

}  // namespace orrery::emu
