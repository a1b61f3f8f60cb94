// What the headers of the C API declare, as clang reads them.
#pragma once

#include <string>
#include <vector>

#include "tools/apigen/clang.h"

namespace orrery::apigen {

struct Parameter {
    std::string type, name;
};

struct Function {
    std::string result, name, header;
    std::vector<Parameter> parameters;
    bool documented = false;
};

struct Enumerator {
    std::string name;
    long long value = 0;
};

struct Enum {
    std::string name;  // may be empty
    std::vector<Enumerator> enumerators;
};

struct Headers {
    std::vector<Function> functions;
    std::vector<Enum> enums;
    std::vector<std::string> typedefs;  // all that are more than another word for a struct or enum
};

// All names of the API begin like this.
bool is_api_name(const std::string& name);

// Of all headers in `folder`/orrery that are C, in the order in which they are declared.
Headers read_headers(const std::string& folder);

// Each is documented, and what a call gives back comes first among its parameters.
void check_rules(const std::vector<Function>& functions);

}  // namespace orrery::apigen
