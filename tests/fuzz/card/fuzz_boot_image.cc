// Boot images: the header as it comes, and, behind a hash and signature that are made good, the ELF.
#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <orrery/hw/bar0.h>
#include <orrery/hw/soc.h>

#include "emulator/soc/boot_rom.h"

namespace orrery::emu {
namespace {

struct Key {
    Key() {
        if (sodium_init() < 0) std::abort();
        std::array<std::uint8_t, crypto_sign_SEEDBYTES> seed{};
        crypto_sign_seed_keypair(public_key.data(), secret.data(), seed.data());
    }
    PublicKey public_key{};
    std::array<std::uint8_t, crypto_sign_SECRETKEYBYTES> secret{};
};

void try_image(const std::vector<std::uint8_t>& image, const PublicKey& key,
               std::vector<std::uint8_t>& sram) {
    const BootResult result = verify_and_load(image, key, sram);
    if (result.status < ORR_BOOT_OK || result.status > ORR_BOOT_NO_KEY) std::abort();
    const bool inside = result.entry >= ORR_SRAM_BASE && result.entry < ORR_SRAM_BASE + ORR_SRAM_SIZE;
    if (result.status == ORR_BOOT_OK && !inside) std::abort();
}

}  // namespace
}  // namespace orrery::emu

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace orrery::emu;
    static const Key key;
    static std::vector<std::uint8_t> sram(ORR_SRAM_SIZE);
    if (size == 0) return 0;
    const bool as_it_is = *data % 4 == 0;
    const std::vector<std::uint8_t> input(data + 1, data + size);
    if (as_it_is) {
        try_image(input, key.public_key, sram);
        return 0;
    }
    orr_image_header header{};
    header.magic = ORR_IMAGE_MAGIC;
    header.header_size = sizeof header;
    header.image_size = static_cast<std::uint32_t>(sizeof header + input.size());
    header.hw_version = ORR_HW_VERSION;
    crypto_hash_sha256(header.sha256, input.data(), input.size());
    std::vector<std::uint8_t> image(sizeof header);
    std::memcpy(image.data(), &header, sizeof header);
    crypto_sign_detached(image.data() + offsetof(orr_image_header, signature), nullptr, image.data(),
                         offsetof(orr_image_header, signature), key.secret.data());
    image.insert(image.end(), input.begin(), input.end());
    try_image(image, key.public_key, sram);
    return 0;
}
