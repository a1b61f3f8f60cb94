#include "umd/runtime/group_token.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace orrery::umd {
namespace {

constexpr std::string_view kVersion = "orrg1", kUnix = "unix", kFolder = "dir";

bool is_hex(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Up to the next dash, which goes.
std::string_view take(std::string_view& text) {
    const std::size_t end = std::min(text.find('-'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

// What can stand in a token.
bool is_folder(std::string_view text) {
    return text.starts_with('/') && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

Result<GroupToken> GroupToken::make(std::string_view folder) {
    if (!folder.empty() && !is_folder(folder)) {
        return fail(orrErrorInvalidValue,
                    "'{}' is no folder for a group's token: a path from the root, in printable characters "
                    "without blanks",
                    folder);
    }
    std::array<unsigned char, (kNameChars + kSecretChars) / 2> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
        return fail_errno(errno, "getrandom for a group's token");
    std::string hex;
    for (unsigned char byte : random)
        hex += fmt::format("{:02x}", byte);
    GroupToken token{hex.substr(0, kNameChars), hex.substr(kNameChars), std::string(folder)};
    if (const std::size_t chars = token.text().size(); chars > kMaxText) {
        return fail(orrErrorInvalidValue, "the folder's path is {} characters too long for a token",
                    chars - kMaxText);
    }
    return token;
}

Result<GroupToken> GroupToken::parse(std::string_view text) {
    const std::string_view version = take(text);
    if (!version.starts_with("orrg"))
        return fail(orrErrorInvalidValue, "that is no token of orrGroupMakeToken: those begin with {}",
                    kVersion);
    if (version != kVersion) {
        return fail(orrErrorNotSupported,
                    "a token of another version of the library ({} is known): all "
                    "members need the same",
                    kVersion);
    }
    const std::string_view kind = take(text);
    if (kind != kUnix && kind != kFolder) {
        return fail(orrErrorNotSupported,
                    "a token with an address of another kind than '{}' and '{}', which are all that this "
                    "version of the library knows",
                    kUnix, kFolder);
    }
    GroupToken token;
    token.name = take(text);
    token.secret = kind == kUnix ? text : take(text);
    if (kind == kFolder) token.folder = text;
    if (token.name.size() != kNameChars || token.secret.size() != kSecretChars || !is_hex(token.name) ||
        !is_hex(token.secret) || (kind == kFolder && !is_folder(token.folder))) {
        return fail(orrErrorInvalidValue, "the token is not whole: hand on all that orrGroupMakeToken gave");
    }
    return token;
}

std::string GroupToken::text() const {
    if (folder.empty()) return fmt::format("{}-{}-{}-{}", kVersion, kUnix, name, secret);
    return fmt::format("{}-{}-{}-{}-{}", kVersion, kFolder, name, secret, folder);
}

bool same_secret(std::string_view a, std::string_view b) {
    unsigned differs = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        differs |= static_cast<unsigned char>(a[i] ^ b[i]);
    return differs == 0;
}

}  // namespace orrery::umd
