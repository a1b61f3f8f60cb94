// SPDX-License-Identifier: MIT
// The engines' dispatch ports: which are free, what runs on the others, and until when.
#pragma once

#include <orrery/hw/soc.h>

#include "firmware/hal/hal.h"
#include "firmware/sched/packets.h"
#include "firmware/sched/queue.h"

namespace orrery::fw {

inline constexpr uint64_t kNever = ~uint64_t{0};

struct Port {
    Queue* queue;
    uint64_t index;  // of the packet that it runs
    uint64_t started_ps;
    uint16_t number;     // of the queue
    uint8_t level;       // its priority while it runs
    uint8_t preempting;  // SOC_PREEMPT_*, 0: not
    uint64_t deadline;   // model time; kNever: none
    uint32_t tag;
    uint32_t kind;  // ORR_ENGINE_*, 0: no such port
    bool busy;
    bool timed_out;
};

class Engines {
  public:
    // Finds out what the chip has. Call once.
    void discover(Hal& hal);

    bool has(uint32_t kind) const { return pool(kind).ports != 0; }

    uint32_t number(const Port& port) const { return static_cast<uint32_t>(&port - ports_); }

    // A free port of the kind, or null. It stays free until start().
    Port* find_free(uint32_t kind) {
        Pool& p = pool(kind);
        return p.free_count == 0 ? nullptr : &ports_[p.free[p.free_count - 1]];
    }

    // Starts the descriptor on a port that find_free() just gave.
    void start(Hal& hal, Port& port, const uint64_t (&desc)[kDescWords], Queue& queue, uint64_t index,
               uint64_t deadline);

    // The port that a value of SOC_DONE_POP names; null if the chip reports what was never started. The port
    // is free again; what it ran can be read from it until the next start().
    Port* complete(uint64_t popped);

    // Ends what the queue has in flight from packet `first` on, soon. Each still gets its completion.
    void abort(Hal& hal, const Queue& queue, uint64_t first);

    // Ends what is over its deadline, and returns the earliest deadline of the rest.
    uint64_t expire(Hal& hal, uint64_t now);

    const Port* rows() const { return ports_; }

    // Ports with a deadline that are busy.
    uint32_t timed() const { return timed_; }

  private:
    struct Pool {
        uint32_t ports;
        uint32_t free_count;
        uint8_t free[SOC_ENGINES_MAX];
    };

    Pool& pool(uint32_t kind) { return kind == ORR_ENGINE_COPY ? copy_ : vector_; }
    const Pool& pool(uint32_t kind) const { return kind == ORR_ENGINE_COPY ? copy_ : vector_; }

    Port ports_[SOC_ENGINES_MAX];
    Pool copy_;
    Pool vector_;
    uint32_t timed_;
    uint32_t next_tag_;
};

}  // namespace orrery::fw
