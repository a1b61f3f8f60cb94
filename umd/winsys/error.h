// How everything below the C API reports failure: a stable code, and a text that names cause and next step.
#pragma once

#include <fmt/format.h>
#include <orrery/orrery.h>

#include <expected>
#include <string>
#include <utility>

namespace orrery::umd {

struct Error {
    orrError_t code = orrErrorInternal;
    std::string text;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

template <typename... Args>
std::unexpected<Error> fail(orrError_t code, fmt::format_string<Args...> format, Args&&... args) {
    return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

// Hands the failure of a Status or Result up to the caller of this function, and names the value otherwise.
#define ORR_TRY(variable, expression) \
    auto variable = (expression);     \
    if (!variable) return std::unexpected(std::move(variable).error())

// Of a failed system call: `what` names the call and its purpose; the code follows from `number` (errno).
std::unexpected<Error> fail_errno(int number, std::string_view what);

}  // namespace orrery::umd
