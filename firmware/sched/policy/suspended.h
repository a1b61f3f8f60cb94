// SPDX-License-Identifier: MIT
// Jobs that were preempted: a row for each save area, in lists by kind and class. Kinds whose jobs need but
// one page of an area (copies) have the first area in pieces, one for each page.
#pragma once

#include <orrery/hw/engine.h>
#include <orrery/hw/save.h>

#include "firmware/hal/bits.h"
#include "firmware/sched/policy/run_queue.h"
#include "firmware/sched/queue/list.h"
#include "firmware/sched/queue/queue.h"

namespace orrery::fw {

struct Suspended {
    Link link;
    uint16_t number;  // of the save area
    uint8_t kind;     // ORR_ENGINE_*
    uint8_t level;    // of its list
    uint8_t opcode;
    bool used;
    bool first;       // a higher class took its place: before all others of its class
    bool held;        // on no class's list: its context is over its quota, or its gang resumes as a whole
    uint8_t gang;     // as Port::gang, of one that resumes as a whole; 0: by itself
    uint16_t groups;  // of a gang's, as Port::groups
    Queue* queue;
    uint64_t index;
    uint64_t limit_ps;       // that it may still run
    uint32_t seal;           // restart.h
    uint32_t slice_left_us;  // what is left of its slice by ORR_RULE_BOUND; 0: none
};

class SuspendedJobs {
  public:
    using JobList = List<Suspended, &Suspended::link>;
    static constexpr uint32_t kMax = 64;

    // `rows`: kMax of them, which are left as they are: claim() or clear each before use.
    // pieces: that are wanted of the first area; none if it is the only one.
    void init(Suspended* rows, uint64_t base, uint32_t count, uint64_t bytes, uint32_t pieces) {
        rows_ = rows;
        base_ = base;
        bytes_ = bytes;
        pieces_ = count < 2 ? 0 : pieces < kMostPieces ? pieces : kMostPieces;
        if (pieces_ > bytes / ORR_SAVE_PAGE) pieces_ = static_cast<uint32_t>(bytes / ORR_SAVE_PAGE);
        if (pieces_ != 0) --count;
        // With pieces there may be fewer areas than ports, so a row stays free for look_always().
        const uint32_t most = pieces_ != 0 ? kMax - 1 - pieces_ : kMax;
        count_ = pieces_ + (count < most ? count : most);
        free_ = all();
    }

    // Whole ones, and pieces of one.
    uint32_t areas() const { return count_ - pieces_; }
    uint32_t pieces() const { return pieces_; }
    // Nothing is preempted, or about to be: there are areas for whatever may start now.
    bool idle() const { return free_ == idle_; }
    // There are so few that this cannot be said.
    void look_always(bool few) { idle_ = few && count_ < kMax ? ~0ull : all(); }

    // False: there is no such area, or it is taken.
    bool claim(uint8_t area) {
        if (area >= kMax || (free_ >> area & 1) == 0) return false;
        free_ &= ~(1ull << area);
        return true;
    }
    uint64_t taken() const { return all() & ~free_; }
    bool area_left(bool piece) const { return (free_ & fit(piece)) != 0; }
    // There must be one.
    uint8_t take_area(bool piece) {
        const uint32_t area = lowest_bit(free_ & fit(piece));
        free_ &= ~(1ull << area);
        return static_cast<uint8_t>(area);
    }
    // Of this kind's jobs.
    bool right_size(uint8_t area, bool piece) const { return area < kMax && (fit(piece) >> area & 1) != 0; }
    void free_area(uint8_t area) { free_ |= 1ull << area; }
    uint64_t offset(uint8_t area) const {
        if (area < pieces_) return base_ + uint64_t{area} * ORR_SAVE_PAGE;
        return base_ + (area - pieces_ + (pieces_ != 0 ? 1u : 0u)) * bytes_;
    }

    uint32_t classes(uint32_t kind) const { return classes_[kind]; }
    Suspended* front(uint32_t kind, uint32_t level) { return lists_[kind][level].front(rows_); }
    Suspended* next(const Suspended& job) const { return JobList::next(rows_, job); }
    uint32_t all_of(uint32_t kind) const { return waiting_[kind] + held_count_[kind]; }
    uint32_t count(uint32_t kind) const { return waiting_[kind]; }

    // Row of the area that holds the job; the caller has filled it in.
    Suspended& row(uint8_t area) { return rows_[area]; }
    void add(Suspended& job) {
        auto& list = lists_[job.kind][job.level];
        if (job.first)
            list.push_front(rows_, job);
        else
            list.push_back(rows_, job);
        classes_[job.kind] |= 1u << job.level;
        ++waiting_[job.kind];
        job.used = true;
        job.held = false;
    }
    void hold(Suspended& job) {
        held_.push_back(rows_, job);
        ++held_count_[job.kind];
        job.used = job.held = true;
    }
    // Off its list; its area stays taken.
    void remove(Suspended& job) {
        job.used = false;
        if (job.held) {
            held_.remove(rows_, job);
            --held_count_[job.kind];
            return;
        }
        auto& list = lists_[job.kind][job.level];
        list.remove(rows_, job);
        if (list.empty()) classes_[job.kind] &= ~(1u << job.level);
        --waiting_[job.kind];
    }

  private:
    static constexpr uint32_t kMostPieces = 32;

    uint64_t small() const { return (1ull << pieces_) - 1; }
    // Areas for such jobs: without pieces all are alike.
    uint64_t fit(bool piece) const { return piece && pieces_ != 0 ? small() : ~small(); }
    uint64_t all() const { return count_ == 64 ? ~0ull : (1ull << count_) - 1; }

    uint64_t base_;
    uint64_t bytes_;
    uint64_t free_;
    uint64_t idle_;   // what free_ is then
    uint32_t count_;  // rows: pieces, then whole areas
    uint32_t pieces_;
    uint32_t classes_[kKinds];
    uint32_t waiting_[kKinds];
    uint32_t held_count_[kKinds];
    JobList lists_[kKinds][kClasses];
    JobList held_;
    Suspended* rows_;
};

}  // namespace orrery::fw
