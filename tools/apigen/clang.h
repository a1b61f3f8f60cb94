// What clang tells about the headers of the C API.
#pragma once

#include <stdexcept>
#include <string>

namespace orrery::apigen {

// Something in the headers or lists that a person has to mend.
class Problem : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// What clang with these options prints about all headers in `folder`/orrery that are C, with `source` behind
// them. source: has no single quotes.
std::string clang(const std::string& folder, const std::string& options, const std::string& source = "");

}  // namespace orrery::apigen
