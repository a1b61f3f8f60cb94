// SPDX-License-Identifier: MIT
// orrery-fwsign: makes key pairs, signs firmware images, packs their symbols, shows them. Exit status: 0
// done; 1 it failed, or `show` found an image that a card would refuse; 2 wrong command line.
#include <fmt/format.h>
#include <orrery/fw/boot_block.h>
#include <orrery/hw/bar0.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <map>

#include "tools/fwsign/image.h"
#include "tools/fwsign/symbols.h"

namespace {

using namespace orrery::fwsign;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr unsigned kSecretMode = 0600;
constexpr unsigned kPublicMode = 0644;

int fail(const std::string& text) {
    fmt::print(stderr, "orrery-fwsign: {}\n", text);
    return kFailed;
}

template <std::size_t kSize>
std::expected<std::array<std::uint8_t, kSize>, std::string> read_key(const std::string& path,
                                                                     const char* kind) {
    const auto bytes = read_file(path, 4096);
    if (!bytes) return std::unexpected(bytes.error());
    if (bytes->size() != kSize)
        return std::unexpected(
            fmt::format("{} is no {} key: it has {} bytes, not {}; make a pair with `orrery-fwsign "
                        "keygen`",
                        path, kind, bytes->size(), kSize));
    std::array<std::uint8_t, kSize> key{};
    std::ranges::copy(*bytes, key.begin());
    return key;
}

// "MAJOR.MINOR" as major << 16 | minor.
std::expected<std::uint32_t, std::string> parse_version(const std::string& text) {
    std::uint16_t major = 0;
    std::uint16_t minor = 0;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, major);
    if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '.') {
        const auto second = std::from_chars(first.ptr + 1, end, minor);
        if (second.ec == std::errc{} && second.ptr == end)
            return static_cast<std::uint32_t>(major) << 16 | minor;
    }
    return std::unexpected(fmt::format("\"{}\" is not a version MAJOR.MINOR", text));
}

// "MAJOR.MINOR.PATCH", anything may follow; as in struct orr_image_header.
std::uint32_t version_of_build_id(const std::string& id) {
    std::array<unsigned, 3> parts{};
    if (std::sscanf(id.c_str(), "%u.%u.%u", &parts[0], &parts[1], &parts[2]) != 3) return 0;
    return (parts[0] & 0xff) << 16 | (parts[1] & 0xff) << 8 | (parts[2] & 0xff);
}

// The first line of a file.
std::expected<std::string, std::string> read_build_id(const std::string& file) {
    const auto text = read_file(file, 4096);
    if (!text) return std::unexpected(text.error());
    return std::string(text->begin(), std::ranges::find(*text, std::uint8_t{'\n'}));
}

struct Keygen {
    std::string key, pub;
    bool keep = false;

    int run() const {
        std::error_code error;
        if (std::filesystem::exists(key, error)) {
            if (!keep) return fail(fmt::format("{} exists: remove it first, or say --keep to use it", key));
            const auto secret = read_key<kSecretKeyBytes>(key, "secret");
            if (!secret) return fail(secret.error());
            return write_public(public_half(*secret));
        }
        const KeyPair pair = make_key_pair();
        if (const auto done = write_file(key, pair.secret, kSecretMode); !done) return fail(done.error());
        return write_public(pair.public_key);
    }

    int write_public(const PublicKey& half) const {
        const auto done = write_file(pub, half, kPublicMode);
        return done ? 0 : fail(done.error());
    }
};

struct Sign {
    std::string key, elf, out, hw_version, fw_abi, build_id, build_id_file;
    bool is_unsigned = false;
    std::optional<Damage> damage;
    std::optional<std::size_t> truncate;

    int run() {
        ImageOptions options{.hw_version = ORR_HW_VERSION,
                             .fw_abi = ORR_FW_ABI,
                             .fw_version = 0,
                             .build_id = build_id,
                             .key = {}};
        if (!hw_version.empty()) {
            const auto version = parse_version(hw_version);
            if (!version) return fail("--hw-version: " + version.error());
            options.hw_version = *version;
        }
        if (!fw_abi.empty()) {
            const auto version = parse_version(fw_abi);
            if (!version) return fail("--fw-abi: " + version.error());
            options.fw_abi = *version;
        }
        if (!build_id_file.empty()) {
            const auto id = read_build_id(build_id_file);
            if (!id) return fail(id.error());
            options.build_id = *id;
        }
        options.fw_version = version_of_build_id(options.build_id);
        if (!is_unsigned) {
            if (key.empty()) return fail("no key: give --key, or --unsigned for an image that cards refuse");
            const auto secret = read_key<kSecretKeyBytes>(key, "secret");
            if (!secret) return fail(secret.error());
            options.key = *secret;
        }
        const auto bytes = read_file(elf, ORR_IMAGE_MAX_SIZE);
        if (!bytes) return fail(bytes.error());
        auto image = make_image(*bytes, options);
        if (!image) return fail(fmt::format("{}: {}", elf, image.error()));
        if (damage) corrupt(*image, *damage);
        if (truncate) {
            if (*truncate >= image->size())
                return fail(
                    fmt::format("--truncate {}: the image has only {} bytes", *truncate, image->size()));
            image->resize(*truncate);
        }
        const auto done = write_file(out, *image, kPublicMode);
        return done ? 0 : fail(done.error());
    }
};

