// Where the data of a comparison lies: what a worker has to fetch before a task, and how long that takes.
// Both sides use it in the same way, so that transfers cost both the same. It also notes who began what in
// which order.
#pragma once

#include <mutex>
#include <vector>

#include "tests/bench/scheduler/starpu/sides.h"

namespace orrery::umd::compare {

class Locations {
  public:
    Locations(const graphs::TaskGraph& graph, const Machine& machine)
        : graph_(graph),
          machine_(machine),
          valid_(graph.data.size(), 1u << machine.host()),
          owner_(graph.data.size(), machine.host()) {}

    // As things are now.
    Ps fetch_time(std::uint32_t task, unsigned worker) const {
        const std::lock_guard lock(mutex_);
        return time(task, worker);
    }
    // The worker fetches what it lacks; how long that takes.
    Ps fetch(std::uint32_t task, unsigned worker) {
        const std::lock_guard lock(mutex_);
        order_.push_back({task, worker});
        const Ps all = time(task, worker);
        for (const DataAccess& access : graph_.tasks[task].accesses) {
            if (access.mode == Access::kRead) {
                valid_[access.data] |= 1u << worker;
            } else {
                valid_[access.data] = 1u << worker;
                owner_[access.data] = worker;
            }
        }
        return all;
    }
    // While nobody fetches.
    const std::vector<Begun>& order() const { return order_; }

  private:
    Ps time(std::uint32_t task, unsigned worker) const {
        Ps all = 0;
        for (const DataAccess& access : graph_.tasks[task].accesses) {
            if (access.mode == Access::kWrite || (valid_[access.data] >> worker & 1) != 0) continue;
            all += machine_.channel[owner_[access.data]][worker].duration(graph_.data[access.data]);
        }
        return all;
    }

    const graphs::TaskGraph& graph_;
    Machine machine_;
    mutable std::mutex mutex_;
    std::vector<unsigned> valid_;
    std::vector<unsigned> owner_;
    std::vector<Begun> order_;
};

}  // namespace orrery::umd::compare
