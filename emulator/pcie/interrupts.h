// Interrupt delivery to the client: an eventfd a vector, for MSI-X or MSI, whichever the guest has enabled.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

#include "emulator/base/unique_fd.h"
#include "emulator/pcie/device.h"

namespace orrery::emu {

// Thread safety: raise(), raise_error(), request_release() and counters() from any thread; they hold a short
// lock around one non-blocking write. The rest belongs to the server.
class Interrupts {
  public:
    struct Counters {
        uint64_t raised = 0;   // calls of raise()
        uint64_t sent = 0;     // eventfds written
        uint64_t dropped = 0;  // no descriptor for that vector, or no such vector
        uint64_t pended = 0;   // vector was masked: its pending bit was set
    };

    // Signals `vector` (0 .. kVectorCount - 1). With fewer messages enabled than that, vector v goes to
    // message v modulo their number, as orrery/hw/pci.h has it. Without a descriptor the interrupt is dropped
    // and counted. Both types are never enabled at once; if a client does it all the same, MSI-X wins.
    void raise(unsigned vector);

    // Tells the client of an uncorrectable error. QEMU answers by stopping the VM.
    void raise_error();

    // Asks the client to give the card up. QEMU answers by an unplug request to the guest.
    void request_release();

    Counters counters() const;

    // For the server. Interrupt types by their VFIO index: 1 MSI, 2 MSI-X, 3 error, 4 release request.
    static constexpr unsigned kMsiIndex = 1;
    static constexpr unsigned kMsixIndex = 2;
    static constexpr unsigned kErrorIndex = 3;
    static constexpr unsigned kRequestIndex = 4;
    static constexpr unsigned kIndexCount = 5;

    // `fds[i]` becomes the descriptor of vector start + i; an empty one removes it. The caller has checked
    // the range. The descriptors must be eventfds.
    void set_eventfds(unsigned index, unsigned start, std::span<UniqueFd> fds);
    // Masked vectors pend; unmasking sends what is pending.
    void set_masked(unsigned index, unsigned start, unsigned count, bool masked);
    // Signals by the client's own wish (loopback test).
    void trigger(unsigned index, unsigned start, unsigned count);
    // Drops all descriptors, masks and pending bits of one type, or of all.
    void disable(unsigned index);
    void disable_all();
    // Reset of the function: pending bits go, descriptors and masks stay.
    void clear_pending();
    // Pending bits of the MSI-X vectors, bit v for vector v.
    uint64_t pending() const;

  private:
    struct Type {
        std::array<UniqueFd, kVectorCount> fds;
        uint64_t masked = 0;
        uint64_t pending = 0;
        unsigned enabled = 0;  // 1 + highest vector that has a descriptor
    };

    void signal(Type& type, unsigned vector);
    static void drop(Type& type);

    mutable std::mutex mutex_;
    std::array<Type, kIndexCount> types_;
    Counters counters_;
};

}  // namespace orrery::emu
