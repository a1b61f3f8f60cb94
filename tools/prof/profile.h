// A profile that was recorded, as it is in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prof/clocks.h"
#include "tools/prof/format.h"
#include "tools/text/result.h"

namespace orrery::prof {

// Texts are numbers of the process's `texts`.
struct Process {
    struct Range {
        Type type;
        RangeRecord record;
    };
    // Which counters of a device samples have.
    struct SampleSet {
        std::uint32_t device = 0;
        std::uint64_t period_ps = 0;
        std::vector<SampledCounter> counters;
    };
    struct Sample {
        std::uint32_t set = 0;  // of sample_sets
        std::uint64_t time_ps = 0;
        std::size_t first = 0;  // of sample_values: as many as the set has counters
    };
    struct SamplesLost {
        std::uint64_t counters = 0, pcs = 0;  // at least so many
    };
    std::uint64_t pid = 0, parent = 0, begin_ns = 0;
    std::uint64_t machine = 0;   // another one for each system that was booted; 0: not known
    std::size_t machine_at = 0;  // of Profile::machines
    std::uint64_t lost = 0;
    bool ended = false;  // in order
    std::string command;
    std::vector<std::string> texts = {""};
    std::vector<CallRecord> calls;  // in the order in which they ended, as the next
    std::vector<Range> ranges;
    std::vector<WorkRecord> work;
    std::vector<WorkCountersRecord> counters;
    std::vector<SignalRecord> signals;  // in the order of their cards, as the next
    std::vector<StreamMarkRecord> stream_marks;
    std::vector<SampleSet> sample_sets;
    std::vector<Sample> samples;
    std::vector<std::uint64_t> sample_values;
    std::vector<PcSampleRecord> pc_samples;
    std::vector<PcSampleRecord> instructions;  // of traced cores
    std::vector<StepRecord> steps;             // in the order in which they were told
    std::vector<CardRecord> cards;
    std::vector<SkuRecord> sku;
    std::vector<LinkRecord> links;
    std::vector<MemoryRecord> memory;
    std::vector<ClockRecord> clocks;
    std::map<std::uint32_t, std::uint64_t> lost_work;  // by devices of which some is not here; 0: not known
    std::map<std::uint32_t, SamplesLost> lost_samples;
    std::optional<CutRecord> cut;  // what was behind this is not here, as it was no record

    // Of the file, so of anybody's: not for a terminal as it is.
    std::string_view text(std::uint32_t number) const { return texts[number]; }
};

// A system that was booted, a VM for example, whose host's clock is its own.
struct Machine {
    std::uint64_t id = 0;
    bool aligned = false;  // to the first one's clock
    HostOffset offset;     // ahead of that; times of its processes are without it
};

struct Profile {
    std::vector<Process> processes;  // in the order in which they began
    std::vector<Machine> machines;   // in the order of their first processes
    std::uint64_t begin_ns = 0;      // the first moment in it
};

// Everything in it has been checked: texts are there, times are in order.
text::Result<Profile> read_profile(const std::string& file);
// `read_so_far` is told how much of it has been read, of 1.
text::Result<Profile> parse_profile(std::string_view bytes,
                                    const std::function<void(double)>& read_so_far = {});

// Whether what a process wrote is what parse_profile() takes, piece by piece.
class PartCheck {
  public:
    // `offset` of the first record is what faults are told from.
    PartCheck(const PartHead& head, std::uint64_t offset);
    ~PartCheck();
    PartCheck(const PartCheck&) = delete;
    PartCheck& operator=(const PartCheck&) = delete;

    // The next bytes: gives back how many of them are good, in whole records. The next time the others come
    // first; with `more` to come these may be the beginning of a record.
    std::size_t look(std::string_view bytes, bool more);
    // No more is good: behind it is what cannot be (`fault` says what), or nothing.
    bool is_done() const { return at_end_ || !fault_.empty(); }
    const std::string& fault() const { return fault_; }

  private:
    struct Reader;
    std::unique_ptr<Reader> reader_;
    bool at_end_ = false;
    std::string fault_;
};

// Finds its machines, and brings the times of their processes to the first one's clock where their cards say
// how far it is away.
void align_machines(Profile& profile);

}  // namespace orrery::prof
