// What programs are built against and have in their binaries, an item for each thing.
#pragma once

#include <string>
#include <vector>

#include "tools/apigen/constants.h"
#include "tools/apigen/headers.h"

namespace orrery::apigen {

struct Item {
    std::string kind;   // function, struct, union, member, enum, enumerator, typedef or constant
    std::string name;   // a member's is STRUCT.MEMBER
    std::string value;  // types are canonical: without any typedef
    bool operator==(const Item&) const = default;
};

// "member orrDim3.y = unsigned int at 4"
std::string line(const Item& item);

// Functions come first, members behind their struct and enumerators behind their enum; else as declared.
std::vector<Item> read_contract(const std::string& folder, const Headers& headers, Macros macros);

}  // namespace orrery::apigen
