// What a card's recording says of its links.
#pragma once

#include <cstdint>

#include "tools/records/records.h"

namespace orrery::records {

// Messages that crossed a link in a row, as one end of it noted them (ORR_OTRACE_NOTE_LINK_*). Times are
// system time. What the peer was is what the link was up with last.
struct LinkBurst {
    bool sent = false;  // or taken
    unsigned port = 0, operation = 0, channel = 0;
    unsigned source = 0, destination = 0;  // nodes
    std::uint64_t first = 0, messages = 0, bytes = 0;
    Time head = 0, end = 0;  // its first byte comes to the other end, and its last
    std::uint64_t peer = 0;  // uid; 0: not known
    unsigned peer_port = 0;
    bool peer_is_switch = false;
    Time latency = 0;  // of what this end sends
};

}  // namespace orrery::records
