// SPDX-License-Identifier: MIT
#include "tools/fwsign/image.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace orrery::fwsign {
namespace {

static_assert(crypto_sign_PUBLICKEYBYTES == kPublicKeyBytes && crypto_sign_SECRETKEYBYTES == kSecretKeyBytes);
static_assert(crypto_sign_BYTES == sizeof(orr_image_header::signature));
static_assert(crypto_hash_sha256_BYTES == sizeof(orr_image_header::sha256));

constexpr std::size_t kSignedBytes = offsetof(orr_image_header, signature);

// The start of a little-endian RISC-V ELF64 executable: class, data, type and machine. The boot ROM looks
// closer.
constexpr std::size_t kElfHeaderBytes = 64;

std::string why_not_elf(std::span<const std::uint8_t> elf) {
    if (elf.size() < kElfHeaderBytes) return "shorter than an ELF header";
    if (std::memcmp(elf.data(), "\177ELF", 4) != 0) return "no ELF magic";
    if (elf[4] != 2 || elf[5] != 1) return "not a little-endian ELF64";
    if (elf[16] != 2 || elf[17] != 0) return "not an executable (ET_EXEC)";
    if (elf[18] != 243 || elf[19] != 0) return "not for RISC-V";
    return {};
}

std::array<std::uint8_t, 32> sha256(std::span<const std::uint8_t> bytes) {
    std::array<std::uint8_t, 32> hash{};
    crypto_hash_sha256(hash.data(), bytes.data(), bytes.size());
    return hash;
}

}  // namespace

bool init() {
    return sodium_init() >= 0;
}

KeyPair make_key_pair() {
    KeyPair pair{};
    crypto_sign_keypair(pair.public_key.data(), pair.secret.data());
    return pair;
}

PublicKey public_half(const SecretKey& key) {
    PublicKey half{};
    crypto_sign_ed25519_sk_to_pk(half.data(), key.data());
    return half;
}

std::expected<Bytes, std::string> make_image(std::span<const std::uint8_t> elf, const ImageOptions& options) {
    if (const std::string reason = why_not_elf(elf); !reason.empty())
        return std::unexpected(fmt::format("not a firmware ELF: {}", reason));
    const std::size_t size = sizeof(orr_image_header) + elf.size();
    if (size > ORR_IMAGE_MAX_SIZE)
        return std::unexpected(fmt::format(
            "the image would have {} bytes, the boot ROM takes {}: strip the ELF", size, ORR_IMAGE_MAX_SIZE));
    orr_image_header header{};
    if (options.build_id.size() > sizeof(header.build_id))
        return std::unexpected(fmt::format("the build id \"{}\" is longer than {} bytes", options.build_id,
                                           sizeof(header.build_id)));
    header.magic = ORR_IMAGE_MAGIC;
    header.header_size = sizeof(header);
    header.image_size = static_cast<std::uint32_t>(size);
    header.hw_version = options.hw_version;
    header.fw_abi = options.fw_abi;
    header.fw_version = options.fw_version;
    std::ranges::copy(options.build_id, header.build_id);
    std::ranges::copy(sha256(elf), header.sha256);
    if (options.key) {
        crypto_sign_detached(header.signature, nullptr, reinterpret_cast<const std::uint8_t*>(&header),
                             kSignedBytes, options.key->data());
    }
    Bytes image(size);
    std::memcpy(image.data(), &header, sizeof(header));
    std::ranges::copy(elf, image.begin() + sizeof(header));
    return image;
}

void corrupt(Bytes& image, Damage damage) {
    std::size_t at = 0;
    switch (damage) {
        case Damage::kMagic:
            at = offsetof(orr_image_header, magic);
            break;
        case Damage::kHeader:
            at = offsetof(orr_image_header, build_id);
            break;
        case Damage::kElf:
            at = sizeof(orr_image_header) + (image.size() - sizeof(orr_image_header)) / 2;
            break;
        case Damage::kSignature:
            at = offsetof(orr_image_header, signature);
            break;
    }
    image.at(at) ^= 0x01;
}

std::expected<ImageReport, std::string> inspect(std::span<const std::uint8_t> image,
                                                const std::optional<PublicKey>& key) {
    ImageReport report{};
    orr_image_header& header = report.header;
    if (image.size() < sizeof(header))
        return std::unexpected(
            fmt::format("{} bytes are less than an image header has ({})", image.size(), sizeof(header)));
    std::memcpy(&header, image.data(), sizeof(header));
    if (header.magic != ORR_IMAGE_MAGIC)
        return std::unexpected("no image magic: not an Orrery firmware image");
    if (header.header_size != sizeof(header) || header.image_size < header.header_size)
        return std::unexpected(fmt::format("the header's sizes make no sense: header {}, image {}",
                                           header.header_size, header.image_size));
    if (header.image_size > image.size())
        return std::unexpected(fmt::format("truncated: the header says {} bytes, the file has {}",
                                           header.image_size, image.size()));
    const auto elf = image.subspan(sizeof(header), header.image_size - sizeof(header));
    report.elf_bytes = elf.size();
    report.hash_ok = std::ranges::equal(sha256(elf), header.sha256);
    report.is_signed = std::ranges::any_of(header.signature, [](std::uint8_t byte) { return byte != 0; });
    if (key) {
        report.signature_ok =
            crypto_sign_verify_detached(header.signature, image.data(), kSignedBytes, key->data()) == 0;
    }
    return report;
}

}  // namespace orrery::fwsign
