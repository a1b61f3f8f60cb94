// Where a core is at each multiple of a period of model time (ORR_R_SINK_PC_PERIOD), or at each cycle
// (ORR_R_SINK_STEP_CORE): it is at an instruction for as many of its quantum's cycles as that takes, waits
// included.
#pragma once

#include <cstdint>
#include <vector>

#include <orrery/hw/trace_sink.h>

#include "emulator/core/bus.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

class PcSampler {
  public:
    // `count` moments one after the other, the first so long after the quantum's beginning; or cycles.
    struct Stay {
        ModelTime first = 0;
        std::uint64_t count = 0, pc = 0;
        std::uint32_t cause = ORR_PC_ISSUE;
    };
    // What an instruction asked of memory.
    struct Asked {
        std::uint64_t pc = 0, vram = 0, host = 0;  // bytes
    };

    // A quantum begins; the first moment is so long after that.
    void begin(ModelTime first, ModelTime period, std::uint64_t hz);
    // The same of each cycle from there until before `last`. Each instruction then has stays of its own.
    void begin_cycles(ModelTime first, ModelTime last, std::uint64_t hz);
    bool of_cycles() const { return period_ == 0; }
    // The cycle of the quantum in which the next moment falls.
    std::uint64_t due() const { return due_; }
    // The core was there from cycle `due()` or one before it up to `to`.
    void stay(std::uint64_t to, std::uint64_t pc, std::uint32_t cause);
    // So much has been asked of memory in this quantum, the last of it by the instruction at `pc`.
    void asked(const AccessCounts& all, std::uint64_t pc);

    const std::vector<Stay>& stays() const { return stays_; }
    const std::vector<Asked>& all_asked() const { return asked_; }

  private:
    std::uint64_t cycle_of(ModelTime time) const;

    ModelTime next_ = 0, period_ = 1, last_ = 0;  // period 0: each cycle, until before last_
    std::uint64_t hz_ = 1, due_ = 0;
    std::uint64_t vram_ = 0, host_ = 0;
    std::vector<Stay> stays_;
    std::vector<Asked> asked_;
};

}  // namespace orrery::emu
