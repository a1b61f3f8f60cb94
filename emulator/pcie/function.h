// The PCIe function as a whole: configuration space, BARs with what is behind them, and resets. It knows
// nothing of messages; a session turns those into calls here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/pcie/config_space.h"
#include "emulator/pcie/device.h"
#include "emulator/pcie/interrupts.h"
#include "emulator/pcie/msix.h"

namespace orrery::emu {

class PciFunction {
  public:
    // `description` has passed validate(); device and interrupts outlive the function.
    PciFunction(PciDescription description, PciDevice& device, Interrupts& interrupts);

    // Any length and alignment; the range lies inside the BAR or the configuration space.
    void bar_read(unsigned bar, uint64_t offset, std::span<std::byte> out);
    void bar_write(unsigned bar, uint64_t offset, std::span<const std::byte> in);
    void config_read(uint64_t offset, std::span<std::byte> out) const { config_.read(offset, out); }
    // True when the write reset the function.
    bool config_write(uint64_t offset, std::span<const std::byte> in);

    void reset(ResetKind kind);
    // Everything as after power-on, without telling the device of a reset: the client has gone.
    void power_on();

    const PciDescription& description() const { return description_; }
    // Vectors that the function has of an interrupt type, by Interrupts::k*Index.
    unsigned vector_count(unsigned index) const;

  private:
    // Length of the piece at `offset` that is served in one go, and where from.
    enum class Backing { kFile, kMsix, kDevice };
    struct Piece {
        Backing backing;
        size_t size;
    };
    Piece piece(unsigned bar, uint64_t offset, size_t wanted) const;
    void clear_registers();

    PciDescription description_;
    PciDevice& device_;
    Interrupts& interrupts_;
    ConfigSpace config_;
    MsixTable msix_;
};

}  // namespace orrery::emu
