// SPDX-License-Identifier: MIT
// The engines' dispatch ports: which are free, and what runs on the others.
#pragma once

#include <orrery/hw/engine.h>
#include <orrery/hw/soc.h>

#include "firmware/hal/bits.h"
#include "firmware/hal/hal.h"
#include "firmware/sched/queue/packets.h"
#include "firmware/sched/queue/queue.h"

namespace orrery::fw {

inline constexpr uint64_t kNever = ~uint64_t{0};
inline constexpr uint8_t kNoArea = 0xff;
inline constexpr uint8_t kNoGangRow = 0xff;

// What runs on a port, or ran there last. Times are model time; kNever: none.
struct Port {
    Queue* queue;
    uint64_t index;       // of the packet that it runs
    uint64_t started_ps;  // or resumed
    uint64_t limit_ps;    // time that it may still have, from then on
    uint64_t deadline;
    uint64_t slice_end_ps;      // it may be preempted for others of its class
    uint64_t grace_ps;          // a preemption at a group's border becomes one inside the kernel
    uint64_t core_check_ps;     // when to check that it has its cores
    uint64_t starved_since_ps;  // since when higher classes have held the cores and it none; kNever: it is
                                // not starved
    uint64_t charged_ps;        // used time since started_ps that is already on the queue's account
    uint32_t tag;
    uint32_t groups;  // of a dispatch; 0: not known
    uint16_t number;  // of the queue
    uint16_t weight;  // as the chip has it
    uint8_t level;    // class that it runs as
    uint8_t opcode;   // of the packet
    uint8_t row;      // its own number
    bool busy;
    // All that is unusual about it; kPlain: nothing is.
    union {
        uint64_t special;
        struct {
            uint8_t preempting;  // SOC_PREEMPT_*, 0: not
            bool timed_out;
            bool aborted;
            bool boosted;  // has a slice by ORR_RULE_BOUND: `level` is above its queue's
            uint8_t gang;  // of a gang: number of its record, plus one, with which it is preempted as a
                           // whole; kNoGangRow: it is not preempted; 0: of no gang
            bool cross;    // of several cards
            uint8_t area;  // save area; kNoArea: none
            bool not_preemptible;  // owns no area, and is not preempted
        };
    };
    uint32_t kind;  // ORR_ENGINE_*, 0: no such port
};
inline constexpr uint64_t kPlain = uint64_t{kNoArea} << 8 * (offsetof(Port, area) - offsetof(Port, special));

class Engines {
  public:
    // Finds out what the chip has. Call once. `rows`: SOC_ENGINES_MAX of them, which are left as they are.
    void discover(Hal& hal, Port* rows);
    // Free are the ports whose rows are not busy; what runs has the tag that its row says. Call before use.
    void collect();

    // What the chip has at a port; 0: nothing, or a kind that this firmware does not know and leaves alone.
    static uint32_t kind_at(Hal& hal, uint32_t port);

    bool has(uint32_t kind) const { return pool(kind).ports != 0; }
    uint32_t ports(uint32_t kind) const { return pool(kind).ports; }
    uint32_t free_ports(uint32_t kind) const { return pool(kind).free_count; }
    uint32_t vector_cores() const { return vector_cores_; }
    uint32_t number(const Port& port) const { return port.row; }

    // A row that has just been cleared gets its number.
    void name(Port& port) const { port.row = static_cast<uint8_t>(&port - ports_); }

    // Ports set aside for a gang: find_free() does not give them.
    void hold(uint32_t vector_ports) { pool(kCoreKind).held = vector_ports; }
    uint32_t held() const { return pool(kCoreKind).held; }

    // A free port of the kind, or null. It stays free until start() or resume().
    // Always the first, whichever has become free last: that would be the host's doing.
    Port* find_free(uint32_t kind) {
        Pool& p = pool(kind);
        return p.free_count <= p.held ? nullptr : &ports_[lowest_bit(p.free)];
    }
    // The same, from those that are held too.
    Port* find_held() {
        const uint64_t free = pool(kCoreKind).free;
        return free == 0 ? nullptr : &ports_[lowest_bit(free)];
    }

