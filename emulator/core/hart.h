// A RISC-V hart: RV64IMAC, Zicsr, Zifencei, machine mode only; F, D and V where the configuration says so.
//
// Everything is deterministic: what a hart does depends on its state, on memory and on what its bus answers,
// never on the host's time, on the size of the run() calls, or on what happens to be cached. A hart is not
// thread safe; different harts may run on different threads. run() does not allocate.
//
// docs/riscv.md says what is implemented, which choices the specification left to us, and the known limits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "emulator/api/hart_state.h"
#include "emulator/core/bus.h"
#include "emulator/core/vector/simd.h"
#include "emulator/core/work_counts.h"

namespace orrery::emu {

// Why run() came back. The state is precise in every case: all instructions before pc are done, none at or
// after it has begun.
enum class StopReason : std::uint8_t {
    kBudget,      // the budget is used up
    kWfi,         // WFI retired and no enabled interrupt is pending: set_irq() or do not call run() again yet
    kTrap,        // Config::trap_to_host: an exception, see Hart::trap(); pc is at the instruction
    kExit,        // pc reached Config::exit_pc; nothing there was fetched
    kEbreak,      // Config::ebreak_to_host: EBREAK; pc is at it
    kBreakpoint,  // pc reached a breakpoint (the first instruction of a run() never stops so)
    // The bus called request_stop(), the work of allow() is done or Config::memory is full; the last
    // instruction is complete, or a vector load or store that goes on at vstart.
    kRequested,
    kHeld,  // the instruction at pc must not be done ahead of its time (overlay.h), or hold() was called
};
const char* to_string(StopReason reason);

// Interrupt lines that the host drives. The value is the line's bit in mip.
enum class Irq : std::uint8_t { kSoftware = 3, kTimer = 7, kExternal = 11 };

// mcause of the exceptions that a hart can raise.
enum class Cause : std::uint8_t {
    kFetchAccess = 1,
    kIllegal = 2,
    kBreakpoint = 3,
    kLoadMisaligned = 4,  // LR, or a load from MMIO or a kPageStrict page
    kLoadAccess = 5,
    kStoreMisaligned = 6,  // SC, AMO, or a store to MMIO or a kPageStrict page
    kStoreAccess = 7,
    kEcall = 11,
};
const char* to_string(Cause cause);

struct Trap {
    Cause cause{};
    std::uint64_t tval = 0;  // as mtval: address, instruction bits, or 0
    std::uint64_t pc = 0;    // of the instruction
};

struct Config {
    std::uint64_t hart_id = 0;
    std::uint64_t reset_pc = 0;
    bool fp = false;  // F and D; without them FP instructions and CSRs are illegal
    // VLEN in bits, a power of two from 128 to 4096; 0: no vectors. Needs fp.
    std::uint32_t vlen = 0;
    std::uint32_t vector_datapath = 512;  // bits of elements that a vector instruction does in a cycle
    Simd simd = Simd::kAvx512;            // the host instructions to use for them at most
    bool trap_to_host = false;    // exceptions stop run() instead of entering mtvec; interrupts still do that
    bool ebreak_to_host = false;  // EBREAK stops run() (a debugger is attached)
    bool has_exit_pc = false;
    std::uint64_t exit_pc = 0;  // even
    std::uint64_t vendor_id = 0, arch_id = 0, impl_id = 0;
    // CSRs that only the host writes, and not inside run(): reads of `first_csr_word` and those behind it
    // come from here, without the bus. Read-only numbers that no hart has (Bus::read_csr); outlives the hart.
    std::uint32_t first_csr_word = 0;
    std::span<const std::uint64_t> csr_words = {};
    // Without a cache: nothing is counted (meter.h).
    MemoryCosts memory = {};
    // The bus is told of each access to memory but fetches: slow.
    bool tells_accesses = false;
    bool tells_acquires = false;
    std::uint64_t pause_cycles = 1;  // that a PAUSE takes, its own one among them
    // Pages of decoded code that are kept, 36 KiB of host memory each: a power of two, 1 to 256.
    std::uint32_t code_pages = 64;
};

class CodeStore;
class Invalidations;
class Overlay;

class Hart {
  public:
    // `bus` outlives the hart, and so does `shared`, in which harts keep decoded code in common
    // if they decode alike (code_store.h); nullptr: it keeps its own.
    Hart(const Config& config, Bus& bus, CodeStore* shared = nullptr);
    ~Hart();
    Hart(const Hart&) = delete;
    Hart& operator=(const Hart&) = delete;

    // Back to the state after construction, caches dropped. Interrupt lines go low, breakpoints stay.
    void reset();

    // Runs until something in StopReason happens, at most `budget` cycles: one for each step (see
    // HartState::steps), and more for vector instructions, of which the last may take the hart beyond the
    // budget; cycles() says how far. How the budget is cut into calls makes no difference to what the program
    // does.
    StopReason run(std::uint64_t budget);

    // The exception behind the last StopReason::kTrap.
    const Trap& trap() const;

