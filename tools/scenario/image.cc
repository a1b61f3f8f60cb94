#include "tools/scenario/image.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include <orrery/hw/bar0.h>
#include <orrery/hw/boot.h>

namespace orrery::scenario {

namespace {

struct Key {
    std::vector<std::uint8_t> public_half;
    std::array<std::uint8_t, crypto_sign_SECRETKEYBYTES> secret{};
};

// Not a secret: the cards of a scenario have its public half in their fuses, and no others.
const Key& key() {
    static const Key made = [] {
        Key fresh;
        fresh.public_half.resize(crypto_sign_PUBLICKEYBYTES);
        std::array<std::uint8_t, crypto_sign_SEEDBYTES> seed{};
        constexpr char kText[] = "orrery scenario";
        std::memcpy(seed.data(), kText, sizeof kText);
        // No random numbers are needed here, so a library that cannot start would not matter.
        [[maybe_unused]] const int started = sodium_init();
        crypto_sign_seed_keypair(fresh.public_half.data(), fresh.secret.data(), seed.data());
        return fresh;
    }();
    return made;
}

std::uint64_t* policy_member(orr_policy& policy, const std::string& name) {
#define ORR_POLICY_CASE(member, text, unit) \
    if (name == (text)) return &policy.member;
    ORR_POLICY_LIST(ORR_POLICY_CASE)
#undef ORR_POLICY_CASE
    return nullptr;
}

std::string policy_names() {
    std::string all;
#define ORR_POLICY_NAME(member, text, unit) all += (all.empty() ? "" : ", ") + std::string(text);
    ORR_POLICY_LIST(ORR_POLICY_NAME)
#undef ORR_POLICY_NAME
    return all;
}

}  // namespace

Image Image::built() {
    const char* named = std::getenv("ORRERY_FIRMWARE");
    const std::string path = named != nullptr && *named != '\0' ? named : ORRERY_BUILT_FIRMWARE;
    auto image = load(path);
    if (image) return *std::move(image);
    Image bad;
    bad.problem_ = image.error() + "; build target 'firmware', or name an image in ORRERY_FIRMWARE";
    return bad;
}

std::expected<Image, std::string> Image::load(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return std::unexpected(file.string() + ": this firmware cannot be read");
    std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
    auto image = from_bytes(std::move(bytes), file.string());
    if (image) {
        std::ifstream symbols(std::filesystem::path(file).replace_extension(".symbols"), std::ios::binary);
        image->symbols_.assign(std::istreambuf_iterator<char>(symbols), {});
    }
    return image;
}

std::expected<Image, std::string> Image::from_bytes(std::vector<std::uint8_t> bytes, std::string name) {
    constexpr std::array<std::uint8_t, 4> kElf = {0x7f, 'E', 'L', 'F'};
    Image image;
    image.name_ = std::move(name);
    image.hw_version_ = ORR_HW_VERSION;
    orr_image_header header{};
    if (bytes.size() > sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic == ORR_IMAGE_MAGIC) {
        image.hw_version_ = header.hw_version;
        image.fw_abi_ = header.fw_abi;
        image.fw_version_ = header.fw_version;
        const auto* text = reinterpret_cast<const char*>(header.build_id);
        image.build_id_.assign(text, strnlen(text, sizeof header.build_id));
        bytes.erase(bytes.begin(), bytes.begin() + sizeof header);
    } else {
        image.build_id_ = "ELF";
    }
    if (bytes.size() < 64 || !std::equal(kElf.begin(), kElf.end(), bytes.begin())) {
        return std::unexpected(
            fmt::format("{}: this is neither a firmware image nor an ELF; build one with target 'firmware'",
                        image.name_));
    }
    // ELF header: e_ident[EI_CLASS] and e_machine.
    if (bytes[4] != 2 || bytes[18] != 243 || bytes[19] != 0) {
        return std::unexpected(
            fmt::format("{}: this ELF is not for RISC-V with 64 bits, as firmware is", image.name_));
    }
    image.elf_ = std::move(bytes);
    return image;
}

std::string Image::sha256() const {
    std::array<std::uint8_t, crypto_hash_sha256_BYTES> hash{};
    crypto_hash_sha256(hash.data(), elf_.data(), elf_.size());
    std::string text;
    for (const std::uint8_t byte : hash)
        text += fmt::format("{:02x}", byte);
    return text;
}

std::optional<std::size_t> Image::policy_offset() const {
    constexpr std::uint64_t kMagic = ORR_POLICY_MAGIC;
    std::array<std::uint8_t, sizeof kMagic> wanted{};
    std::memcpy(wanted.data(), &kMagic, sizeof kMagic);
    for (auto at = elf_.begin();; ++at) {
        at = std::search(at, elf_.end(), wanted.begin(), wanted.end());
        if (static_cast<std::size_t>(elf_.end() - at) < sizeof(orr_policy)) return std::nullopt;
        // The magic may stand in code that compares with it; what follows it there is no version.
        orr_policy policy{};
        std::memcpy(&policy, &*at, sizeof policy);
        if (policy.version == ORR_POLICY_VERSION && policy.bytes == sizeof policy)
            return static_cast<std::size_t>(at - elf_.begin());
    }
}

std::optional<orr_policy> Image::policy() const {
    const auto offset = policy_offset();
    if (!offset) return std::nullopt;
    orr_policy policy{};
    std::memcpy(&policy, elf_.data() + *offset, sizeof policy);
    return policy;
}

std::expected<void, std::string> Image::set_policy(const std::string& name, std::uint64_t value) {
    const auto offset = policy_offset();
    if (!offset) {
        return std::unexpected(fmt::format(
            "{}: this firmware has no table of its policy's numbers (orrery/fw/policy.h): build one that has",
            name_.empty() ? build_id_ : name_));
    }
    orr_policy policy{};
    std::memcpy(&policy, elf_.data() + *offset, sizeof policy);
    std::uint64_t* const member = policy_member(policy, name);
    if (member == nullptr)
        return std::unexpected(
            fmt::format("'{}' is no number of the policy; there are {}", name, policy_names()));
    *member = value;
    std::memcpy(elf_.data() + *offset, &policy, sizeof policy);
    return {};
}

const std::vector<std::uint8_t>& Image::public_key() {
    return key().public_half;
}

std::vector<std::uint8_t> Image::signed_image() const {
    orr_image_header header{};
    header.magic = ORR_IMAGE_MAGIC;
    header.header_size = sizeof header;
    header.image_size = static_cast<std::uint32_t>(sizeof header + elf_.size());
    header.hw_version = hw_version_;
    header.fw_abi = fw_abi_;
    header.fw_version = fw_version_;
    std::memcpy(header.build_id, build_id_.data(), std::min(build_id_.size(), sizeof header.build_id));
    crypto_hash_sha256(header.sha256, elf_.data(), elf_.size());
    const auto* signed_part = reinterpret_cast<const std::uint8_t*>(&header);
    crypto_sign_detached(header.signature, nullptr, signed_part, offsetof(orr_image_header, signature),
                         key().secret.data());
    std::vector<std::uint8_t> image(sizeof header + elf_.size());
    std::memcpy(image.data(), &header, sizeof header);
    std::copy(elf_.begin(), elf_.end(), image.begin() + sizeof header);
    return image;
}

}  // namespace orrery::scenario
