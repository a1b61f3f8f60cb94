// What crossed a card's links, for its recording: bursts (ORR_OTRACE_NOTE_LINK_SENT, _TAKEN), each noted once
// it is known to go on no more. What a burst is depends on the messages alone, and on changes of its port; a
// flight recorder's also ends when the card has nothing to do.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>

#include <orrery/hw/bar0.h>

#include "emulator/link/link_port.h"
#include "emulator/link/wire.h"

namespace orrery::emu {

class LinkLog {
  public:
    using Note = std::function<void(unsigned kind, std::initializer_list<std::uint64_t> fields)>;
    explicit LinkLog(Note note) : note_(std::move(note)) {}

    void crossed(unsigned port, unsigned channel, const link::Message& message, bool sent);
    void changed(const LinkPort& port);
    // The port's state, for who does not see what was noted before.
    void say(const LinkPort& port);
    // The recording ends.
    void finish();

    // So that one burst of small writes is no longer than a piece of a copy, and shows when it came.
    static constexpr std::uint64_t kMostMessages = 256;

  private:
    struct Burst {
        std::uint64_t what = 0, first = 0, messages = 0, bytes = 0;
        ModelTime head = 0, end = 0;
    };
    static constexpr unsigned kChannels = 4;
    void end(Burst& burst, bool sent);
    void end_port(unsigned port);

    Note note_;
    std::array<std::array<std::array<Burst, kChannels>, 2>, ORR_LINK_MAX_PORTS> open_{};  // [port][sent]
};

}  // namespace orrery::emu
