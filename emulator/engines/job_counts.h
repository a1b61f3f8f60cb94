// What one job of an engine did, and who wants to know: see ORR_SINK_JOB (orrery/hw/trace_sink.h).
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

// Card thread only.
class JobLog {
  public:
    virtual ~JobLog() = default;
    // A job that begins now is counted. Who asks later is told of the next ones only.
    virtual bool wants_jobs() const = 0;
    // It was counted, and its completion is about to be handed in.
    virtual void job_ended(const Completion& completion, const JobCounts& counts) = 0;
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
    void end(JobLog* log, const Completion& completion) {
        if (on_) log->job_ended(completion, counts_);
        on_ = false;
    }

  private:
    bool on_ = false;
    JobCounts counts_;
};

}  // namespace orrery::emu
