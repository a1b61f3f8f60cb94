// Registers as the PCI Express Base Specification has them; names as in the kernel's <linux/pci_regs.h>.
#include "emulator/pcie/config_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace orrery::emu {
namespace {

// Type 0 header.
constexpr size_t kCommand = 0x04;
constexpr uint16_t kCommandWritable = 0x0546;  // memory, bus master, parity, SERR, INTx disable; no I/O BARs
constexpr uint8_t kCommandMaster = 0x04;
constexpr size_t kStatus = 0x06;
constexpr uint16_t kStatusCapList = 0x0010;
constexpr uint16_t kStatusErrors = 0xf900;  // write 1 to clear
constexpr size_t kRevision = 0x08;          // and the class code in the upper 24 bits
constexpr size_t kCacheLine = 0x0c;
constexpr size_t kBar0 = 0x10;
constexpr uint32_t kBar64 = 0x4;
constexpr uint32_t kBarPrefetch = 0x8;
constexpr size_t kSubsystemVendor = 0x2c;
constexpr size_t kSubsystemId = 0x2e;
constexpr size_t kCapPointer = 0x34;
constexpr size_t kInterruptLine = 0x3c;

// Power management capability.
constexpr uint16_t kPmCapabilities = 0x0003;  // version 3; neither D1, D2 nor PME
constexpr uint16_t kPmStateMask = 0x0003;
constexpr uint16_t kPmNoSoftReset = 0x0008;  // D3hot keeps the card's state
constexpr uint8_t kPmD3Hot = 3;

// MSI capability, 64-bit addresses, no per-vector masks.
constexpr uint16_t kMsi64Bit = 0x0080;
constexpr uint16_t kMsiWritable = 0x0071;  // enable, number of messages granted

// MSI-X capability.
constexpr uint16_t kMsixWritable = 0xc000;  // enable, mask all

// PCI Express capability, offsets in it.
constexpr size_t kExpFlags = 0x02;
constexpr size_t kExpDevCap = 0x04;
constexpr size_t kExpDevCtl = 0x08;
constexpr size_t kExpDevSta = 0x0a;
constexpr size_t kExpLnkCap = 0x0c;
constexpr size_t kExpLnkCtl = 0x10;
constexpr size_t kExpLnkSta = 0x12;
constexpr size_t kExpDevCap2 = 0x24;
constexpr size_t kExpDevCtl2 = 0x28;
constexpr size_t kExpLnkCap2 = 0x2c;
constexpr size_t kExpLnkCtl2 = 0x30;
constexpr uint16_t kExpVersion2Endpoint = 0x0002;
// Payload 256 bytes, extended tags, role-based error reporting, function-level reset.
constexpr uint32_t kDevCap = 1u | (1u << 5) | (1u << 15) | (1u << 28);
constexpr uint16_t kDevCtlWritable =
    0x79ff;                                // all but aux power, phantom functions and FLR, which reads as 0
constexpr uint16_t kDevCtlReset = 0x2910;  // 512-byte reads, no-snoop, extended tags, relaxed ordering
constexpr uint8_t kDevCtlFlrHighByte = 0x80;
constexpr uint16_t kDevStaErrors = 0x000f;    // write 1 to clear
constexpr uint32_t kLnkCapNoAspm = 1u << 22;  // compliant with "no ASPM" reports
constexpr uint16_t kLnkCtlWritable = 0x00cb;  // ASPM, RCB, common clock, extended sync
// Completion time-out can be disabled. No AtomicOp is completed: nobody sends the card any.
constexpr uint32_t kDevCap2 = 1u << 4;
constexpr uint16_t kDevCtl2Atomics = 1u << 6;  // AtomicOp Requester Enable
constexpr uint16_t kDevCtl2Writable = 0x0010 | kDevCtl2Atomics;
constexpr uint16_t kLnkCtl2Writable = 0x000f;  // target speed

// Advanced error reporting.
constexpr uint32_t kAerUncorrectable = 0x0017f010;
constexpr uint32_t kAerSeverityReset = 0x00062010;  // protocol errors, overflow and malformed TLPs are fatal
constexpr uint32_t kAerCorrectable = 0x000031c1;
constexpr uint32_t kAerCorrectableMaskReset = 0x00002000;  // advisory non-fatal

constexpr uint32_t extended_header(uint16_t id, unsigned version, unsigned next) {
    return id | version << 16 | next << 20;
}

std::expected<void, std::string> validate_bar(const PciDescription& d, unsigned index) {
    const Bar& bar = d.bars[index];
    const auto bad = [&](std::string_view what) {
        return std::unexpected(fmt::format("BAR {}: {}", index, what));
    };
    if (bar.size == 0) {
        return bar.mapped.empty() ? std::expected<void, std::string>() : bad("has mapped areas but no size");
    }
    if (!std::has_single_bit(bar.size) || bar.size < 4096) {
        return bad("size must be a power of two and at least 4096");
    }
    if (bar.is_64bit) {
        if (index + 1 == kBarCount || d.bars[index + 1].size != 0) {
            return bad("a 64-bit BAR needs the next one to be empty");
        }
    } else if (bar.size > uint64_t{1} << 31) {
        return bad("more than 2 GiB need a 64-bit BAR");
    }
    if (bar.mapped.empty()) return {};
    if (bar.fd < 0) return bad("has mapped areas but no file descriptor");
    if (bar.fd_offset % 4096 != 0) return bad("file offset must be a multiple of 4096");
    uint64_t free_from = 0;
    for (const MappedArea& area : bar.mapped) {
        if (area.size == 0 || (area.offset | area.size) % 4096 != 0) {
            return bad("mapped areas must be multiples of 4096");
        }
        if (area.offset < free_from || area.offset > bar.size || area.size > bar.size - area.offset) {
            return bad("mapped areas must be ascending, disjoint and inside the BAR");
        }
        free_from = area.offset + area.size;
    }
    return {};
}

}  // namespace

