// A debugger at the harts of the vector cores: where they stand still, and what may be seen and changed then.
//
// When one of them comes to a stop, the rest of its go is left for later, and stopped() is true: from then on
// nobody runs events until resume(), so all harts and the model time of the card stand with it. Nothing is
// written into a kernel's memory: breakpoints are in the decoded code, which all harts have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "emulator/core/hart.h"
#include "emulator/core/watch.h"

namespace orrery::emu {

class VectorCore;
struct Quantum;

// Why the harts stand still.
struct KernelStop {
    enum class Kind : std::uint8_t {
        kAsked,
        kStep,
        kBreakpoint,
        kWatchpoint,
        kTrap,    // before the kernel's end is reported: it ends if the item meets the same again
        kLaunch,  // before the first instruction of a launch
    };
    Kind kind = Kind::kAsked;
    std::uint32_t core = 0;
    std::uint64_t address = 0;  // kWatchpoint: of the access
    bool read = false;
    std::uint32_t status = 0;  // kTrap: ORR_DONE_FAULT or ORR_DONE_TRAP
    std::uint64_t fault = 0;   // and its cause
};

// Where a hart is.
struct KernelPlace {
    std::uint32_t asid = 0;
    std::uint64_t entry = 0;
    std::uint64_t group[3] = {}, item[3] = {};
};

// A watched range is of one address space, or, above the MMU, of one core.
struct KernelWatch {
    WatchRange range;
    std::uint32_t owner = 0;
    bool operator==(const KernelWatch&) const = default;
};

class KernelDebugger {
  public:
    // `cores` outlive it. `works`: has this one a group? `attaches`: before one looks at them.
    KernelDebugger(std::vector<VectorCore*> cores, std::function<bool(std::uint32_t core)> works,
                   std::function<void()> attaches);
    KernelDebugger(const KernelDebugger&) = delete;
    KernelDebugger& operator=(const KernelDebugger&) = delete;

    // --- card thread, between two events ---
    void attach();  // all harts stand still
    void detach();  // and run on, without points
    bool attached() const { return attached_; }
    bool stopped() const { return stopped_; }
    const KernelStop& stop() const { return stop_; }
    void stop_now();  // before a launch is looked at, if it stands for that
    void resume();
    // An instruction of one hart, while all others and the model time stand; what it takes is charged later.
    // The last item of a group stays at its end.
    void step(std::uint32_t core);

    std::uint32_t cores() const { return static_cast<std::uint32_t>(cores_.size()); }
    // Registers of vectors have so many bits; 0: there are none.
    std::uint32_t vlen() const;
    // Launches may have a check, which would not see accesses to watched pages.
    bool checked() const;
    // Nothing: the core has no group.
    std::optional<KernelPlace> place(std::uint32_t core) const;
    // Of a core that is between two items: those with which the next begins.
    HartState state(std::uint32_t core) const;
    VectorState vectors(std::uint32_t core) const;
    // What a read of this user CSR of the ABI gives.
    std::uint64_t csr(std::uint32_t core, std::uint32_t number) const;
    // false: the core has no group, or is between two items.
    bool set_state(std::uint32_t core, const HartState& state);
    bool set_vectors(std::uint32_t core, const VectorState& state);
    // As the core's item sees memory; false: not all of it is there, or may be written.
    bool read(std::uint32_t core, std::uint64_t va, std::span<std::uint8_t> out) const;
    bool write(std::uint32_t core, std::uint64_t va, std::span<const std::uint8_t> in);
    // At most Hart::kMaxBreakpoints; false: too many. They are of every address space.
    bool set_breakpoints(std::span<const std::uint64_t> addresses);
    void set_watches(std::span<const KernelWatch> watches);
    // Whose ranges begin at `va`, as KernelWatch::owner has it.
    std::uint32_t owner(std::uint32_t core, std::uint64_t va) const;

    // --- for the cores ---
    bool at_breakpoint(std::uint64_t pc) const;
    // false: it has been here with this launch.
    bool new_launch(std::uint64_t serial);
    std::size_t known_launches() const { return launches_.size(); }
    const std::vector<KernelWatch>& watches() const { return watches_; }
    void stand(const KernelStop& stop);

  private:
    std::vector<VectorCore*> cores_;
    std::function<bool(std::uint32_t core)> works_;
    std::function<void()> attaches_;
    std::vector<std::uint64_t> breakpoints_;
    std::vector<KernelWatch> watches_;
    std::set<std::uint64_t> launches_;  // that were seen to begin; some of them are over
    KernelStop stop_;
    bool attached_ = false;
    bool stopped_ = false;
};

inline constexpr std::uint64_t kNoStep = ~std::uint64_t{0};

// A core's side of it.
struct CoreDebug {
    KernelDebugger* debugger = nullptr;  // nullptr: none is attached
    WatchSet watches;
    bool step = false;     // one instruction, then it stands
    bool stepped = false;  // it is done
    bool watch_hit = false;
    std::uint64_t resumed = 0;    // a breakpoint at this step does not count
    std::uint64_t trap_told = 0;  // the trap at this step has been shown; or kNoStep
    KernelStop hit;
};

}  // namespace orrery::emu
