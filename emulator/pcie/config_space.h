// The configuration space of the function: values, which bits software may write, and what a write sets off.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "emulator/pcie/device.h"

namespace orrery::emu {

inline constexpr size_t kConfigSize = 4096;

// Where the capabilities sit. Drivers walk the list; tests look here.
inline constexpr unsigned kCapPm = 0x40;
inline constexpr unsigned kCapMsi = 0x50;
inline constexpr unsigned kCapPcie = 0x70;
inline constexpr unsigned kCapMsix = 0xb0;
inline constexpr unsigned kExtCapAer = 0x100;
inline constexpr unsigned kExtCapSerial = 0x150;

// Checks what the card says of itself; the error names what is wrong.
std::expected<void, std::string> validate(const PciDescription& description);

class ConfigSpace {
  public:
    // `description` has passed validate().
    explicit ConfigSpace(const PciDescription& description);

    // What a write asks for besides changing bits.
    struct Effects {
        bool function_reset = false;      // FLR was initiated; reset() was not called yet
        bool bus_master_changed = false;  // see bus_master()
        bool atomics_changed = false;     // see atomics()
    };

    // The range lies inside the space; any length, any alignment.
    void read(size_t offset, std::span<std::byte> out) const;
    Effects write(size_t offset, std::span<const std::byte> in);

    // Back to the values after power-on.
    void reset() { value_ = initial_; }

    bool bus_master() const;
    // AtomicOp Requester Enable of Device Control 2.
    bool atomics() const;

  private:
    using Bytes = std::array<uint8_t, kConfigSize>;

    void put8(size_t at, uint8_t value) { initial_[at] = value; }
    void put16(size_t at, uint16_t value);
    void put32(size_t at, uint32_t value);
    static void mask(Bytes& bytes, size_t at, uint32_t bits, size_t size);
    void add_header(const PciDescription& description);
    void add_bars(const PciDescription& description);
    void add_power_management(uint8_t next);
    void add_msi(unsigned vectors, uint8_t next);
    void add_pcie(const PciDescription& description, uint8_t next);
    void add_msix(uint8_t next);
    void add_error_reporting();
    void add_serial(uint64_t serial);

    Bytes initial_{};
    Bytes value_{};
    Bytes writable_{};     // bits that take what is written
    Bytes write1clear_{};  // bits that a written 1 clears
};

}  // namespace orrery::emu