std::expected<void, std::string> validate(const PciDescription& d) {
    for (unsigned i = 0; i < kBarCount; i++) {
        if (auto good = validate_bar(d, i); !good) return good;
    }
    if (d.link_speed < 1 || d.link_speed > 5) {
        return std::unexpected(fmt::format("link speed {}: generations 1 to 5 exist", d.link_speed));
    }
    if (!std::has_single_bit(d.link_width) || d.link_width > 16) {
        return std::unexpected(
            fmt::format("link width {}: 1, 2, 4, 8 or 16 lanes are possible", d.link_width));
    }
    if (d.interrupts != InterruptMode::kMsix) return {};
    const Bar& bar = d.bars[kMsixBar];
    const auto is_trapped = [&](uint64_t offset) {
        // A page each: clients map whole pages.
        return bar.size >= offset + 4096 && std::ranges::none_of(bar.mapped, [&](const MappedArea& area) {
                   return area.offset < offset + 4096 && offset < area.offset + area.size;
               });
    };
    if (!is_trapped(ORR_MSIX_TABLE_OFFSET) || !is_trapped(ORR_MSIX_PBA_OFFSET)) {
        return std::unexpected(
            fmt::format("BAR {}: must hold the MSI-X table at {:#x} and the pending bits at "
                        "{:#x}, and not map them",
                        kMsixBar, ORR_MSIX_TABLE_OFFSET, ORR_MSIX_PBA_OFFSET));
    }
    return {};
}

ConfigSpace::ConfigSpace(const PciDescription& d) {
    add_header(d);
    add_bars(d);
    const bool msix = d.interrupts == InterruptMode::kMsix;
    add_power_management(kCapMsi);
    add_msi(d.interrupts == InterruptMode::kSingle ? 1 : kVectorCount, kCapPcie);
    add_pcie(d, msix ? kCapMsix : 0);
    if (msix) add_msix(0);
    add_error_reporting();
    add_serial(d.serial);
    reset();
}

