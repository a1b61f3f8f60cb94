// What crossed the links of recorded cards: a track each link and direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/records/link_burst.h"
#include "tools/step/words.h"

namespace orrery::step {

struct LinkEnd {
    std::optional<std::size_t> card;  // nothing: no recording is of it
    unsigned port = 0;
    std::string name;  // "card 0 port 1", "switch 00000000000000aa port 3"
};

// A burst, or several for which there were too many. Times are system time.
struct Crossing {
    unsigned operation = 0;  // 0: several
    unsigned channel = 0;
    unsigned source = 0, destination = 0;  // nodes; of the first
    std::uint64_t first = 0;               // its number in its channel
    std::uint64_t messages = 0, bytes = 0;
    // On the wire, where who sent it has a recording; else as `came` and `end`.
    Time begin = 0, left = 0;
    Time came = 0, end = 0;  // its first byte, and its last
    bool sent = false;       // the recording of the end that sent it has it
    bool taken = false;      // and that of the other one
};

struct LinkTrack {
    LinkEnd from, to;
    std::vector<Crossing> crossings;  // by time of their begin; none begins before the one before it has left
};

// A recording, as links see it.
struct LinkedCard {
    std::uint64_t uid = 0;
    const std::vector<LinkBurst>* bursts = nullptr;
    std::string name;  // "card 0"
};

// By the ends, those of cards first. Of a track with more than `most` crossings those are put together
// between which the least time is.
std::vector<LinkTrack> find_links(const std::vector<LinkedCard>& cards, std::size_t most);

std::string operation_name(unsigned operation);
// "write, 3 messages, 300.0 KiB"
std::string describe(const Crossing& crossing);

}  // namespace orrery::step
