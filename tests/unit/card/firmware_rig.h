// A card that runs the real firmware, and just enough of a driver to talk to it.
#pragma once

#include <cstdint>
#include <string>

#include <orrery/fw/boot_block.h>
#include <orrery/fw/mailbox.h>
#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {

class FirmwareRig {
  public:
    // The files of the firmware's build.
    static CardConfig config(CardConfig base = CardRig::config());
    explicit FirmwareRig(CardConfig config = FirmwareRig::config());

    CardRig& rig() { return rig_; }
    Card& card() { return rig_.card(); }

    void boot();
    // After ORR_R_CORE_RESTART: as the driver does it, with empty mailbox rings.
    void boot_again();
    // A command to which no reply comes.
    void post(std::uint16_t opcode, std::initializer_list<std::uint64_t> args);
    // One command; its reply. With a card thread: waits for it; without: steps the card.
    orr_mbox_message command(std::uint16_t opcode, std::initializer_list<std::uint64_t> args);

    orr_boot_block& boot_block() { return *reinterpret_cast<orr_boot_block*>(rig_.ram(kBootBlock)); }
    orr_queue_status& status(unsigned queue) {
        return reinterpret_cast<orr_queue_status*>(rig_.ram(kStatus))[queue];
    }

    // Context `asid` with doorbell page `asid`, and a queue of its own: ring in host memory at ring(asid),
    // mapped at kRingVa.
    void make_queue(std::uint32_t asid);
    orr_ring& ring(std::uint32_t asid) { return *reinterpret_cast<orr_ring*>(rig_.ram(ring_bus(asid))); }
    template <class Packet>
    void push(std::uint32_t asid, const Packet& packet) {
        static_assert(sizeof packet == ORR_PACKET_SIZE);
        orr_ring& to = ring(asid);
        std::memcpy(rig_.ram(ring_bus(asid)) + sizeof(orr_ring) + to.producer % kEntries * ORR_PACKET_SIZE,
                    &packet, sizeof packet);
        std::atomic_ref(to.producer).store(to.producer + 1, std::memory_order_release);
    }
    void submit(std::uint32_t asid);

    static constexpr std::uint64_t kRingVa = 0x4000'0000;
    static constexpr std::uint64_t kEntries = 64;

  private:
    void start();
    static constexpr std::uint64_t kBootBlock = kRamBase;
    static constexpr std::uint64_t kCommands = kRamBase + 0x10000;
    static constexpr std::uint64_t kMessages = kRamBase + 0x20000;
    static constexpr std::uint64_t kStatus = kRamBase + 0x30000;
    static std::uint64_t ring_bus(std::uint32_t asid) { return kRamBase + 0x100000 + asid * 0x4000; }

    CardRig rig_;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint64_t> generation_ = std::vector<std::uint64_t>(ORR_ASIDS);
};

}  // namespace orrery::emu
