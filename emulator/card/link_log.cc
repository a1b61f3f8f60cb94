#include "emulator/card/link_log.h"

#include <orrery/hw/trace.h>

namespace orrery::emu {

void LinkLog::crossed(unsigned port, unsigned channel, const link::Message& message, bool sent) {
    Burst& burst = open_.at(port)[sent ? 1 : 0].at(channel);
    const std::uint64_t what = port | std::uint64_t{message.op} << 8 | std::uint64_t{channel} << 16 |
                               std::uint64_t{message.source} << 32 | std::uint64_t{message.destination} << 48;
    const std::uint64_t bytes = wire_bytes_of(message);
    // Times are rounded to picoseconds.
    const bool goes_on = burst.messages != 0 && burst.messages < kMostMessages && burst.what == what &&
                         message.index == burst.first + burst.messages && message.head_ps <= burst.end + 1;
    if (!goes_on) {
        end(burst, sent);
        burst = {.what = what, .first = message.index, .head = message.head_ps};
    }
    ++burst.messages;
    burst.bytes += bytes;
    burst.end = message.arrival_ps;
}

void LinkLog::end(Burst& burst, bool sent) {
    if (burst.messages == 0) return;
    note_(sent ? ORR_OTRACE_NOTE_LINK_SENT : ORR_OTRACE_NOTE_LINK_TAKEN,
          {burst.what, burst.first, burst.messages, burst.bytes, burst.head, burst.end - burst.head});
    burst = {};
}

void LinkLog::end_port(unsigned port) {
    for (const bool sent : {false, true})
        for (Burst& burst : open_[port][sent ? 1 : 0])
            end(burst, sent);
}

void LinkLog::changed(const LinkPort& port) {
    end_port(port.config().port);
    say(port);
}

void LinkLog::say(const LinkPort& port) {
    const LinkConfig& config = port.config();
    note_(ORR_OTRACE_NOTE_LINK_STATE,
          {config.port | std::uint64_t{port.state()} << 8 | std::uint64_t{port.peer_port()} << 16 |
               (port.peer_is_switch() ? 1u << 24 : 0u),
           port.peer_uid(), config.latency_ns * kPsPerNs});
}

void LinkLog::finish() {
    for (unsigned port = 0; port < open_.size(); ++port)
        end_port(port);
}

}  // namespace orrery::emu