    void set_irq(Irq line, bool level);
    // Ends run() after the current instruction; for the bus. Without effect outside run().
    void request_stop();
    // What the host does beside what cycles say, in some 50 ns: an element of floating point that it computes
    // by integers is one, and the bus adds its own. After so much run() ends; without the call it never does.
    void allow(std::uint64_t work);
    void spend(std::uint64_t work);
    std::uint64_t spent() const;  // since allow()
    bool may_go_on() const;
    // Inside an instruction, for the bus: at most so many steps after this one, whatever is left of the
    // budget. Without effect outside run().
    void limit(std::uint64_t steps);
    // Moves mcycle forward without executing, for time in which the core was stopped.
    void advance_cycles(std::uint64_t cycles);
    // Waits for vector instructions that have begun; moves mcycle forward by as many cycles as that takes,
    // which cycles() does not count, and returns them. restart() and set_state() forget them.
    std::uint64_t finish_vectors();

    // Forgets every host pointer and everything decoded: the bus's answers have changed. After it returns no
    // pointer that translate() ever gave is used again before it is asked for again.
    void flush_pages();
    // Forgets decoded code: somebody other than this hart wrote to memory that it may have executed. (The
    // hart's own stores are seen by its fetches at once; FENCE.I does the same as this call.)
    void flush_code();

    HartState state() const;
    // Loads all architectural state and drops all caches. Fields are made legal as a CSR write would.
    void set_state(const HartState& state);
    // The same of vectors, apart; of a hart without them it is all zero, and setting it does nothing.
    VectorState vector_state() const;
    void set_vector_state(const VectorState& state);
    // Vector state may not be what it is after restart().
    bool vector_dirty() const;

    // The next program in the same memory: registers and CSRs as after reset(), pc as given. Counters go on,
    // caches and interrupt lines stay, so it costs as much as clearing the registers. Not inside run().
    void restart(std::uint64_t pc);

    // From now on the hart computes ahead of its time (overlay.h; it outlives this), or no longer (nullptr).
    // Not inside run().
    void set_overlay(Overlay* overlay);
    // The pages that the hart knows are those for which it asked the present overlay, before others took its
    // place too.
    bool knows_overlay() const;
    // It asks the overlay for all again, or for the one that has this address's place in the page cache.
    void forget_pages();
    void forget_page(std::uint64_t va);
    // For the bus: the hart stops before the instruction that it is at, which then gets no other answer; a
    // vector load or store goes on at vstart.
    void hold();
    // All that run() changes but memory and what is cached of it; and back. Not inside run().
    class Snapshot;
    void take_snapshot(Snapshot& snapshot) const;
    void go_back(const Snapshot& snapshot);

    // frm in 7:5, fflags in 4:0; not inside run().
    std::uint32_t fcsr() const;
    void set_fcsr(std::uint32_t fcsr);

    // While one lives, run() need not fetch and put back the host's FP status each time: for many short
    // programs. The host computes nothing with FP meanwhile.
    class Burst {
      public:
        explicit Burst(Hart& hart);
        ~Burst();
        Burst(const Burst&) = delete;
        Burst& operator=(const Burst&) = delete;

      private:
        Hart& hart_;
        std::uint32_t saved_ = 0;
    };

    // What accesses to memory in common have asked for since the last call; see Config::memory. The cache in
    // front of it is empty after forget_lines(), and addresses are those of address space `space`.
    AccessCounts take_counts();
    // What instructions did since the last call; nothing after forget_lines(). All classes together are the
    // steps since then, but for exceptions that were entered.
    WorkCounts take_work();
    // They have come to one of the limits of MemoryCosts, and run() ends at once.
    bool full() const;
    // So far.
    const AccessCounts& counts() const;
    // run() ends behind each instruction that asks memory for something, until stop_for_memory(false).
    void stop_for_memory(bool stop);
    // Of the run() before, behind stop_for_memory(): which instruction its last one was, if that took more
    // cycles than were left of the budget. `waited`: for memory.
    struct Last {
        std::uint64_t pc = 0;
        bool waited = false, paused = false;
    };
    Last last() const;
    // Which instruction asked memory for something, with stop_for_memory(true).
    std::uint64_t asked_at() const;
    // The same of one that jumped to Config::exit_pc.
    std::uint64_t jumped_from() const;
    void forget_lines(std::uint32_t space = 0);
    // For what translations cost: some are no longer at hand; addresses from TlbTags::kOwnNames on mean
    // others.
    void follow(const Invalidations& all);
    void forget_own_names();

    // Shorthands for single fields of state(), cheap at any time, also inside bus callbacks.
    std::uint64_t pc() const;  // inside a callback: of the instruction that is executing
    std::uint64_t steps() const { return *steps_end_ - static_cast<std::uint64_t>(*left_); }
    // Steps, and what the hart waited for vectors and memory; set_state() moves it by as much as the steps.
    std::uint64_t cycles() const { return steps() + *extra_cycles_; }
    std::uint64_t x(unsigned index) const;            // index < 32
    void set_x(unsigned index, std::uint64_t value);  // not inside run()
    void set_pc(std::uint64_t pc);                    // not inside run()

    // Replaces the set of breakpoints; at most kMaxBreakpoints, more are dropped and false is returned. Harts
    // that share decoded code get the same set, all before one of them runs again.
    static constexpr unsigned kMaxBreakpoints = 64;
    bool set_breakpoints(std::span<const std::uint64_t> addresses);

    const Config& config() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    const std::uint64_t* steps_end_;  // in *impl_: steps() is asked for at each access
    const std::int64_t* left_;
    const std::uint64_t* extra_cycles_;
};

}  // namespace orrery::emu
