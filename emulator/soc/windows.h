// The control core's windows onto VRAM, host memory and address spaces, and the semaphore unit
// (orrery/hw/soc.h).
#pragma once

#include <array>
#include <cstdint>

#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>

#include "emulator/api/sku.h"
#include "emulator/base/tlb_tags.h"
#include "emulator/memory/host_memory.h"
#include "emulator/memory/mmu.h"
#include "emulator/memory/peer.h"
#include "emulator/memory/vram.h"
#include "emulator/model/memory_system.h"
#include "emulator/probes/counters.h"

namespace orrery::emu {

// What became of a signal.
struct Signalled {
    std::uint32_t fault = ORR_FAULT_NONE;
    std::uint64_t memory = ~std::uint64_t{0};  // see memory_of(); all-ones: to a peer, or nowhere
    ModelTime walk = 0;                        // what its translation takes
};

using PacketWords = std::array<std::uint64_t, 8>;

// What became of reading a packet ahead.
struct Fetched {
    std::uint64_t address = 0;  // window address, for SOC_WINDOW_FAULT_VA
    std::uint32_t fault = ORR_FAULT_NONE;
    bool host = false;   // it came from host memory; otherwise VRAM, or the fault was found in tables there
    ModelTime walk = 0;  // what its translation takes
};

// The window address of translated memory, the same from every context; all-ones for a peer's.
std::uint64_t memory_of(const Translation& found);

// Card thread only.
class Windows {
  public:
    Windows(Vram& vram, HostMemory& host, Mmu& mmu, const Peers& peers, EventQueue& events,
            MemorySystem& memory, Counters& counters, const Sku& sku);

    // One aligned access of 1, 2, 4 or 8 bytes. false: the address is in no window (or beyond VRAM): the core
    // traps. `stall` is what the access takes beyond its cycle. Accesses of the context and host windows that
    // cannot be done read as 0 or are dropped, and set fault().
    bool load(std::uint64_t address, unsigned size, std::uint64_t& value, ModelTime& stall);
    bool store(std::uint64_t address, unsigned size, std::uint64_t value, ModelTime& stall);

    // Reads the 64-byte entry `entry` of the array at window address `base`; zeros if that cannot be done.
    // Sets no sticky fault, and traps nobody.
    Fetched fetch(std::uint64_t base, std::uint64_t entry, PacketWords& words);

    // Sticky: the first since it was cleared.
    std::uint32_t fault() const { return fault_; }
    std::uint64_t fault_address() const { return fault_address_; }
    void clear_fault() { fault_ = ORR_FAULT_NONE; }
    void set_fault(std::uint32_t code, std::uint64_t address);
    void reset();
    // Who takes signals of its pages; it outlives the core's use.
    void attach(Arrivals& arrivals) { arrivals_ = &arrivals; }

    // Raises the semaphore at `va` to {value, time}, or signals it on a peer. Of a page of the barrier
    // unit it is an arrival.
    Signalled signal(std::uint32_t asid, std::uint64_t va, std::uint64_t value, ModelTime now);
    // What the control core waits for the translation of `va`, which it has just used.
    ModelTime walk(std::uint32_t asid, std::uint64_t va, bool huge) {
        return read_tables(walks(asid, va, huge));
    }
    // Of the semaphore at a VRAM or host window address. Gives ORR_FAULT_*.
    std::uint32_t close(std::uint64_t address);

    // Whether `address` belongs to a window.
    static bool covers(std::uint64_t address);

  private:
    struct Place {
        std::uint8_t* host = nullptr;  // nullptr: peer
        std::uint16_t node = 0;
        std::uint64_t address = 0;
        std::uint32_t fault = ORR_FAULT_NONE;
        bool in_host = false;    // or with a peer
        bool in_tables = false;  // that is where the fault was found
        unsigned walks = 0;      // entries of tables that were read
    };
    enum class Found : std::uint8_t { kTrap, kFault, kYes };
    Found find(std::uint64_t address, unsigned size, bool write, Place& place);
    ModelTime cost(const Place& place, bool write);
    unsigned walks(std::uint32_t asid, std::uint64_t va, bool huge);
    ModelTime read_tables(unsigned entries);
    std::uint32_t store_to_peer(const Place& place, unsigned size, std::uint64_t value);

    Vram& vram_;
    HostMemory& host_;
    Mmu& mmu_;
    const Peers& peers_;
    Arrivals* arrivals_ = nullptr;
    EventQueue& events_;
    MemorySystem& memory_;
    Counters& counters_;
    const Sku& sku_;
    TlbTags tlb_;
    std::uint32_t fault_ = ORR_FAULT_NONE;
    std::uint64_t fault_address_ = 0;
};

}  // namespace orrery::emu
