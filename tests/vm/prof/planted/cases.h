// Programs that are each slow for one reason, which the author knows: what `orrery-prof explain` says of them is held
// against that.
#pragma once

#include <string_view>

namespace planted {

struct Case {
    const char* name;
    // What explain has to call the limit; "none": it has to find nothing.
    const char* limit;
    const char* why;
    void (*run)();
    unsigned cards;
};

// All, the ones that limit something first.
const Case* find(std::string_view name);
void list();

}  // namespace planted
