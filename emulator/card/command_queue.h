// Posted work from the I/O thread to the card thread: one writer, one reader, in order, bounded.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include <orrery/hw/bar0.h>

#include "emulator/memory/host_memory.h"

namespace orrery::emu {

struct Command {
    enum class Kind : std::uint8_t {
        kBootStart,  // a: image, b: size, c: boot argument
        kReset,
        kRestartCore,
        kMailbox,
        kNode,        // number: the card's
        kRoute,       // number: node, a: as in the register
        kRouteKey,    // number: node, a: as in the register
        kForward,     // number: port, a: as ORR_R_LINK_CONTROL
        kDrain,       // number: port
        kLinkReset,   // number: port
        kGrant,       // number: port | node << 16, a: base, b: size, c: command word | rights, d: key
        kNote,        // number: port, a: node, note
        kBarrier,     // number: command word, a: member, b: release, c: word, d: key
        kMulticast,   // number: of the multicast, a: node, b: base
        kSnapshot,    // a: bus address | tag
        kSink,        // number: bytes, a: base, b: types
        kSinkAsk,     // number: ORR_SINK_ASK_*
        kSample,      // number: period in ns, a, b: set
        kSamplePc,    // number: period in ns
        kTraceCore,   // number: 1 + core or 0, a, b: from, until
        kBusMaster,   // number: 0 or 1
        kAtomics,     // number: 0 or 1
        kMap,         // range, error
        kUnmap,       // a: address, b: size, range
        kClientGone,  // power-on state
    };
    Kind kind = Kind::kMailbox;
    std::uint32_t number = 0;
    static constexpr unsigned kRightsShift = 32;
    std::uint64_t a = 0, b = 0, c = 0, d = 0;
    std::array<std::uint32_t, ORR_NOTE_BYTES / 4> note{};
    // In and out of the commands that their sender waits for; borrowed until the command has been carried
    // out.
    std::optional<HostRange>* range = nullptr;
    int* error = nullptr;
};

// push() and drained() belong to the I/O thread, the rest to the card thread; empty() to both.
class CommandQueue {
  public:
    static constexpr std::uint64_t kCapacity = 1024;

    // false: full, try again.
    bool push(const Command& command) {
        const std::uint64_t tail = pushed_.load(std::memory_order_relaxed);
        if (tail - done_.load(std::memory_order_acquire) >= kCapacity) return false;
        slots_[tail % kCapacity] = command;
        pushed_.store(tail + 1, std::memory_order_release);
        return true;
    }
    // Everything pushed so far has been carried out.
    bool drained() const {
        return done_.load(std::memory_order_acquire) == pushed_.load(std::memory_order_acquire);
    }

    bool empty() const {
        return pushed_.load(std::memory_order_acquire) == done_.load(std::memory_order_relaxed);
    }
    // Not when empty.
    const Command& front() const { return slots_[done_.load(std::memory_order_relaxed) % kCapacity]; }
    // The front has been carried out: the I/O thread sees all that it did.
    void pop() { done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  private:
    std::vector<Command> slots_ = std::vector<Command>(kCapacity);
    alignas(64) std::atomic<std::uint64_t> pushed_{0};
    alignas(64) std::atomic<std::uint64_t> done_{0};
};

}  // namespace orrery::emu