    // Starts the descriptor on a port that was just found free. The caller fills in the times, opcode and
    // level.
    void start(Hal& hal, Port& port, const uint64_t (&desc)[kDescWords], Queue& queue, uint64_t index);
    // The same, from a save area (`area`, at the VRAM offset `save`).
    void resume(Hal& hal, Port& port, uint8_t area, uint64_t save, Queue& queue, uint64_t index);
    void set_share(Hal& hal, Port& port, uint8_t level, uint16_t weight) {
        if (port.level != level || port.weight != weight) change_share(hal, port, level, weight);
    }
    // The same of a free port, whatever it had: what ran on it before must not show in the time of what
    // comes.
    void give_share(Hal& hal, Port& port, uint8_t level, uint16_t weight) {
        port.level = level;
        port.weight = weight;
        if (!has_cores(port.kind)) return;
        hal.set_reg(reg(port, SOC_ENGINE_PRIORITY), level);
        hal.set_reg(reg(port, SOC_ENGINE_WEIGHT), weight);
    }

    // Packet `index` of the queue runs on a port that was just found free, with a tag of next_tag(). The
    // caller fills in the times, opcode and groups.
    void take(Port& port, uint32_t kind, Queue& queue, uint64_t index, uint32_t tag) {
        Pool& p = pool(kind);
        --p.free_count;
        p.free &= ~(uint64_t{1} << port.row);
        p.at_level += at(port.level);
        ++queue.ports;
        port.queue = &queue;
        port.number = queue.number;
        port.special = kPlain;
        take_again(port, index, tag);
        port.busy = true;
    }
    // The same, on a plain port that runs something of the same queue, which has ended.
    void take_again(Port& port, uint64_t index, uint32_t tag) {
        port.index = index;
        port.tag = tag;
        port.grace_ps = port.core_check_ps = port.starved_since_ps = kNever;
        port.charged_ps = 0;
    }
    uint32_t next_tag() { return next_tag_++; }

    // The port that a value of SOC_DONE_POP names; null if the chip reports what was never started.
    Port* find_done(uint64_t popped) {
        const uint64_t n = popped >> 32;
        if (n >= SOC_ENGINES_MAX) return nullptr;
        Port& port = ports_[n];
        return port.busy && port.tag == static_cast<uint32_t>(popped) ? &port : nullptr;
    }
    // It is free again; what it ran can be read from it until the next start().
    void release(Port& port) {
        port.busy = false;
        --port.queue->ports;
        Pool& p = pool(port.kind);
        p.at_level -= at(port.level);
        ++p.free_count;
        p.free |= uint64_t{1} << port.row;
    }

    // Ends what the queue has running from packet `first` on, soon. Each still gets its completion.
    void abort(Hal& hal, const Queue& queue, uint64_t first);
    void abort(Hal& hal, Port& port) {
        port.aborted = true;
        hal.set_reg(reg(port, SOC_ENGINE_ABORT), 1);
    }

    bool busy() const {
        uint64_t busy = 0;
        for (const EngineKind& row : kEngineKinds)
            busy |= pool(row.kind).at_level;
        return busy != 0;
    }
    // Bit n: something runs as class n.
    uint32_t levels(uint32_t kind) const {
        uint32_t bits = 0;
        for (uint32_t level = 0; level <= ORR_PRIORITY_REALTIME; ++level)
            bits |= (pool(kind).at_level >> 16 * level & 0xffff) != 0 ? 1u << level : 0u;
        return bits;
    }
    // Nothing runs as another class.
    bool only_level(uint32_t kind, uint32_t level) const {
        return (pool(kind).at_level & ~(at(level) * 0xffff)) == 0;
    }
    // Two or more vector ports run something of one class.
    bool shares_cores() const { return (pool(kCoreKind).at_level & 0xfffe'fffe'fffe'fffe) != 0; }
    uint32_t busy_vector() const { return pool(kCoreKind).ports - pool(kCoreKind).free_count; }
    // Ports that exist are rows [0, end).
    uint32_t end() const { return end_; }
    Port& row(uint32_t number) { return ports_[number]; }
    const Port* rows() const { return ports_; }
    uint32_t reg(const Port& port, uint32_t offset) const { return SOC_ENGINE(number(port)) + offset; }

  private:
    struct alignas(32) Pool {
        uint32_t ports;
        uint32_t free_count;
        uint32_t held;
        uint64_t at_level;  // ports that are busy, 16 bits a class
        uint64_t free;      // bit n: row n
    };
    static_assert(SOC_ENGINES_MAX <= 64);

    static constexpr uint64_t at(uint32_t level) { return uint64_t{1} << (16 * level & 63); }
    Pool& pool(uint32_t kind) { return pools_[kind]; }
    const Pool& pool(uint32_t kind) const { return pools_[kind]; }
    void change_share(Hal& hal, Port& port, uint8_t level, uint16_t weight);

    Port* ports_;
    Pool pools_[kKinds];
    uint32_t end_;
    uint32_t vector_cores_;
    uint32_t next_tag_;
};

}  // namespace orrery::fw
