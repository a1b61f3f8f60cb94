// Measurements of the first card through the public API. Times in nanoseconds of the guest's clock.
#pragma once

#include <orrery/orrery.hpp>

#include <cstddef>
#include <vector>

namespace orrery::bench {

class CardBench {
  public:
    // An empty job (an event record: one packet that signals a semaphore), from before the call to the moment
    // at which this process sees that it is done.
    std::vector<double> job_latency(int jobs);
    // Nanoseconds a job, in batches; one value a batch.
    std::vector<double> batched_jobs(int batches, int batch);
    // Bytes a nanosecond, one value a round. `pinned`: memory of orrMallocHost.
    std::vector<double> copy_rate(std::size_t bytes, bool to_card, bool pinned, int rounds);

  private:
    Stream stream_;
    Event event_{orrEventDisableTiming};  // nobody asks it for times
};

// The guest CPU's memcpy, bytes a nanosecond.
std::vector<double> memcpy_rate(std::size_t bytes, int rounds);

}  // namespace orrery::bench