void ConfigSpace::put16(size_t at, uint16_t value) {
    put8(at, static_cast<uint8_t>(value));
    put8(at + 1, static_cast<uint8_t>(value >> 8));
}

void ConfigSpace::put32(size_t at, uint32_t value) {
    put16(at, static_cast<uint16_t>(value));
    put16(at + 2, static_cast<uint16_t>(value >> 16));
}

void ConfigSpace::mask(Bytes& bytes, size_t at, uint32_t bits, size_t size) {
    for (size_t i = 0; i < size; i++)
        bytes[at + i] = static_cast<uint8_t>(bits >> (8 * i));
}

void ConfigSpace::add_header(const PciDescription& d) {
    put16(0x00, ORR_PCI_VENDOR_ID);
    put16(0x02, ORR_PCI_DEVICE_ID);
    mask(writable_, kCommand, kCommandWritable, 2);
    put16(kStatus, kStatusCapList);
    mask(write1clear_, kStatus, kStatusErrors, 2);
    put32(kRevision, uint32_t{ORR_PCI_CLASS} << 8 | d.revision);
    mask(writable_, kCacheLine, 0xff, 1);
    put16(kSubsystemVendor, d.subsystem_vendor);
    put16(kSubsystemId, d.subsystem_device);
    put8(kCapPointer, kCapPm);
    mask(writable_, kInterruptLine, 0xff, 1);
    // Interrupt pin 0: there is no INTx.
}

void ConfigSpace::add_bars(const PciDescription& d) {
    for (unsigned i = 0; i < kBarCount; i++) {
        const Bar& bar = d.bars[i];
        if (bar.size == 0) continue;
        const size_t at = kBar0 + 4 * i;
        const uint64_t address_bits = ~(bar.size - 1);
        put32(at, (bar.is_64bit ? kBar64 : 0) | (bar.prefetchable ? kBarPrefetch : 0));
        mask(writable_, at, static_cast<uint32_t>(address_bits), 4);
        if (bar.is_64bit) mask(writable_, at + 4, static_cast<uint32_t>(address_bits >> 32), 4);
    }
}

void ConfigSpace::add_power_management(uint8_t next) {
    put8(kCapPm, 0x01);
    put8(kCapPm + 1, next);
    put16(kCapPm + 2, kPmCapabilities);
    put16(kCapPm + 4, kPmNoSoftReset);
    mask(writable_, kCapPm + 4, kPmStateMask, 2);
}

void ConfigSpace::add_msi(unsigned vectors, uint8_t next) {
    put8(kCapMsi, 0x05);
    put8(kCapMsi + 1, next);
    put16(kCapMsi + 2, static_cast<uint16_t>(kMsi64Bit | std::countr_zero(vectors) << 1));
    mask(writable_, kCapMsi + 2, kMsiWritable, 2);
    mask(writable_, kCapMsi + 4, 0xfffffffc, 4);
    mask(writable_, kCapMsi + 8, 0xffffffff, 4);
    mask(writable_, kCapMsi + 12, 0xffff, 2);
}

void ConfigSpace::add_pcie(const PciDescription& d, uint8_t next) {
    put8(kCapPcie, 0x10);
    put8(kCapPcie + 1, next);
    put16(kCapPcie + kExpFlags, kExpVersion2Endpoint);
    put32(kCapPcie + kExpDevCap, kDevCap);
    put16(kCapPcie + kExpDevCtl, kDevCtlReset);
    mask(writable_, kCapPcie + kExpDevCtl, kDevCtlWritable, 2);
    mask(write1clear_, kCapPcie + kExpDevSta, kDevStaErrors, 2);
    put32(kCapPcie + kExpLnkCap, kLnkCapNoAspm | d.link_width << 4 | d.link_speed);
    mask(writable_, kCapPcie + kExpLnkCtl, kLnkCtlWritable, 2);
    put16(kCapPcie + kExpLnkSta, static_cast<uint16_t>(d.link_width << 4 | d.link_speed));
    put32(kCapPcie + kExpDevCap2, kDevCap2);
    mask(writable_, kCapPcie + kExpDevCtl2, kDevCtl2Writable, 2);
    put32(kCapPcie + kExpLnkCap2, ((1u << d.link_speed) - 1) << 1);  // all speeds up to the link's
    put16(kCapPcie + kExpLnkCtl2, static_cast<uint16_t>(d.link_speed));
    mask(writable_, kCapPcie + kExpLnkCtl2, kLnkCtl2Writable, 2);
}

