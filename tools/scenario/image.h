// Firmware images for scenarios: any image or bare ELF, signed with a key of this process, with its policy's
// numbers (orrery/fw/policy.h) readable and changeable.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <orrery/fw/policy.h>

namespace orrery::scenario {

class Image {
  public:
    // The image of the build that this program belongs to; ORRERY_FIRMWARE names another. Empty if it cannot
    // be read: run() says so.
    static Image built();
    // An image with header, or an ELF alone.
    static std::expected<Image, std::string> load(const std::filesystem::path& file);
    static std::expected<Image, std::string> from_bytes(std::vector<std::uint8_t> bytes, std::string name);

    const std::string& name() const { return name_; }
    const std::string& problem() const { return problem_; }  // not empty: unusable
    const std::vector<std::uint8_t>& elf() const { return elf_; }
    std::string build_id() const { return build_id_; }
    // For recordings (struct orr_otrace_symbols): from the file of this name that ends in .symbols, or set.
    // Empty: there are none.
    const std::vector<std::uint8_t>& symbols() const { return symbols_; }
    void set_symbols(std::vector<std::uint8_t> symbols) { symbols_ = std::move(symbols); }
    std::string sha256() const;  // of the ELF as it is now, 64 digits

    // Nothing: an image without a policy object.
    std::optional<orr_policy> policy() const;
    // "slice_us" and so on, see ORR_POLICY_LIST. False and a reason: no such name, or no policy object.
    std::expected<void, std::string> set_policy(const std::string& name, std::uint64_t value);

    // Header and ELF, signed with the secret half of key().
    std::vector<std::uint8_t> signed_image() const;
    static const std::vector<std::uint8_t>& public_key();  // 32 bytes; the same in every run

  private:
    std::optional<std::size_t> policy_offset() const;

    std::string name_, problem_, build_id_;
    std::uint32_t hw_version_ = 0, fw_abi_ = 0, fw_version_ = 0;
    std::vector<std::uint8_t> elf_, symbols_;
};

}  // namespace orrery::scenario
