// Where the processes of a group meet: a kind of address, the address, and the secret by which they know each
// other. Today a name of a UNIX socket of this machine; others have other kinds.
#pragma once

#include <string>
#include <string_view>

#include "umd/winsys/error.h"

namespace orrery::umd {

struct GroupToken {
    std::string name;    // of the socket, abstract
    std::string secret;  // kSecretChars

    static constexpr std::size_t kNameChars = 32, kSecretChars = 32;

    static Result<GroupToken> make();
    static Result<GroupToken> parse(std::string_view text);
    std::string text() const;
};

// As long as if it were the same text, whatever is different.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace orrery::umd
