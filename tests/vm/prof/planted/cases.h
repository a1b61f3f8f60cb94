// Programs that are each slow for one reason, which the author knows: what `orrery-prof explain` says of them
// is held against that.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

namespace planted {

struct Case {
    const char* name;
    // The rule that explain has to put first; "none": it has to say that nothing limits it.
    const char* limit;
    const char* why;
    void (*run)();
    int device;              // of which it has to say so
    const char* title = "";  // as it has to call it; "": whatever
};

const Case* find(std::string_view name);
// The names of all.
void list();
// Empty if what `orrery-prof explain --json` says is right, else a line.
std::string judge(const Case& one, std::istream& explained);

}  // namespace planted
