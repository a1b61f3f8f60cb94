// First stage of extract(): listens to every access of the replayed core, and notes the mailbox's commands,
// the packets that the ring slots delivered, and where rings are.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <orrery/fw/mailbox.h>
#include <orrery/fw/packet.h>

#include "emulator/api/replayer.h"

namespace orrery::scenario {

// One life of a queue: its number may be used again after it was destroyed.
struct ObservedQueue {
    std::uint32_t number = 0, asid = 0, page = 0, slot = 0;
    std::uint64_t ring_va = 0;
    std::size_t context = 0;  // index
    orr_mbox_message create{};
    std::uint64_t created_ps = 0, destroyed_ps = ~std::uint64_t{0};
    std::string name;
    bool ring_in_vram = false;
    std::map<std::uint64_t, orr_packet> packets;   // by index
    std::map<std::uint64_t, std::uint32_t> words;  // bit n: word n of it was read
};

struct ObservedContext {
    std::uint32_t number = 0;
    orr_mbox_message create{};
    std::string name;
};

struct ObservedCommand {
    std::uint64_t time_ps = 0;
    orr_mbox_message message{};
    std::size_t queue = ~std::size_t{0};  // index of the queue that it is about
    std::size_t context = ~std::size_t{0};
};

struct Observed {
    std::uint64_t boot_block = 0;  // bus address
    std::vector<ObservedContext> contexts;
    std::vector<ObservedQueue> queues;
    std::vector<ObservedCommand> commands;  // that change what exists: QUEUE_SET, QUOTA_SET, QUEUE_DESTROY
    // Values that the core saw in memory: semaphores. By window address, in order of time.
    std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> loads;

    // The queue that had this number at that time; -1: none.
    int queue_at(std::uint32_t number, std::uint64_t time_ps) const;
};

class Observer {
  public:
    explicit Observer(std::uint64_t host_store_ps) : host_store_ps_(host_store_ps) {}
    void see(const emu::PortAccess& access);
    Observed take() { return std::move(observed_); }

  private:
    struct Slot {
        std::uint64_t next = 0;
        int queue = -1;
    };
    void see_register(const emu::PortAccess& access);
    void see_host(std::uint64_t bus, const emu::PortAccess& access);
    void see_context(const emu::PortAccess& access);
    void command(const orr_mbox_message& message, std::uint64_t time_ps);
    int queue_of_ring(std::uint32_t asid, std::uint64_t va) const;

    const std::uint64_t host_store_ps_;
    Observed observed_;
    std::uint64_t commands_at_ = 0, commands_read_ = 0;
    std::array<orr_mbox_message, ORR_MBOX_ENTRIES> ring_{};
    std::array<Slot, 64> slots_{};
    std::size_t launched_ = 64;   // slot of the last launch
    std::size_t signalled_ = 64;  // slot of a signal, until it is known whether it went
};

}  // namespace orrery::scenario
