// What one job of an engine did, where cores were in it, and who wants to know: see ORR_SINK_JOB and
// ORR_SINK_PC (orrery/hw/trace_sink.h).
#pragma once

#include <array>
#include <cstdint>

#include <orrery/hw/trace_sink.h>

namespace orrery::emu {

struct Completion;

struct JobCounts {
    std::array<std::uint64_t, ORR_JOB_COUNTERS> value{};
    std::uint64_t& operator[](orr_job_counter counter) { return value[counter]; }
    std::uint64_t operator[](orr_job_counter counter) const { return value[counter]; }
};

// Where a core was at `count` moments, a period apart, or for so many cycles.
struct PcSample {
    std::uint64_t first_ps = 0;
    std::uint32_t port = 0, core = 0, asid = 0, count = 0;
    std::uint64_t job_start_ps = 0;  // as its completion has it
    std::uint64_t pc = 0, group = 0;
    std::uint32_t cause = ORR_PC_ISSUE;
    bool of_cycles = false;
};

// Card thread only.
class JobLog {
  public:
    virtual ~JobLog() = default;
    // A job that begins now is counted. Who asks later is told of the next ones only.
    virtual bool wants_jobs() const = 0;
    // It was counted, and its completion is about to be handed in.
    virtual void job_ended(const Completion& completion, const JobCounts& counts) = 0;
    // Of VectorUnit::sample() and trace(): of a core in the order of time.
    virtual void was_at(const PcSample& sample) { (void)sample; }
};

// Of a port, of the job that it has.
class JobCounter {
  public:
    void begin(const JobLog* log) {
        on_ = log != nullptr && log->wants_jobs();
        if (on_) counts_ = {};
    }
    bool on() const { return on_; }
    void add(orr_job_counter counter, std::uint64_t n) {
        if (on_) counts_[counter] += n;
    }
    // Of what is a set of bits.
    void mark(orr_job_counter counter, unsigned bit) {
        if (on_) counts_[counter] |= std::uint64_t{1} << bit;
    }
    void end(JobLog* log, const Completion& completion) {
        if (on_) log->job_ended(completion, counts_);
        on_ = false;
    }

  private:
    bool on_ = false;
    JobCounts counts_;
};

}  // namespace orrery::emu
