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
    std::string name;  // empty: no type of that kind is used
    std::vector<Enumerator> enumerators;
};

struct Typedef {
    std::string name;
    std::string tag;  // "struct orrBox_st" if it is another word for that, which may be opaque
};

// Whatever their names begin with.
struct Headers {
    std::vector<Function> functions;
    std::vector<std::string> records;  // structs and unions whose members are told
    std::vector<Enum> enums;
    std::vector<Typedef> typedefs;  // all but `typedef struct orrBox {...} orrBox`
};

// Of all headers in `folder`/orrery that are C, in the order in which they are declared.
Headers read_headers(const std::string& folder);

// Each is documented, and what a call gives back comes first among its parameters.
void check_rules(const std::vector<Function>& functions);

}  // namespace orrery::apigen
