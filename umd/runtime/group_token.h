// Where the processes of a group meet: a kind of address, the address, and the secret by which they know each
// other. The address is the name of a UNIX socket of one machine, or a folder that all machines see.
#pragma once

#include <string>
#include <string_view>

#include "umd/winsys/error.h"

namespace orrery::umd {

struct GroupToken {
    std::string name;    // of the abstract socket, and in the folder
    std::string secret;  // kSecretChars
    std::string folder;  // empty: all are on one machine

    static constexpr std::size_t kNameChars = 32, kSecretChars = 32;
    static constexpr std::size_t kMaxText = 127;  // ORR_GROUP_TOKEN_CHARS, without its end

    static Result<GroupToken> make(std::string_view folder = {});
    static Result<GroupToken> parse(std::string_view text);
    std::string text() const;
};

// As long as if it were the same text, whatever is different.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace orrery::umd
