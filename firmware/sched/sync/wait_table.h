// SPDX-License-Identifier: MIT
// Who waits for which semaphore. A semaphore is known by its memory, so that it does not matter through which
// context and address it is signalled. A hash table leads to the semaphore, whose waiters form a leftist heap
// by the value that they want: a signal finds the first in O(1) and touches only those that it sets free,
// each in O(log n) of the waiters of this one semaphore. All of it lives in the queues' rows; nothing is
// allocated.
#pragma once

#include <orrery/fw/boot_block.h>

#include "firmware/sched/queue/queue.h"

namespace orrery::fw {

class WaitTable {
  public:
    // Nobody waits. `rows`: the table of queues; `seed` makes the hash hard to guess.
    void init(Queue* rows, uint64_t seed);

    // The queue must not be in the table.
    void park(Queue& queue, uint64_t memory, uint64_t value);
    // The queue must be in the table.
    void remove(Queue& queue);

    // Of those that wait for this memory, the one that wants the lowest value; null: nobody waits for it.
    Queue* first(uint64_t memory) const;
    // As first(), if `value` is enough for it; it is no longer in the table.
    Queue* take(uint64_t memory, uint64_t value);

    // Calls visit(Queue&) for each that waits for this memory and for which `value` is enough; nothing may
    // park or leave meanwhile. Looks at those and at one more on each way down.
    template <typename Visit>
    void for_each_due(uint64_t memory, uint64_t value, Visit visit) const {
        const uint16_t root = root_of(memory);
        if (root == kNone || at(root).value > value) return;
        uint16_t n = root;
        for (;;) {
            visit(rows_[n]);
            const Waiter& node = at(n);
            if (node.left != kNone && at(node.left).value <= value) {
                n = node.left;
                continue;
            }
            if (node.right != kNone && at(node.right).value <= value) {
                n = node.right;
                continue;
            }
            // Up to the first left child whose sibling is due.
            for (;;) {
                if (n == root) return;
                const uint16_t parent = at(n).parent;
                const uint16_t sibling = at(parent).right;
                const bool was_left = at(parent).left == n;
                n = parent;
                if (was_left && sibling != kNone && at(sibling).value <= value) {
                    n = sibling;
                    break;
                }
            }
        }
    }

    uint32_t count() const { return count_; }
    // Grows by one with everybody who parks, modulo 2^32: Waiter::sequence of the next.
    uint32_t sequence() const { return sequence_; }
    // Grows by one with everybody who leaves, modulo 2^32.
    uint32_t removed() const { return sequence_ - count_; }
    // How often the last who waited has left, modulo 2^32.
    uint32_t emptied() const { return emptied_; }
    // Whether the queue was parked before sequence() was `mark`.
    static bool parked_before(const Queue& queue, uint32_t mark) {
        return static_cast<int32_t>(queue.wait.sequence - mark) < 0;
    }

    static constexpr uint16_t kNone = 0xffff;

  private:
    static constexpr uint32_t kBuckets = 1024;

    // Beside its first semaphore's root a bucket has what a look past that one asks for. So it takes as long
    // as a look into an empty bucket: where the host's memory happens to lie changes no times, unless two
    // that are waited for share a bucket.
    struct Bucket {
        uint64_t memory;  // of the first; kNowhere: it is empty
        uint16_t root, second;
    };
    static constexpr uint64_t kNowhere = ~uint64_t{0};

    Waiter& at(uint16_t number) const { return rows_[number].wait; }
    uint32_t number_of(uint64_t memory) const;
    void begin_with(Bucket& bucket, uint16_t root);
    uint16_t root_of(uint64_t memory) const;
    bool before(uint16_t a, uint16_t b) const;
    uint8_t rank(uint16_t number) const { return number == kNone ? uint8_t{0} : at(number).rank; }
    bool level(uint16_t number);
    uint16_t merge(uint16_t a, uint16_t b);
    void replace_root(uint64_t memory, uint16_t old_root, uint16_t new_root);

    Queue* rows_;
    uint64_t seed_;
    uint32_t sequence_;
    uint32_t count_;
    uint32_t emptied_;
    Bucket buckets_[kBuckets];
};

}  // namespace orrery::fw
