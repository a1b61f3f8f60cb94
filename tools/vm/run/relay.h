// Bytes on their way from one descriptor to another.
#pragma once

#include <string>

namespace orrery::vm {

// Reading stops while writing is not possible.
struct Relay {
    int from = -1;
    int to = -1;
    std::string pending;
    bool open = true;  // `from` may still give something

    bool wants_read() const { return open && pending.empty(); }
    void read_some();
    void write_some();
};

}  // namespace orrery::vm
