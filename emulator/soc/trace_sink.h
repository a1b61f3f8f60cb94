// What the firmware writes to its trace port, record by record, and records of the hardware's own between
// them, into host memory (ORR_R_SINK).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <orrery/hw/bar0.h>
#include <orrery/hw/trace_sink.h>

#include "emulator/engines/engine.h"
#include "emulator/memory/host_memory.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

// Card thread only. It takes no model time, and no plan of faults counts what it writes.
class TraceSink final : public JobLog {
  public:
    static constexpr std::uint32_t kLargest = 64u << 20, kSmallest = 4096;

    explicit TraceSink(HostMemory& host) : host_(host) {}

    // bytes 0: off. ORR_FAULT_*; but for _NONE it is off.
    std::uint32_t set(std::uint64_t base, std::uint32_t bytes, std::uint64_t types);
    bool on() const { return words_ != 0; }
    // ORR_SINK_ASK_*, until it is set.
    void ask(std::uint32_t what) { asked_ = what; }
    bool wants_jobs() const override { return on() && (asked_ & ORR_SINK_ASK_JOBS) != 0; }
    void job_ended(const Completion& completion, const JobCounts& counts) override;
    void was_at(const PcSample& sample) override;
    // Which counters samples have, from the next one on.
    void set_sample(const std::array<std::uint64_t, 2>& set) {
        sample_set_ = set;
        samples_ = 0;
    }
    void sample(ModelTime now, std::span<const std::uint64_t> counters);
    void word(std::uint64_t word, ModelTime now);
    // The core may be in the midst of a record: words count for nothing until begin().
    void wait_for_begin() { begun_ = false; }
    // The next word is a header: the core starts, or sleeps.
    void begin() {
        begun_ = true;
        have_ = 0;
    }

  private:
    void put(std::span<const std::uint64_t> record);
    bool store(std::uint64_t address, const std::uint64_t* words, std::uint64_t count);

    HostMemory& host_;
    std::uint64_t base_ = 0, types_ = 0;
    std::uint64_t words_ = 0;  // of the ring
    std::uint64_t head_ = 0;
    std::uint32_t asked_ = 0;
    std::array<std::uint64_t, 2> sample_set_{};
    std::uint32_t samples_ = 0;
    std::array<std::uint64_t, ORR_SINK_MARGIN> record_{};
    std::uint32_t have_ = 0, want_ = 0;
    bool begun_ = false;
};

}  // namespace orrery::emu