void ConfigSpace::add_msix(uint8_t next) {
    put8(kCapMsix, 0x11);
    put8(kCapMsix + 1, next);
    put16(kCapMsix + 2, kVectorCount - 1);
    mask(writable_, kCapMsix + 2, kMsixWritable, 2);
    put32(kCapMsix + 4, ORR_MSIX_TABLE_OFFSET | kMsixBar);
    put32(kCapMsix + 8, ORR_MSIX_PBA_OFFSET | kMsixBar);
}

void ConfigSpace::add_error_reporting() {
    put32(kExtCapAer, extended_header(0x0001, 2, kExtCapSerial));
    mask(write1clear_, kExtCapAer + 0x04, kAerUncorrectable, 4);
    mask(writable_, kExtCapAer + 0x08, kAerUncorrectable, 4);
    put32(kExtCapAer + 0x0c, kAerSeverityReset);
    mask(writable_, kExtCapAer + 0x0c, kAerUncorrectable, 4);
    mask(write1clear_, kExtCapAer + 0x10, kAerCorrectable, 4);
    put32(kExtCapAer + 0x14, kAerCorrectableMaskReset);
    mask(writable_, kExtCapAer + 0x14, kAerCorrectable, 4);
}

void ConfigSpace::add_serial(uint64_t serial) {
    put32(kExtCapSerial, extended_header(0x0003, 1, 0));
    put32(kExtCapSerial + 4, static_cast<uint32_t>(serial));
    put32(kExtCapSerial + 8, static_cast<uint32_t>(serial >> 32));
}

void ConfigSpace::read(size_t offset, std::span<std::byte> out) const {
    std::ranges::copy(std::as_bytes(std::span(value_).subspan(offset, out.size())), out.begin());
}

ConfigSpace::Effects ConfigSpace::write(size_t offset, std::span<const std::byte> in) {
    constexpr size_t flr_byte = kCapPcie + kExpDevCtl + 1;
    constexpr size_t power_byte = kCapPm + 4;
    const bool was_master = bus_master(), had_atomics = atomics();
    Effects effects;
    for (size_t i = 0; i < in.size(); i++) {
        const size_t at = offset + i;
        const auto byte = std::to_integer<uint8_t>(in[i]);
        if (at == flr_byte && (byte & kDevCtlFlrHighByte) != 0) effects.function_reset = true;
        uint8_t writable = writable_[at];
        if (at == power_byte) {
            // D1 and D2 do not exist: a write of them leaves the state alone.
            const uint8_t state = byte & kPmStateMask;
            if (state != 0 && state != kPmD3Hot) writable &= static_cast<uint8_t>(~kPmStateMask);
        }
        value_[at] = static_cast<uint8_t>((value_[at] & ~writable) | (byte & writable));
        value_[at] &= static_cast<uint8_t>(~(byte & write1clear_[at]));
    }
    effects.bus_master_changed = bus_master() != was_master;
    effects.atomics_changed = atomics() != had_atomics;
    return effects;
}

bool ConfigSpace::bus_master() const {
    return (value_[kCommand] & kCommandMaster) != 0;
}

bool ConfigSpace::atomics() const {
    return (value_[kCapPcie + kExpDevCtl2] & kDevCtl2Atomics) != 0;
}

}  // namespace orrery::emu
