// One vector core: a hart that runs the work-items of one work-group at a time, as orrery/hw/kernel_abi.h
// describes, with its own stack and work-group memory and the MMU behind it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <orrery/hw/kernel_abi.h>

#include "emulator/check/launch_check.h"
#include "emulator/core/code_store.h"
#include "emulator/core/hart.h"
#include "emulator/core/snapshot.h"
#include "emulator/engines/kernel_debugger.h"
#include "emulator/engines/pc_sampler.h"
#include "emulator/engines/peer_access.h"
#include "emulator/engines/quantum.h"
#include "emulator/engines/save_area.h"
#include "emulator/memory/mmu.h"

namespace orrery::emu {

// A kernel that was started; what its groups have in common.
struct KernelLaunch {
    orr_desc_kernel desc{};
    LaunchCheck* check = nullptr;  // nullptr: nobody checks it; outlives its groups
    std::uint64_t serial = 0;      // counts launches of the unit: newer code may stand at an old address
    std::uint32_t items() const { return std::uint32_t{desc.block_x} * desc.block_y * desc.block_z; }
    std::uint64_t groups() const { return std::uint64_t{desc.grid_x} * desc.grid_y * desc.grid_z; }
};

class Stretch;

class VectorCore final : private Bus {
  public:
    // `code`: in common with the other cores of the card, which then compute on one thread; nullptr: its own.
    // `vlen`: bits of a vector register, 0: none. `datapath`: bits that a vector instruction does in a cycle.
    // `most_work`: of the host in one go of compute(), see Hart::allow(). `checked`: launches may come with a
    // check. `peers` outlives it.
    VectorCore(std::uint32_t number, std::uint32_t vlen, std::uint32_t datapath, std::uint64_t hz,
               std::uint64_t item_cycles, std::uint64_t most_work, const MemoryCosts& memory, bool checked,
               Mmu& mmu, PeerAccess& peers, CodeStore* code);
    ~VectorCore() override;
    VectorCore(const VectorCore&) = delete;
    VectorCore& operator=(const VectorCore&) = delete;

    // The next compute() starts work-group `group` (linear number, x fastest) of the launch. `place`: of its
    // item stacks.
    void take(const KernelLaunch& launch, std::uint64_t group, std::uint32_t place);
    // What save() gave goes on here, on this core or another; the parts fit the launch (see
    // VectorUnit::Impl::Port::load).
    void restore(const KernelLaunch& launch, const SavedGroup& saved);
    // The group as it is between two quanta.
    SavedGroup save() const;
    // Computes on in a quantum of the group. False: it has cost the host enough for one go, and the next call
    // goes on. What is computed does not depend on the number of goes.
    bool compute(Quantum& quantum);
    void flush();
    // The next compute() begins a quantum, of which samples() then says where the core was at moments of a
    // period, the first so long after its beginning; period 0: no more. Nothing else depends on it. Not of a
    // core that computes ahead.
    void sample(ModelTime first, ModelTime period);
    // Or at each cycle from there until before `last`.
    void sample_cycles(ModelTime first, ModelTime last);
    const PcSampler* samples() const { return sampler_.get(); }
    // A debugger had it do steps whose time has still to be charged.
    bool is_ahead() const { return ahead_.cycles != 0; }

    // --- computing ahead (emulator/engines/ahead/) ---
    // Where a core was when it began; see go_back().
    struct Mark {
        Hart::Snapshot hart;
        std::array<std::uint64_t, ORR_CSR_CORE - ORR_CSR_GROUP_X + 1> csrs{};
        std::uint32_t item = 0, waits = 0;
        bool in_item = false;
        std::uint64_t barrier = 0;
        std::vector<orr_save_item> items;
        // Only of begin_next().
        std::uint64_t group = 0;
        std::vector<std::uint8_t> local;
    };
    // Instead of take(), while what it computed of its present group, to the end, is still being played: as
    // take() with the same launch and place. False: that is not possible now, and nothing has happened.
    bool begin_next(Mark& mark, const KernelLaunch& launch, std::uint64_t group);
    // It is at the end of its group again. `stretch`: in which it has computed meanwhile, or nullptr.
    void leave_next(const Mark& mark, Stretch* stretch);
    // From here to end_ahead() any one thread may call compute(), while the card's thread changes nothing
    // that cores know of: not the MMU, and not this core. `stretch` takes what it does.
    void begin_ahead(Mark& mark, Stretch& stretch);
    void end_ahead();
    // compute() came to what must not be done ahead of its time; it goes on there after end_ahead().
    bool held() const { return held_; }
    // After end_ahead(): as it was at the mark, but for memory. Until forget_stretch() the pages of the
    // stretch are where they were, and only others are asked of the MMU.
    void go_back(const Mark& mark, Stretch& stretch);
    void forget_stretch();

