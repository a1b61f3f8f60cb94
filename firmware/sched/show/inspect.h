// SPDX-License-Identifier: MIT
// What a debugger is told of the firmware's tables (orrery/fw/inspect.h).
#pragma once

#include <orrery/fw/inspect.h>

#include "firmware/sched/tables.h"

namespace orrery::fw {

class Inspect {
  public:
    // Fills in the addresses; nothing changes afterwards. `ports`: Engines' row 0.
    void init(const Tables& tables, const Port* ports);
    // Address of the struct orr_inspect.
    uint64_t address() const { return reinterpret_cast<uintptr_t>(&root_); }

  private:
    static constexpr uint32_t kTables = 3;
    orr_inspect root_;
    orr_inspect_table tables_[kTables];
};

}  // namespace orrery::fw
