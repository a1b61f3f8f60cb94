// BAR 0 as the host sees it (orrery/hw/bar0.h): decodes accesses, answers reads from the register file, and
// posts what writes ask for to the card thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <orrery/hw/bar0.h>

#include "emulator/base/access_watch.h"
#include "emulator/card/card.h"

namespace orrery::emu {

// I/O thread only.
class HostRegisters {
  public:
    explicit HostRegisters(Card& card);

    // `bytes` are 1, 2, 4 or 8, naturally aligned, inside the BAR. A read is ordered behind all earlier
    // writes: it waits until the card has taken them, but no longer than some milliseconds.
    void read(std::uint64_t offset, std::span<std::byte> bytes);
    void write(std::uint64_t offset, std::span<const std::byte> bytes);

    // Card reset: what the host has written goes, and the card resets. Does not wait.
    void reset();
    // Forgets what the host has written.
    void clear();

  private:
    void nothing_there(std::uint64_t offset, std::size_t bytes, const char* access);
    // Why no waiting will change what the host reads there; nullptr: something may.
    const char* why_it_stays(std::uint64_t offset) const;
    // Half of a register; nothing: no readable register there.
    bool read32(std::uint64_t offset, std::uint32_t& value);
    bool read_link(unsigned port, std::uint64_t reg, std::uint32_t& value) const;
    bool read_reach(std::uint64_t at, std::uint32_t& value) const;
    bool read_switches(std::uint64_t at, std::uint32_t& value) const;
    bool read_link_count(unsigned port, std::uint64_t reg, std::uint32_t& value) const;
    // One of the 64-bit registers that can be read, by the offset of its low half.
    bool read_wide(std::uint64_t offset, std::uint64_t& value) const;
    bool write32(std::uint64_t offset, std::uint32_t value);
    bool write_link(unsigned port, std::uint64_t reg, std::uint32_t value);
    // A 64-bit RW register, by the offset of its low half; nullptr: none.
    std::uint64_t* wide_storage(std::uint64_t offset);

    struct Grant {
        std::uint64_t base = 0;
        std::uint64_t size = 0;
        std::uint32_t node = 0;
        std::uint32_t rights = ORR_LINK_RIGHT_WRITE | ORR_LINK_RIGHT_SIGNAL;
        std::uint64_t key = 0;
    };

    static constexpr std::uint64_t kSpins = 1024;

    Card& card_;
    std::string sku_table_;  // padded to whole words
    std::uint32_t sku_bytes_;
    AccessWatch watch_{kSpins};
    std::uint64_t boot_image_ = 0;
    std::uint64_t boot_arg_ = 0;
    std::uint32_t boot_size_ = 0;
    struct Barrier {
        std::uint32_t member = 0;
        std::uint64_t key = 0, release = 0, word = 0;
    };
    Barrier barrier_;
    struct Multicast {
        std::uint32_t member = 0;
        std::uint64_t base = 0;
    };
    Multicast multicast_;
    std::uint64_t snapshot_ = 0;
    struct Sink {
        std::uint64_t base = 0, types = 0;
        std::uint32_t ask = 0, period = 0, pc_period = 0;
        std::uint64_t set = 0, set_high = 0;
        std::uint32_t step_core = 0;
        std::uint64_t step_from = 0, step_until = 0;
    };
    Sink sink_;
    std::array<Grant, ORR_LINK_MAX_PORTS> grants_{};
    std::array<std::uint64_t, ORR_NODES> route_keys_{};  // of some only the lower half has been written
    std::array<std::uint32_t, ORR_NOTE_BYTES / 4> note_{};
};

}  // namespace orrery::emu