    // What it is at, or was at when it stopped.
    std::uint64_t group() const { return number_in_grid_; }
    std::uint32_t item() const { return item_; }
    std::uint32_t place() const { return place_; }
    std::uint64_t pc() const { return hart_.pc(); }

    // --- for KernelDebugger; of a core that has a group ---
    void debug(KernelDebugger* debugger);  // nullptr: there is none
    // `past_breakpoint`: one at which it stands has been told.
    void debug_resume(bool past_breakpoint);
    void debug_step();  // executes an instruction; it does not end the group
    void debug_watch();
    bool debug_breakpoints(std::span<const std::uint64_t> addresses);
    std::uint32_t debug_owner(std::uint64_t va) const;
    bool debug_checked() const { return hart_.config().tells_accesses; }
    std::uint64_t debug_launch() const { return launch_.serial; }
    std::uint32_t debug_vlen() const { return hart_.config().vlen; }
    KernelPlace debug_place() const;
    HartState debug_state() const;
    VectorState debug_vectors() const;
    std::uint64_t debug_csr(std::uint32_t number) const;
    bool set_debug_state(const HartState& state);
    bool set_debug_vectors(const VectorState& state);
    bool debug_memory(std::uint64_t va, std::size_t bytes, Access access,
                      const std::function<void(std::uint8_t* host, std::size_t at, std::size_t bytes)>& use);

  private:
    // From here on nothing reaches the MMU.
    static constexpr std::uint64_t kOwnBase = std::uint64_t{1} << 47;
    static constexpr unsigned kArgs = 10, kCallNumber = 17, kStackPointer = 2, kReturnAddress = 1;

    PageRef translate(std::uint64_t va, Access access) override;
    // Of pages that are watched, and of other cards' memory.
    bool load(std::uint64_t va, unsigned size, std::uint64_t& value) override;
    bool store(std::uint64_t va, unsigned size, std::uint64_t value) override;
    bool compare_exchange(std::uint64_t va, unsigned size, std::uint64_t expected, std::uint64_t desired,
                          std::uint64_t& observed) override;
    std::optional<bool> amo(std::uint64_t va, unsigned size, AmoFunction function, std::uint64_t operand,
                            std::uint64_t& old) override;
    bool foresee(std::uint64_t va, std::uint64_t bytes, bool row) override;
    bool releases() override;
    void acquired() override;
    bool read_csr(std::uint32_t number, std::uint64_t& value) override;
    void accessed(const DoneAccess& access) override;
    void atomic_refused(std::uint64_t va) override;