struct Symbols {
    std::string elf, root = ".", out, build_id_file;
    std::vector<std::string> files;

    int run() const {
        const auto id = read_build_id(build_id_file);
        if (!id) return fail(id.error());
        const auto pack = pack_symbols({elf, *id, root, {files.begin(), files.end()}});
        if (!pack) return fail(pack.error());
        const auto done = write_file(out, *pack, kPublicMode);
        return done ? 0 : fail(done.error());
    }
};

struct Show {
    std::string image, pub;

    int run() const {
        std::optional<PublicKey> key;
        if (!pub.empty()) {
            const auto read = read_key<kPublicKeyBytes>(pub, "public");
            if (!read) return fail(read.error());
            key = *read;
        }
        const auto bytes = read_file(image, 2 * ORR_IMAGE_MAX_SIZE);
        if (!bytes) return fail(bytes.error());
        const auto report = inspect(*bytes, key);
        if (!report) return fail(fmt::format("{}: {}", image, report.error()));

        const orr_image_header& header = report->header;
        const auto* id = reinterpret_cast<const char*>(header.build_id);
        const std::string build_id(id, strnlen(id, sizeof(header.build_id)));
        fmt::print("image       {} bytes, ELF {} bytes\n", header.image_size, report->elf_bytes);
        fmt::print("build       {}\n", build_id.empty() ? "(none)" : build_id);
        fmt::print("version     {}.{}.{}\n", header.fw_version >> 16, header.fw_version >> 8 & 0xff,
                   header.fw_version & 0xff);
        fmt::print("contract    firmware {}.{}, hardware {}.{}\n", header.fw_abi >> 16,
                   header.fw_abi & 0xffff, header.hw_version >> 16, header.hw_version & 0xffff);
        fmt::print("sha256      {}\n", report->hash_ok ? "matches" : "DOES NOT MATCH: corrupted");
        const char* signature = "present, not checked (give --pub)";
        if (!report->is_signed)
            signature = "NONE: unsigned";
        else if (report->signature_ok)
            signature = *report->signature_ok ? "good" : "BAD: another key, or a changed header";
        fmt::print("signature   {}\n", signature);
        const bool good = report->hash_ok && report->is_signed && report->signature_ok.value_or(true);
        return good ? 0 : kFailed;
    }
};

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Makes key pairs for Orrery cards, signs firmware images and shows them."};
    app.require_subcommand(1);
    app.failure_message(CLI::FailureMessage::help);

    Keygen keygen;
    auto* keygen_command = app.add_subcommand("keygen", "Make an Ed25519 key pair");
    keygen_command->add_option("KEY", keygen.key, "secret key to write (64 bytes, mode 0600)")->required();
    keygen_command->add_option("PUB", keygen.pub, "public key to write (32 bytes, for a card's fuses)")
        ->required();
    keygen_command->add_flag("--keep", keygen.keep, "if KEY exists, keep it and write its public half");

    Sign sign;
    auto* sign_command = app.add_subcommand("sign", "Make a signed image from an ELF");
    sign_command->add_option("--key", sign.key, "secret key");
    sign_command->add_option("--elf", sign.elf, "firmware ELF")->required();
    sign_command->add_option("--out", sign.out, "image to write")->required();
    sign_command->add_option("--build-id", sign.build_id,
                             "free text, at most 32 bytes; starts with the version");
    sign_command->add_option("--build-id-file", sign.build_id_file, "file whose first line is the build id");
    sign_command->add_option("--hw-version", sign.hw_version, "hardware version MAJOR.MINOR to claim");
    sign_command->add_option("--fw-abi", sign.fw_abi, "firmware contract version MAJOR.MINOR to claim");
    sign_command->add_flag("--unsigned", sign.is_unsigned, "for tests: no signature");
    const std::map<std::string, Damage> damages{{"magic", Damage::kMagic},
                                                {"header", Damage::kHeader},
                                                {"elf", Damage::kElf},
                                                {"signature", Damage::kSignature}};
    sign_command->add_option("--corrupt", sign.damage, "for tests: flip a bit of this part after signing")
        ->transform(CLI::CheckedTransformer(damages));
    sign_command->add_option("--truncate", sign.truncate, "for tests: write only the first BYTES bytes");

    Symbols symbols;
    auto* symbols_command =
        app.add_subcommand("symbols", "Pack symbols and sources, which recordings carry along");
    symbols_command->add_option("--elf", symbols.elf, "firmware ELF with debug information")->required();
    symbols_command->add_option("--build-id-file", symbols.build_id_file, "as for sign")->required();
    symbols_command->add_option("--root", symbols.root, "top of the source tree: names of files begin there");
    symbols_command->add_option("--out", symbols.out, "file to write")->required();
    symbols_command->add_option("FILES", symbols.files, "sources");

    Show show;
    auto* show_command = app.add_subcommand("show", "Show an image; fails if a card would refuse it");
    show_command->add_option("IMAGE", show.image, "image")->required();
    show_command->add_option("--pub", show.pub, "public key to check the signature with");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kUsage;
    }
    if (!init()) return fail("libsodium cannot be initialised on this machine");
    if (*keygen_command) return keygen.run();
    if (*sign_command) return sign.run();
    if (*symbols_command) return symbols.run();
    return show.run();
}
