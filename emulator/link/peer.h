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

    // Takes as much of `data` for the peer's VRAM at `offset` as there is room for, at most 256 KiB. A caller
    // that gets no room calls wait_for_room(), returns to the event queue, and tries again at the same model
    // time: the card goes on receiving meanwhile, and backpressure costs host time, never model time.
    virtual LinkSend write(std::uint64_t offset, std::span<const std::byte> data) = 0;

    // Sends a semaphore signal behind all earlier writes; `offset` is 16-byte aligned. Returns ORR_FAULT_*.
    // Never asks to try again: up to 1,024 signals wait in the port, and more take the link down.
    virtual std::uint32_t signal(std::uint64_t offset, std::uint64_t value) = 0;

    // Gives the processor to the peer for a moment (bounded, about 100 us).
    virtual void wait_for_room() = 0;
};

}  // namespace orrery::emu
