// What the host can read without disturbing the card: kept current by the card thread, read by the I/O
// thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <orrery/hw/bar0.h>
#include <orrery/hw/boot.h>
#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>
#include <orrery/hw/switches.h>

namespace orrery::emu {

// Each word stands alone: no two of them are read as one.
struct RegisterFile {
    struct Link {
        std::atomic<std::uint32_t> state{ORR_LINK_DOWN};
        std::atomic<std::uint32_t> lanes{0};
        std::atomic<std::uint32_t> mbps{0};
        std::atomic<std::uint32_t> peer_port{0};
        std::atomic<std::uint32_t> grants_done{0};
        std::atomic<std::uint32_t> losses{0};
        std::atomic<std::uint32_t> control{0};
        std::atomic<std::uint32_t> drained{0};
        std::atomic<std::uint32_t> resets{0};
        std::atomic<std::uint64_t> peer_uid{0};
        std::atomic<std::uint32_t> peer_switch{0};  // as ORR_R_LINK_SWITCH
        std::atomic<std::uint32_t> reach_version{0};
    };
    // As ORR_R_REACH.
    struct Reach {
        std::atomic<std::uint64_t> how{0}, fabric{0};
        std::atomic<std::uint32_t> mbps{0};
    };
    // As ORR_R_SWITCHES, in the words of each place.
    struct Switches {
        std::atomic<std::uint32_t> version{0};
        std::array<std::array<std::atomic<std::uint64_t>, ORR_SWITCH_PORT(ORR_SWITCH_MAX_PORTS) / 8>,
                   ORR_SWITCHES_PLACES>
            places{};
    };

    std::atomic<std::uint64_t> model_time{0};
    std::atomic<std::uint32_t> state{ORR_STATE_RESET};
    std::atomic<std::uint32_t> reset_count{0};
    std::atomic<std::uint32_t> held{0};  // ORR_HELD_*
    std::atomic<std::uint32_t> boot_status{ORR_BOOT_IDLE};
    std::atomic<std::uint32_t> boot_detail{0};
    std::atomic<std::uint32_t> progress{0};
    std::atomic<std::uint64_t> heartbeat{0};
    std::atomic<std::uint64_t> halt_cause{0};
    std::atomic<std::uint64_t> halt_pc{0};
    std::atomic<std::uint64_t> halt_tval{0};
    // Set by the card thread, cleared by the host.
    std::atomic<std::uint32_t> irq_status{0};
    std::atomic<std::uint32_t> irq_mask{0};
    std::array<Link, ORR_LINK_MAX_PORTS> links;
    std::array<std::array<Reach, ORR_NODES>, ORR_LINK_MAX_PORTS> reach;
    std::array<Switches, ORR_LINK_MAX_PORTS> switches;
    std::atomic<std::uint32_t> node{0};
    std::atomic<std::uint64_t> barrier_states{0};
    std::atomic<std::uint32_t> barrier_fault{ORR_FAULT_NONE};
    std::atomic<std::uint32_t> barriers_done{0};
    std::atomic<std::uint32_t> multicast_fault{ORR_FAULT_NONE};
    std::atomic<std::uint32_t> multicasts_done{0};
    std::atomic<std::uint32_t> sink_fault{ORR_FAULT_NONE};
    std::atomic<std::uint32_t> sinks_done{0};
    std::atomic<std::uint32_t> notes_sent{0};
    std::atomic<std::uint32_t> note_fault{ORR_FAULT_NONE};
    std::atomic<std::uint32_t> snapshot_done{0};
    std::array<std::atomic<std::uint32_t>, ORR_NODES> routes{};  // as ORR_R_ROUTE shows them
    std::atomic<std::uint32_t> route_keys{0};
};

}  // namespace orrery::emu
