// What a card is to the PCIe function: the callbacks that it answers, and the description from which the
// function's configuration space and regions are made.
//
// The function itself (configuration space, capabilities, MSI-X table, FLR) lives behind this border, in
// VfioUserServer; a card sees BAR accesses, DMA maps and resets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <orrery/hw/pci.h>

#include "emulator/base/unique_fd.h"

namespace orrery::emu {

inline constexpr unsigned kBarCount = 6;

// Vectors of the function: MSI-X table size, and what MSI asks for unless the mode is kSingle.
inline constexpr unsigned kVectorCount = ORR_IRQ_VECTORS;

// BAR that holds MSI-X table and pending bits, at ORR_MSIX_TABLE_OFFSET and ORR_MSIX_PBA_OFFSET. It must
// cover them and must not map them. In mode kMsix the function answers accesses to the table (16 bytes a
// vector) and to the pending bits (8 bytes); the device never sees those.
inline constexpr unsigned kMsixBar = ORR_BAR_REGS;

enum class InterruptMode {
    kMsix,    // MSI-X (8 vectors) and MSI (asks for 8)
    kMsi,     // MSI only, asks for 8: QEMU can unplug such a card (stock 11.1 aborts on one with MSI-X)
    kSingle,  // MSI only, one vector
};

enum class ResetKind {
    kBus,       // the machine resets: VFIO_USER_DEVICE_RESET
    kFunction,  // the driver asked for a function-level reset (FLR) through PCIe device control
};

// A range of a BAR that the client may map. The byte at BAR offset o is at file offset Bar::fd_offset + o.
struct MappedArea {
    uint64_t offset = 0;  // from the start of the BAR; multiple of 4096
    uint64_t size = 0;    // bytes; multiple of 4096, not 0
};

// One memory BAR. A 64-bit BAR takes its index and the next one, which must stay empty.
struct Bar {
    uint64_t size = 0;  // bytes; 0: not present; else a power of two >= 4096 (and < 4 GiB for a 32-bit BAR)
    bool is_64bit = false;
    bool prefetchable = false;
    // Memory behind the mapped areas: a memfd of the card's, borrowed, and open as long as the server lives.
    // -1: every access traps. All areas of one BAR share it, because the protocol has one descriptor a
    // region.
    int fd = -1;
    uint64_t fd_offset = 0;          // file offset that BAR offset 0 has; multiple of 4096
    std::vector<MappedArea> mapped;  // ascending, disjoint; empty: every access traps
};

struct PciDescription {
    InterruptMode interrupts = InterruptMode::kMsix;
    uint8_t revision = 1;
    uint16_t subsystem_vendor = ORR_PCI_VENDOR_ID;
    uint16_t subsystem_device = ORR_PCI_DEVICE_ID;
    uint64_t serial = 0;       // the card's unique id: device serial number capability
    unsigned link_speed = 4;   // PCIe generation 1..5, as link capability and status report it
    unsigned link_width = 16;  // lanes: 1, 2, 4, 8, 16
    std::array<Bar, kBarCount> bars;
};

// A range of guest memory that the card may reach. Ranges never overlap one another.
struct DmaMap {
    uint64_t address = 0;  // bus address; multiple of 4096
    uint64_t size = 0;     // bytes; multiple of 4096, not 0; address + size does not wrap
    UniqueFd fd;           // memory to mmap, or none: the range exists but cannot be reached (see dma_map)
    uint64_t offset = 0;   // file offset of `address`; the file covered offset + size when it arrived
    bool readable = false;
    bool writable = false;
};

// The card. All calls come from the thread that runs VfioUserServer::run(), one at a time. They must return
// at once: the guest's vCPUs wait for the reply. Whatever takes time is enqueued for a thread of the card's.
class PciDevice {
  public:
    PciDevice() = default;
    PciDevice(const PciDevice&) = delete;
    PciDevice& operator=(const PciDevice&) = delete;
    virtual ~PciDevice() = default;

    // A trapped access. `bar` is present, the range lies inside it, and the span is 1, 2, 4 or 8 bytes and
    // naturally aligned: longer or crooked accesses arrive in pieces, lowest address first. Little-endian.
    // Accesses to mapped areas, which a client may send too, are served from the file and do not come here.
    virtual void bar_read(unsigned bar, uint64_t offset, std::span<std::byte> out) = 0;
    virtual void bar_write(unsigned bar, uint64_t offset, std::span<const std::byte> in) = 0;

    // A range appears. QEMU sends ranges without a descriptor for other cards' BARs, ROMs, and for guest RAM
    // that is not a shared memfd; `map.fd` is empty then. Returns 0, or an errno that the client gets (the
    // range then does not exist).
    [[nodiscard]] virtual int dma_map(DmaMap map) = 0;

    // A range goes: exactly one that dma_map() took. When this returns, nothing in the card uses a pointer
    // into it any more. Called for each range that is left before client_gone().
    virtual void dma_unmap(uint64_t address, uint64_t size) = 0;

    // Reset of registers, engines and queues. DMA maps and interrupt descriptors stay: the client owns them.
    virtual void reset(ResetKind kind) = 0;

    // The driver switched bus mastering: while it is off, the card must not start DMA.
    virtual void bus_master(bool enabled) { static_cast<void>(enabled); }

    // The driver switched AtomicOp Requester Enable: while it is off, the card must not start AtomicOps.
    virtual void atomics(bool enabled) { static_cast<void>(enabled); }

    // A client (a VM) has attached, and has left or died. After client_gone() there is no DMA map and no
    // interrupt descriptor, and configuration space is as after power-on; the card does the same with itself,
    // as a next client may come.
    virtual void client_attached() {}
    virtual void client_gone() = 0;
};

}  // namespace orrery::emu
