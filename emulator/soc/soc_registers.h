// The control core's registers (orrery/hw/soc.h), all but time and timer, which the core itself has.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <orrery/hw/soc.h>

#include "emulator/api/sku.h"
#include "emulator/base/access_watch.h"
#include "emulator/base/fifo.h"
#include "emulator/engines/engine.h"
#include "emulator/faults/faults.h"
#include "emulator/memory/mmu.h"
#include "emulator/probes/errors.h"
#include "emulator/soc/doorbells.h"
#include "emulator/soc/pokes.h"
#include "emulator/soc/ring_slots.h"
#include "emulator/soc/windows.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

// What a register write does to the rest of the card.
class SocEffects {
  public:
    virtual ~SocEffects() = default;
    virtual void host_interrupt(std::uint64_t vector) = 0;
    virtual void progress(std::uint32_t code) = 0;
    virtual void heartbeat(std::uint64_t value) = 0;
    virtual void halt(std::uint64_t code) = 0;
};

// Card thread only.
class SocRegisters {
  public:
    SocRegisters(const Sku& sku, std::uint64_t uid, std::uint64_t vram_bytes, EventQueue& events,
                 Doorbells& doorbells, Mmu& mmu, Windows& windows, MemorySystem& memory, Counters& counters,
                 Errors& errors, SocEffects& effects);

    // Ports in their order; they outlive this object's use.
    void attach_engines(std::vector<EnginePort*> engines) { engines_ = std::move(engines); }

    // An aligned 8-byte access at `offset` < ORR_SOC_SIZE. Offsets without a register read as 0, ignore
    // writes, and count as guest errors. `wait`: how long the core waits for the answer, beyond the access.
    std::uint64_t read(std::uint32_t offset, ModelTime& wait);
    void write(std::uint32_t offset, std::uint64_t value, ModelTime& wait);
    void write(std::uint32_t offset, std::uint64_t value) {
        ModelTime wait = 0;
        write(offset, value, wait);
    }

    // Level of the core's external interrupt line.
    bool external_line() const {
        const auto enabled = [this](unsigned line) { return (irq_enable_ >> line & 1) != 0; };
        return (doorbells_.pending() && enabled(SOC_LINE_DOORBELL)) ||
               (!completions_.empty() && enabled(SOC_LINE_DONE)) || (mailbox_ && enabled(SOC_LINE_MAILBOX)) ||
               (!pokes_.empty() && enabled(SOC_LINE_POKE));
    }

    void ring_mailbox() { mailbox_ = true; }
    void completed(const Completion& completion);
    // A peer signalled the semaphore at this VRAM offset through link port `port`, whose lane must have room.
    void poked(std::uint64_t vram_offset, unsigned port = 0);
    bool poke_room(unsigned port) const { return pokes_.room(port); }
    // Whether a slot of the barrier unit may be armed.
    bool room_to_arm() const { return pokes_.room_to_arm(); }
    // Called when a port whose lane was full may go on.
    void on_poke_room(std::function<void(unsigned port)> hook) { poke_room_hook_ = std::move(hook); }

    // For SOC_BOOT_*: the core starts.
    void set_boot(std::uint64_t entry, std::uint64_t arg) {
        boot_entry_ = entry;
        boot_arg_ = arg;
        ++boot_count_;
    }
    std::uint64_t boot_count() const { return boot_count_; }
    void reset();
    // The core alone: what firmware had set up for itself goes; doorbells, completions, pokes, mailbox, what
    // it had written to dispatch ports, and SOC_BOOT_COUNT stay.
    void set_faults(Faults* faults) { faults_ = faults; }
    void restart();
    // Counters of what waits are those of this moment.
    void charge_waiting() { slots_.charge(); }

  private:
    struct Port {
        std::array<std::uint64_t, 8> descriptor{};
        std::uint64_t tag = 0;   // of the last start
        std::uint64_t save = 0;  // VRAM offset of a save area
        std::uint64_t priority = 0;
        std::uint64_t weight = 1;
    };

    std::uint64_t pending() const {
        const auto line = [](unsigned number, bool level) { return std::uint64_t{level} << number; };
        return line(SOC_LINE_DOORBELL, doorbells_.pending()) | line(SOC_LINE_MAILBOX, mailbox_) |
               line(SOC_LINE_DONE, !completions_.empty()) | line(SOC_LINE_POKE, !pokes_.empty());
    }
    std::uint64_t look_up(std::uint32_t offset, ModelTime& wait);
    void nothing_there(std::uint32_t offset, const char* access);
    // Why nothing but the core itself will change what it reads there; nullptr: something may.
    const char* why_it_stays(std::uint32_t offset) const;
    std::uint64_t read_kind(std::uint32_t offset);
    std::uint64_t read_engine(std::uint32_t offset);
    void write_engine(std::uint32_t offset, std::uint64_t value, ModelTime& wait);
    // START, or RESUME from the port's save area.
    void start_engine(std::uint32_t number, std::uint64_t tag, bool resume);
    bool hand_over(std::uint32_t number, std::uint32_t tag, bool resume);
    bool faulty(const Completion& completion);
    void launch_engine(std::uint32_t number, std::uint64_t value, ModelTime& wait);
    bool completion_room(std::uint32_t number);
    void preempt_engine(std::uint32_t number, std::uint64_t mode);
    void share_engine(std::uint32_t number, std::uint32_t reg, std::uint64_t value);
    void doorbell_command(std::uint64_t command);
    void mmu_command(std::uint64_t command, ModelTime& wait);
    void translate(ModelTime& wait);
    void signal(std::uint64_t value, ModelTime& wait);
    void launch_signal(std::uint64_t value, ModelTime& wait);
    std::uint64_t pop_completion();
    std::uint64_t pop_poke();

    static constexpr std::size_t kCompletions = 4096;
    static constexpr std::uint64_t kSpins = 65'536;

    const Sku& sku_;
    std::uint64_t uid_;
    std::uint64_t vram_bytes_;
    EventQueue& events_;
    Doorbells& doorbells_;
    Mmu& mmu_;
    Windows& windows_;
    Errors& errors_;
    SocEffects& effects_;
    std::vector<EnginePort*> engines_;
    std::vector<Port> ports_;
    Faults* faults_ = nullptr;
    RingSlots slots_;
    AccessWatch watch_{kSpins};

    std::uint64_t boot_entry_ = 0, boot_arg_ = 0, boot_count_ = 0;
    std::uint64_t irq_enable_ = 0;
    bool mailbox_ = false;
    std::uint64_t db_page_ = 0, db_slot_ = 0, db_tag_ = 0;
    std::uint64_t mmu_asid_ = 0, mmu_arg_ = 0, mmu_size_ = 0;
    std::uint64_t mmu_result_, mmu_fault_ = ORR_FAULT_NONE;
    std::uint64_t sem_asid_ = 0, sem_va_ = 0, sem_status_ = 0, sem_memory_;
    Fifo<Completion> completions_;
    Completion popped_;
    std::uint64_t launch_result_;
    Pokes pokes_;
    std::function<void(unsigned port)> poke_room_hook_;
};

}  // namespace orrery::emu
