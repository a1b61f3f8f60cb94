// The vector cores of a card and the dispatch ports that share them.
//
// A work distributor hands the work-groups of the dispatches in flight to cores that are free: the highest
// priority first, and inside a priority so that core time is shared by weight. A core runs the items of its
// group one after another, in quanta of cycles on the event queue; between two quanta its group can be saved,
// and go on later on any core. Orders and times depend on the model clock only.
#pragma once

#include <functional>
#include <memory>

#include "emulator/engines/ahead/launch_account.h"
#include "emulator/engines/engine.h"
#include "emulator/engines/kernel_debugger.h"

namespace orrery::emu {

struct VectorConfig {
    std::uint32_t cores = 8;                  // 1 .. 256
    std::uint32_t ports = 4;                  // 1 .. 64
    std::uint32_t first_port = 0;             // number of port 0 in completions; the others follow
    std::uint32_t vlen = 0;                   // bits of a vector register, 0: none
    std::uint32_t datapath_bits = 512;        // elements that a vector instruction does in a cycle
    std::uint64_t hz = 1'500'000'000;         // one instruction a cycle
    ModelTime launch_ps = 500 * kPsPerNs;     // start of a descriptor to its first work-group
    ModelTime group_ps = 20 * kPsPerNs;       // work-group to a core
    std::uint64_t item_cycles = 4;            // start of a work-item
    std::uint64_t quantum = 2'000;            // cycles an event, at least 1 and at most 2 us
    ModelTime save_core_ps = 200 * kPsPerNs;  // to save or load a work-group, behind its bytes
    // Bytes of a core's cache in front of memory; 0: kernels' accesses to memory take no time.
    std::uint64_t l1_bytes = 0;
    std::uint32_t tlb_entries =
        0;               // pages whose translation a core has at hand; 0: translations cost nothing
    unsigned check = 0;  // of kernels' accesses: see emulator/api/checks.h
    std::uint64_t check_bytes = std::uint64_t{1} << 32;  // that checks take of the host's memory
    std::uint64_t in_flight = 0;  // lines that a core's vector loads ask for at once; 0: any number
    // What a core does for the host before that sees to other things, in some 50 ns: no part of the model.
    std::uint64_t most_work = 1024;
    // Host threads that compute work-groups ahead of their time, beside the card's: no part of the model.
    // They need l1_bytes, and there are none where launches are checked.
    unsigned threads = 0;
    // Is told of each launch, and of each part of one between preemptions, when it has ended.
    std::function<void(const LaunchAccount&)> account{};
};

class VectorUnit {
  public:
    // Values out of range are brought into it.
    VectorUnit(const VectorConfig& config, EngineContext& context);
    ~VectorUnit();
    VectorUnit(const VectorUnit&) = delete;
    VectorUnit& operator=(const VectorUnit&) = delete;

    // Port `index` < config().ports.
    EnginePort& port(std::uint32_t index);
    const VectorConfig& config() const;

    // Forgets all dispatches, without completions.
    void reset();
    // Drops every host pointer that a core keeps. Not needed for safety: a core looks at the MMU's generation
    // before it runs, and no core runs between two events.
    void flush();
    KernelDebugger& debugger();

    // No thread holds a host pointer, and what has not been played yet has not begun: before the MMU changes.
    void settle();
    // What of the cores' time up to now is in no counter yet, and of that waits for other cards.
    ModelTime busy_now() const;
    ModelTime waits_now() const;
    // From now on the job log is told where cores are at each multiple of this period; 0: no more. Model and
    // results are the same; nothing is computed ahead meanwhile. What a quantum began before has none.
    void sample(ModelTime period);
    // And of each cycle of this core from then until before `until`, instead; a number of no core: of none.
    static constexpr std::uint32_t kNoCore = ~std::uint32_t{0};
    void trace(std::uint32_t core, ModelTime from, ModelTime until);
    // What groups have done stands in memory: before anything but their own events looks at it.
    void join();

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace orrery::emu
