// SPDX-License-Identifier: MIT
// Queues in order of their virtual time, to within a bucket's width: a circle of buckets with a bit each, so
// that every operation takes the same time however many queues there are. In a bucket the first to come is
// the first to go. What lies beyond the circle waits in its last bucket, and is put further on when that is
// reached.
#pragma once

#include "firmware/hal/bits.h"
#include "firmware/sched/queue/queue.h"

namespace orrery::fw {

class Calendar {
  public:
    static constexpr uint32_t kBuckets = 64;
    static constexpr uint32_t kWidthShift = 25;  // 2^25 ps, 34 us: what a queue may be ahead unnoticed

    bool empty() const { return count_ == 0; }
    uint32_t count() const { return count_; }

    // An empty one, for queues of which this is the least virtual time: where it stood before is long past,
    // or far ahead.
    void begin(uint64_t least_vtime) { base_ = least_vtime >> kWidthShift; }

    void insert(Queue* all, Queue& queue, uint64_t vtime) {
        const uint64_t bucket = clamp(vtime >> kWidthShift);
        const auto n = static_cast<uint32_t>(bucket % kBuckets);
        queue.bucket = static_cast<uint8_t>(n);
        buckets_[n].push_back(all, queue);
        used_ |= 1ull << n;
        ++count_;
    }

    // The queue must be in here.
    void remove(Queue* all, Queue& queue) {
        const uint32_t n = queue.bucket;
        buckets_[n].remove(all, queue);
        if (buckets_[n].empty()) used_ &= ~(1ull << n);
        --count_;
    }

    // The one with the least virtual time of this resource; null: nobody. It stays.
    Queue* front(Queue* all, uint32_t resource) {
        if (count_ == 0) return nullptr;
        // Mostly it is where the last one was.
        Queue* const queue = buckets_[base_ % kBuckets].front(all);
        if (queue != nullptr && queue->vtime[resource] >> kWidthShift <= base_) return queue;
        return search(all, resource);
    }

  private:
    // More than that many strangers in one bucket, one after the other, and order gives way to time.
    static constexpr uint32_t kTries = 8;

    [[gnu::noinline]] Queue* search(Queue* all, uint32_t resource) {
        for (uint32_t tries = kTries;; --tries) {
            const uint32_t n = first_used(static_cast<uint32_t>(base_ % kBuckets));
            base_ += (n - base_) % kBuckets;
            Queue* const queue = buckets_[n].front(all);
            const uint64_t vtime = queue->vtime[resource];
            // It came from beyond the circle, or has used time since it came.
            if (vtime >> kWidthShift <= base_ || tries == 0) return queue;
            remove(all, *queue);
            insert(all, *queue, vtime);
        }
    }

    uint64_t clamp(uint64_t bucket) const {
        if (bucket < base_) return base_;
        return bucket - base_ < kBuckets ? bucket : base_ + kBuckets - 1;
    }

    // From `at` on, round the circle. There is one.
    uint32_t first_used(uint32_t at) const {
        const uint64_t from = used_ & ~0ull << at;
        return lowest_bit(from != 0 ? from : used_);
    }

    uint64_t base_;  // bucket number, as if there were no circle, before which nothing is
    uint64_t used_;  // bit n: bucket n
    uint32_t count_;
    QueueList buckets_[kBuckets];
};

}  // namespace orrery::fw
