// The environment variables of the library: all of them, and nobody else reads any. docs/runtime.md has the
// same list, word for word.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "umd/winsys/error.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

// What may be asked for; `what` names it in the error's text.
Status check_quota(Quota quota, const char* what);

class Env {
  public:
    struct Variable {
        const char* name;
        const char* form;
        const char* meaning;
    };
    static std::span<const Variable> variables();

    // ORR_PROF_TOOL; a program that runs with more rights than its user has loads none.
    static std::vector<std::string> prof_tools();
    // ORR_QUOTA; without it no limit.
    static Result<Quota> quota();
    // ORR_VISIBLE_DEVICES of `cards`, in its order; without it all.
    static Result<std::vector<std::size_t>> visible_devices(std::size_t cards);
};

}  // namespace orrery::umd