    PageRef translate_own(std::uint64_t va, Access access);
    PageRef translate_item_stack(std::uint64_t va, Access access);
    PageRef translate_card(std::uint64_t va, Access access);
    PageRef translate_ahead(std::uint64_t va, Access access);
    // True: it is done. False: it faults, or the hart stops before it.
    bool load_peer(std::uint64_t va, unsigned size, std::uint64_t& value);
    bool atomic_peer(std::uint64_t va, const LinkAtomic& what, std::uint64_t& old);
    bool store_peer(std::uint64_t va, unsigned size, std::uint64_t value);
    bool comes_of_peer(PeerAccess::Got got);
    bool is_peer(std::uint64_t va, Access access);
    // Where the stacks of a group's items are.
    struct ItemStacks {
        std::uint64_t va = 0;
        std::uint32_t items = 0, pages = 0;  // pages: of each item
        bool operator==(const ItemStacks&) const = default;
    };
    ItemStacks item_stacks() const;
    template <bool kSampled>
    bool execute(Quantum& quantum);
    StopReason run_sampled(const Quantum& quantum);
    void enter(const KernelLaunch& launch, std::uint64_t group, std::uint32_t place);
    void start_item();
    std::uint64_t stack_top() const;  // with which the item starts
    void go_to_item(std::uint32_t item);
    void next_item();
    // The item whose turn it is starts, or goes on behind a barrier.
    void begin_item();
    // The item is at an ecall. False: the kernel ends, as the quantum says.
    bool call(Quantum& quantum);
    bool wait_at_barrier(Quantum& quantum);
    // The item has ended. False: the kernel ends, as the quantum says.
    bool end_item(Quantum& quantum);
    static bool trap(Quantum& quantum, std::uint32_t cause, std::uint64_t detail, std::uint64_t other = 0);
    std::uint64_t& csr(std::uint32_t number) { return csrs_[number - ORR_CSR_GROUP_X]; }
    void stop(Quantum& quantum, StopReason reason);
    void set_mark(Mark& mark) const;
    void go_to(const Mark& mark);

    StopReason run_debugged(std::uint64_t budget);
    StopReason run_past_watch(StopReason reason);
    void take_steps(Quantum& quantum);
    bool debug_holds(Quantum& quantum);
    void debug_stand(KernelStop::Kind kind);
    void debug_look(std::uint64_t va, unsigned size, bool read);
    PageRef behind_watch(std::uint64_t va, Access access);
    PageRef debug_page(std::uint64_t va, Access access);

    struct OwnMemory;  // stack and work-group memory, page aligned

    std::uint64_t hz_;
    std::uint64_t item_cycles_;
    std::uint64_t most_work_;
    Mmu& mmu_;
    PeerAccess& peers_;
    std::unique_ptr<OwnMemory> memory_;
    // ORR_CSR_GROUP_X and those behind it, as the present item reads them.
    std::array<std::uint64_t, ORR_CSR_CORE - ORR_CSR_GROUP_X + 1> csrs_{};
    Hart hart_;

    KernelLaunch launch_;
    LaunchCheck::Group* checked_ = nullptr;  // its group there, if it is checked
    std::uint64_t generation_ = 0;           // of the MMU, at the last flush
    std::uint64_t stack_generation_ = 0;     // and when the stack was last cleared
    std::uint64_t local_mapped_ = 0;         // bytes of work-group memory that the hart may have pages of
    std::uint64_t number_in_grid_ = 0;
    std::uint32_t item_ = 0;
    bool in_item_ = false;
    std::uint32_t place_ = 0;
    std::uint32_t waits_ = 0;           // ORR_SAVE_WAITING, ORR_SAVE_RELEASED
    std::uint64_t barrier_ = 0;         // a0 of the barrier at which items wait
    std::vector<orr_save_item> items_;  // those that wait or were released; made at the first barrier
    ItemStacks stacks_mapped_;          // those that the hart may have pages of
    ItemStacks stacks_named_;           // and, for what translations cost, whatever it has asked for
    // For the time CSR: where the quantum began, and this part of it.
    ModelTime began_ = 0;
    std::uint64_t began_cycles_ = 0;  // cycles charged before the current item's first step
    std::uint64_t began_hart_cycles_ = 0;
    std::uint64_t stood_cycles_ = 0;  // of the quantum, before single steps
    std::uint64_t lookups_ = 0;       // of this go
    Stretch* stretch_ = nullptr;      // it computes ahead, or goes the same way again
    bool computes_ahead_ = false, held_ = false;
    std::unique_ptr<PcSampler> sampler_;  // nullptr: nobody asks
    MmuFault fault_;                      // behind the last access that translate() refused

    CoreDebug debug_;
    Quantum ahead_;             // what it did step by step, before its time
    bool debug_peeks_ = false;  // what is translated now is for the debugger's eyes
};

}  // namespace orrery::emu
