// Gathers what a run shows while it goes on: arrivals, the firmware's trace records and messages, progress of
// queues.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tools/scenario/machine.h"
#include "tools/scenario/runner.h"

namespace orrery::scenario {

class Collector {
  public:
    Collector(const Scenario& scenario, bool keep_records, bool keep_history);

    // The scenario's queue is number `number` of that card's firmware.
    void place(std::uint32_t queue, std::uint32_t card, std::uint32_t number);
    // Hears the trace port of the card from now on; this object outlives the card's use.
    void listen(std::uint32_t card, emu::LoneCard& hardware);
    // The scenario starts at this model time of the cards. What came before does not count.
    void begin(Ps start, std::vector<std::unique_ptr<Machine>>& machines);
    void end(bool done, std::vector<std::unique_ptr<Machine>>& machines);

    void submitted(std::uint32_t queue, std::uint64_t index, Ps now, const Job& job);
    void message(Ps at, std::uint32_t card, const orr_mbox_message& message);
    // The queue's consumer index, and when it changed last.
    void consumed(std::uint32_t queue, std::uint64_t consumer, Ps time);
    bool outstanding(std::uint32_t queue) const {
        return queues_[queue].retired < queues_[queue].jobs.size();
    }

    Result take();

  private:
    struct Progress {
        std::vector<JobResult> jobs;
        std::uint64_t retired = 0;  // all below have finished
    };
    struct Port {
        std::vector<std::uint64_t> words;  // of the record that is being written
        Ps at = 0;
    };

    void word(std::uint32_t card, std::uint64_t word, Ps now);
    void record(std::uint32_t card, Ps at, const std::vector<std::uint64_t>& words);
    // The scenario's queue of a firmware's queue; Decision::kNoQueue: none.
    std::uint32_t queue_of(std::uint32_t card, std::uint32_t number) const;
    JobResult* job_of(std::uint32_t card, std::uint32_t number, std::uint64_t index);
    Ps since(Ps time) const { return time > start_ ? time - start_ : 0; }

    const bool keep_records_;
    bool keep_history_;  // until end()
    bool active_ = false;
    Ps start_ = 0;
    std::vector<Progress> queues_;
    std::vector<std::map<std::uint32_t, std::uint32_t>> numbers_;  // of each card
    std::vector<Port> ports_;
    std::vector<std::vector<std::uint64_t>> counters_;
    Result result_;
};

}  // namespace orrery::scenario
