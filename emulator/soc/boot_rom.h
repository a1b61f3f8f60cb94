// What the boot ROM does before the first instruction: checks an image (orrery/hw/boot.h) and loads its ELF.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sodium.h>

#include <orrery/hw/boot.h>

namespace orrery::emu {

using PublicKey = std::array<std::uint8_t, 32>;  // Ed25519

// A key file: 32 raw bytes, or 64 hexadecimal digits with white space around. Errors name the file.
std::expected<PublicKey, std::string> load_fuses(const std::filesystem::path& file);

struct BootResult {
    std::uint32_t status = ORR_BOOT_OK;  // ORR_BOOT_*
    std::uint32_t detail = 0;            // see boot.h
    std::uint64_t entry = 0;             // with ORR_BOOT_OK
    const char* reason = "";             // for the card's log
};

// What becomes of SRAM outside the image's segments.
enum class Load : std::uint8_t {
    kClear,  // zeros
    kKeep,   // stays as it is: a restart of the core
};

// An image as it comes in, piece by piece: hashing 4 MiB takes longer than the card's thread may be away.
class ImageReader {
  public:
    ImageReader();
    void take(std::span<const std::uint8_t> piece);
    std::size_t size() const { return image_.size(); }
    const std::vector<std::uint8_t>& image() const { return image_; }
    // After the last piece, and once; see verify_and_load().
    BootResult finish(const std::optional<PublicKey>& key, std::span<std::uint8_t> sram,
                      Load load = Load::kClear);

  private:
    std::vector<std::uint8_t> image_;
    std::size_t hashed_ = sizeof(orr_image_header);  // up to here
    crypto_hash_sha256_state hash_;
};

// `image` is the card's own copy of the ORR_R_BOOT_SIZE bytes: nobody changes it meanwhile. On ORR_BOOT_OK
// `sram` holds the segments; otherwise it is untouched. `sram` is ORR_SRAM_SIZE bytes.
BootResult verify_and_load(std::span<const std::uint8_t> image, const std::optional<PublicKey>& key,
                           std::span<std::uint8_t> sram, Load load = Load::kClear);

// The code of the ROM: loads SOC_BOOT_ENTRY and jumps there.
std::span<const std::uint8_t> boot_rom_code();

}  // namespace orrery::emu
