// What a hart was like between two calls of run(), to go back there: registers, CSRs, counters, vectors, and
// the meter's cache. Taking one into a snapshot that was used before does not allocate.
#pragma once

#include <memory>

#include "emulator/core/hart.h"

namespace orrery::emu {

class Hart::Snapshot {
  public:
    Snapshot();
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

  private:
    friend class Hart;
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace orrery::emu
