// What engines and the semaphore unit see of a link port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>

#include "emulator/time/event_queue.h"

namespace orrery::emu {

// What became of (a part of) a write to the peer.
struct LinkSend {
    std::uint32_t fault = ORR_FAULT_NONE;  // ORR_FAULT_PEER_DOWN, ORR_FAULT_PEER_DENIED
    std::size_t bytes = 0;                 // taken, in front; 0 without a fault: no room now, try again
    ModelTime sent_ps = 0;                 // when the last byte has left the port; valid if bytes > 0
};

// Card thread only.
class PeerPort {
  public:
    virtual ~PeerPort() = default;

    // What goes through in this direction, whoever sends it.
    virtual std::uint64_t bytes_per_second() const = 0;

    // Takes as much of `data` for the peer's VRAM at `offset` as there is room for, at most 256 KiB. `at`:
    // the model time of the work that writes, if the clock has gone on since. A caller that gets no room
    // calls wait_for_room() and parks; the card goes on meanwhile.
    virtual LinkSend write(std::uint64_t offset, std::span<const std::byte> data, ModelTime at = kNever) = 0;
    // Schedules `event` for now once there may be room, or the link is down. Who waits longest is first; who
    // comes to write meanwhile gets no room. forget(): no longer, before the event is used for anything else.
    virtual void wait_for_room(Event& event) = 0;
    virtual void forget(Event& event) = 0;
    // Changes when the link goes down: what began before that must not go on with another peer.
    virtual std::uint64_t session() const = 0;

    // These return ORR_FAULT_*. A semaphore signal behind all earlier writes; `offset` is 16-byte aligned.
    // ORR_FAULT_PEER_BUSY: no room, and nothing was sent; try again. So what was sent is in the peer's hands.
    virtual std::uint32_t signal(std::uint64_t offset, std::uint64_t value) = 0;
    // A store of at most 8 bytes. What finds no room waits in the port, in order; more than 1,024 are refused
    // with ORR_FAULT_PEER_DOWN.
    virtual std::uint32_t post(std::uint64_t offset, std::span<const std::byte> data) = 0;

    // The other direction: what the peer has sent up to its last signal of this card's semaphore at `offset`
    // is carried out, before its time if need be. False: not all; too much waits for the control core.
    virtual bool settle(std::uint64_t offset) = 0;
};

}  // namespace orrery::emu
