// The ring slots (orrery/hw/soc.h, SOC_SLOT): they read packets of queues ahead, so that the control core
// does not wait for memory.
//
// A packet is read when its fetch is issued, at the model time of the register write that makes room for it
// or lets it be read; the core can have it when the burst has arrived: it goes between what others read from
// that memory and behind all earlier bursts, and the latency of the memory comes on top.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <orrery/hw/soc.h>

#include "emulator/api/sku.h"
#include "emulator/model/memory_system.h"
#include "emulator/probes/counters.h"
#include "emulator/probes/errors.h"
#include "emulator/soc/windows.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

// Card thread only.
class RingSlots {
  public:
    RingSlots(const Sku& sku, EventQueue& events, Windows& windows, MemorySystem& memory, Counters& counters,
              Errors& errors);

    // `offset` from SOC_SLOT(0). false: no such register, or none for this access.
    // `wait`: how long the core waits for the packet, beyond the access.
    bool read(std::uint32_t offset, std::uint64_t& value, ModelTime& wait);
    bool write(std::uint32_t offset, std::uint64_t value);
    // The packet that SLOT_PACKET shows; null: none, or it could not be read. `wait` grows by how long the
    // core waits for it.
    const PacketWords* front(std::uint64_t slot, ModelTime& wait) const;
    // SLOT_NEXT moves on by one.
    void drop(std::uint64_t slot);
    void reset();
    // ORR_CTR_RING_WAIT_PS is that of this moment.
    void charge();

  private:
    struct Packet {
        PacketWords words{};
        std::uint64_t address = 0;
        std::uint32_t fault = ORR_FAULT_NONE;
        ModelTime ready = 0;
    };
    struct Slot {
        std::uint64_t ring = 0, mask = 0, next = 0, limit = 0;
        std::array<Packet, SOC_SLOT_DEPTH> packets;  // packet n at n % SOC_SLOT_DEPTH
        std::uint32_t count = 0;                     // packets from `next` on that were fetched
        std::uint64_t waiting() const { return limit > next ? limit - next : 0; }
    };
    // Around whatever changes how many packets wait in a slot.
    template <typename Change>
    auto changed(Slot& slot, Change change) {
        charge();
        waiting_ -= slot.waiting();
        const auto result = change();
        waiting_ += slot.waiting();
        return result;
    }
    bool set(Slot& slot, std::uint32_t reg, std::uint64_t value);
    void move_to(Slot& slot, std::uint64_t next);
    void prefetch(Slot& slot);
    void fetch(Packet& packet, const Slot& slot, std::uint64_t index);

    const Sku& sku_;
    EventQueue& events_;
    Windows& windows_;
    MemorySystem& memory_;
    Counters& counters_;
    Errors& errors_;
    std::vector<Slot> slots_{SOC_SLOTS};
    std::uint64_t waiting_ = 0;  // packets, in all slots
    ModelTime charged_ = 0;      // their waiting, up to there
};

}  // namespace orrery::emu
