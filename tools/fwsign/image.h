// SPDX-License-Identifier: MIT
// The firmware image (orrery/hw/boot.h): made from an ELF, signed, and looked at.
#pragma once

#include <orrery/hw/boot.h>

#include <array>
#include <expected>
#include <optional>
#include <string>

#include "tools/fwsign/files.h"

namespace orrery::fwsign {

inline constexpr std::size_t kPublicKeyBytes = 32;
inline constexpr std::size_t kSecretKeyBytes = 64;

using PublicKey = std::array<std::uint8_t, kPublicKeyBytes>;
using SecretKey =
    std::array<std::uint8_t, kSecretKeyBytes>;  // Ed25519 as libsodium stores it: seed, public key

struct KeyPair {
    SecretKey secret;
    PublicKey public_key;
};

// Prepares the cryptographic library. False: it cannot work here. Call once before all else.
bool init();

KeyPair make_key_pair();
PublicKey public_half(const SecretKey& key);

struct ImageOptions {
    std::uint32_t hw_version = 0;
    std::uint32_t fw_abi = 0;
    std::uint32_t fw_version = 0;
    std::string build_id;          // at most 32 bytes
    std::optional<SecretKey> key;  // none: unsigned
};

// Header and ELF. Fails if the ELF is none, or if the image would be larger than the boot ROM takes.
std::expected<Bytes, std::string> make_image(std::span<const std::uint8_t> elf, const ImageOptions& options);

// Damage for tests, done after signing.
enum class Damage { kMagic, kHeader, kElf, kSignature };
void corrupt(Bytes& image, Damage damage);

struct ImageReport {
    orr_image_header header;
    std::size_t elf_bytes;
    bool hash_ok;
    bool is_signed;
    std::optional<bool> signature_ok;  // with a public key only
};

// Reads an image as the boot ROM would. Fails on what makes the rest meaningless.
std::expected<ImageReport, std::string> inspect(std::span<const std::uint8_t> image,
                                                const std::optional<PublicKey>& key);

}  // namespace orrery::fwsign
