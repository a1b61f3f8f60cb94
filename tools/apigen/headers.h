// The functions that the headers of the C API declare, as clang reads them.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace orrery::apigen {

// Something in the headers or lists that a person has to mend.
class Problem : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct Parameter {
    std::string type, name;
};

struct Function {
    std::string result, name, header;
    std::vector<Parameter> parameters;
    bool documented = false;
};

// Of all headers in `folder`/orrery that are C, in the order in which they are declared.
std::vector<Function> read_headers(const std::string& folder);

// Each is documented, and what a call gives back comes first among its parameters.
void check_rules(const std::vector<Function>& functions);

}  // namespace orrery::apigen
