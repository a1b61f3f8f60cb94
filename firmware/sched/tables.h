// SPDX-License-Identifier: MIT
// What a restart of the core leaves as it is (section .persist on the card). After a restart it is read as a
// stranger's word: see restart.h.
#pragma once

#include "firmware/sched/policy/suspended.h"
#include "firmware/sched/queue/queue.h"
#include "firmware/sched/run/engines.h"

namespace orrery::fw {

struct PersistHeader {
    uint64_t magic;       // set once the tables are in use
    uint64_t layout;      // of this very build
    uint64_t heartbeat;   // goes on: the driver wants to see it advance
    uint64_t trap_cause;  // mcause of the exception that ended the last run; 0: none noted
    uint64_t trap_pc;
    uint16_t working;  // number, plus one, of the queue that the core works for; 0: none
    uint16_t reserved[3];
};

struct Tables {
    PersistHeader header;
    Port ports[SOC_ENGINES_MAX];
    Suspended suspended[SuspendedJobs::kMax];
    Context contexts[ORR_FW_CONTEXTS];
    Queue queues[ORR_FW_QUEUES];
};

// While it lives the core works for this queue: the one to blame if it crashes.
class WorkingFor {
  public:
    WorkingFor(PersistHeader& header, uint32_t number) : header_(header), before_(header.working) {
        header.working = static_cast<uint16_t>(number + 1);
    }
    ~WorkingFor() { header_.working = before_; }
    WorkingFor(const WorkingFor&) = delete;
    WorkingFor& operator=(const WorkingFor&) = delete;

  private:
    PersistHeader& header_;
    uint16_t before_;
};

// The same where the core works for nobody yet; for one queue after the other.
class WorkingForEach {
  public:
    explicit WorkingForEach(PersistHeader& header) : header_(header) {}
    ~WorkingForEach() { header_.working = 0; }
    WorkingForEach(const WorkingForEach&) = delete;
    WorkingForEach& operator=(const WorkingForEach&) = delete;
    void now(uint32_t number) { header_.working = static_cast<uint16_t>(number + 1); }

  private:
    PersistHeader& header_;
};

}  // namespace orrery::fw
