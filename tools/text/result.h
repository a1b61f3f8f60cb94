// What can fail, and why: for people, with the next step in it.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <utility>

namespace orrery::text {

struct Error {
    std::string text;
};

template <typename T>
using Result = std::expected<T, Error>;

template <typename... Args>
std::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
    return std::unexpected(Error{fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace orrery::text
