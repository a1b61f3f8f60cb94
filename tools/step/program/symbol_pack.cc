#include "tools/step/program/symbol_pack.h"

#include <gelf.h>
#include <libelf.h>
#include <orrery/hw/trace.h>
#include <sodium.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace orrery::step {
namespace {

constexpr std::uint64_t kMostBytes = 256 << 20;

// SHA-256 of each section of instructions: its address and its bytes. All zero: there is no code.
using Hash = std::array<std::uint8_t, crypto_hash_sha256_BYTES>;
Hash code_hash(std::vector<std::uint8_t>& bytes) {
    Hash hash{};
    elf_version(EV_CURRENT);
    const std::unique_ptr<Elf, int (*)(Elf*)> elf(
        elf_memory(reinterpret_cast<char*>(bytes.data()), bytes.size()), elf_end);
    if (!elf) return hash;
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    bool any = false;
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS ||
            (header.sh_flags & SHF_EXECINSTR) == 0)
            continue;
        const Elf_Data* data = elf_rawdata(section, nullptr);
        if (data == nullptr || data->d_buf == nullptr) continue;
        const std::uint64_t address = header.sh_addr;
        crypto_hash_sha256_update(&state, reinterpret_cast<const std::uint8_t*>(&address), sizeof address);
        crypto_hash_sha256_update(&state, static_cast<const std::uint8_t*>(data->d_buf), data->d_size);
        any = true;
    }
    if (any) crypto_hash_sha256_final(&state, hash.data());
    return hash;
}

}  // namespace

Result<SymbolPack> SymbolPack::open(std::span<const std::uint8_t> pack, std::vector<std::uint8_t> image_elf) {
    constexpr const char* kDamaged = "the recording's symbols are damaged: {}";
    orr_otrace_symbols head{};
    if (pack.size() < sizeof head) return fail(kDamaged, "they are cut");
    std::memcpy(&head, pack.data(), sizeof head);
    if (head.magic != ORR_OTRACE_SYMBOLS_MAGIC) return fail(kDamaged, "their head is none");
    if (head.version != ORR_OTRACE_SYMBOLS_VERSION)
        return fail("the recording's symbols are of version {}, and this program reads {}", head.version,
                    ORR_OTRACE_SYMBOLS_VERSION);
    if (head.raw_bytes > kMostBytes) return fail(kDamaged, "they would be larger than any firmware's");
    if (!std::ranges::equal(code_hash(image_elf), head.code_sha256))
        return fail("the recording's symbols are of another firmware than its image");
    std::vector<std::uint8_t> raw(head.raw_bytes);
    const std::size_t size =
        ZSTD_decompress(raw.data(), raw.size(), pack.data() + sizeof head, pack.size() - sizeof head);
    if (ZSTD_isError(size) != 0 || size != raw.size()) return fail(kDamaged, "they cannot be unpacked");

    SymbolPack out;
    std::size_t at = 0;
    for (std::uint32_t n = 0; n < head.files; ++n) {
        orr_otrace_file file{};
        if (raw.size() - at < sizeof file) return fail(kDamaged, "a file is cut");
        std::memcpy(&file, raw.data() + at, sizeof file);
        at += sizeof file;
        if (raw.size() - at < file.name_bytes || raw.size() - at - file.name_bytes < file.bytes)
            return fail(kDamaged, "a file is cut");
        const auto* begin = raw.data() + at;
        at += std::size_t{file.name_bytes} + file.bytes;
        const auto* contents = begin + file.name_bytes;
        if (n == 0) {
            out.elf.assign(contents, contents + file.bytes);
        } else {
            out.sources[std::string(reinterpret_cast<const char*>(begin), file.name_bytes)].assign(
                reinterpret_cast<const char*>(contents), file.bytes);
        }
    }
    return out;
}

}  // namespace orrery::step
