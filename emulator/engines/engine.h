// A dispatch port of an engine, as the control core's registers see it (orrery/hw/soc.h, SOC_ENGINE).
//
// Engines live on the card thread and on the card's event queue: start() schedules, events do a bounded piece
// of work each (about 50 µs of host time, so that the card stays able to let go of host memory), and the last
// one hands in the completion at the model time of the end. No duration depends on the host; no host pointer
// is used after the MMU's generation has changed. docs/engines.md says more.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include <orrery/hw/engine.h>
#include <orrery/hw/link.h>
#include <orrery/hw/soc.h>

#include "emulator/check/checked_memory.h"
#include "emulator/engines/descriptor.h"
#include "emulator/engines/job_counts.h"
#include "emulator/engines/workers.h"
#include "emulator/memory/mmu.h"
#include "emulator/memory/peer.h"
#include "emulator/memory/vram.h"
#include "emulator/model/memory_system.h"
#include "emulator/probes/counters.h"
#include "emulator/probes/errors.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

// A finished descriptor, as SOC_DONE_* shows it.
struct Completion {
    std::uint32_t port = 0;    // the number given at construction
    std::uint32_t tag = 0;     // of the start
    std::uint32_t status = 0;  // ORR_DONE_*
    std::uint64_t fault = 0;   // ORR_FAULT_* or mcause, by status
    std::uint64_t detail = 0;  // VA or pc, by status
    // Of a kernel that faulted or trapped: where, as SOC_DONE_ITEM has it, and what else its cause has to
    // say. Of a list of copies that did not come to its end: the address of the entry.
    std::uint64_t item = ~std::uint64_t{0};
    std::uint64_t other = 0;
    ModelTime start_ps = 0;
    ModelTime end_ps = 0;   // == the clock when it is handed in
    ModelTime used_ps = 0;  // engine time used; vector: the sum over the cores
};

// What every engine needs of its card. References outlive the engines.
struct EngineContext {
    EventQueue& events;
    const Vram& vram;  // save areas
    Mmu& mmu;
    MemorySystem& memory;
    Counters& counters;
    const Peers& peers;
    Errors* errors = nullptr;    // nullptr: nobody is told
    Workers* workers = nullptr;  // nullptr: engines work on the card thread alone
    // Takes a completion; called on the card thread from an event. The port is idle already: the callee may
    // start the next descriptor.
    std::function<void(const Completion&)> done;
    CheckedMemory* checked = nullptr;  // nullptr: kernels' use of memory is not checked
    JobLog* jobs = nullptr;            // nullptr: nobody wants to know what each job did
};

// SOC_PREEMPT_*.
enum class Preempt : std::uint8_t { kNo = 0, kGroup = 1, kNow = 2 };

// What SOC_KIND_* show of a kind of engine.
struct EngineKind {
    std::uint32_t kind = 0;  // ORR_ENGINE_*
    std::uint32_t units = 0;
    std::uint32_t descriptor_bytes = sizeof(DescriptorWords);
    std::uint32_t preempt = 0;  // bit n: takes SOC_PREEMPT_n
};

// Registers, completions and the firmware's discovery know a port by this alone: a new kind of engine is a
// class that implements it, and ports of it that the card attaches.
class EnginePort {
  public:
    virtual ~EnginePort() = default;
    virtual EngineKind properties() const = 0;
    std::uint32_t kind() const { return properties().kind; }
    // From start() until the completion is handed in.
    virtual bool busy() const = 0;
    // Starts a descriptor, also one that is nonsense: that completes with ORR_DONE_BAD_DESC, through an
    // event. false, and nothing happens: the port is busy.
    virtual bool start(const DescriptorWords& descriptor, std::uint32_t tag) = 0;
    // Groups or bytes that a descriptor asks for; nothing: start() would end it with ORR_DONE_BAD_DESC.
    virtual std::optional<std::uint64_t> work_of(const DescriptorWords& descriptor) const = 0;
    // The running descriptor ends soon with ORR_DONE_PREEMPTED and can go on from the save area at VRAM
    // offset `save`; or it comes to its end after all. Nothing if idle. A second call may make kNow of
    // kGroup, and keeps the area of the first. false, and nothing happens: `save` is no place for an area.
    virtual bool preempt(Preempt mode, std::uint64_t save) = 0;
    // As start(), from a save area, which is free again when this returns. One that makes no sense completes
    // with ORR_DONE_BAD_DESC. false, and nothing happens: the port is busy.
    virtual bool resume(std::uint64_t save, std::uint32_t tag) = 0;
    // The running descriptor ends with ORR_DONE_ABORTED, before it touches memory again, also while it is
    // saved or loaded. Nothing if idle.
    virtual void abort() = 0;
    // Claim to the resources that ports of this kind share; they stay with the port. `priority` 0 .. 3,
    // `weight` 1 .. 65535.
    virtual void set_priority(std::uint32_t priority) { (void)priority; }
    virtual void set_weight(std::uint32_t weight) { (void)weight; }
    // Engine time that the running descriptor has used since its start, up to now; 0 when idle.
    virtual ModelTime used() const = 0;
    // Work-groups on cores now; 0 where there are none.
    virtual std::uint32_t active() const { return 0; }
    // Card reset: forgets what is running, without a completion; priority 0, weight 1.
    virtual void reset() = 0;
};

}  // namespace orrery::emu
