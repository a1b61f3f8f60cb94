// SPDX-License-Identifier: MIT
#include "firmware/sched/sync/wait_table.h"

namespace orrery::fw {

void WaitTable::init(Queue* rows, uint64_t seed) {
    rows_ = rows;
    seed_ = seed;
    sequence_ = 0;
    count_ = 0;
    emptied_ = 0;
    for (Bucket& bucket : buckets_)
        begin_with(bucket, kNone);
}

void WaitTable::begin_with(Bucket& bucket, uint16_t root) {
    bucket.root = root;
    bucket.memory = root == kNone ? kNowhere : at(root).memory;
    bucket.second = root == kNone ? kNone : at(root).chain;
}

uint32_t WaitTable::number_of(uint64_t memory) const {
    // A semaphore is 16 bytes. The upper bits of the product depend on all bits of the address.
    const uint64_t product = (memory / 16 ^ seed_) * 0x9e3779b97f4a7c15ull;
    return static_cast<uint32_t>(product >> 54) % kBuckets;
}

uint16_t WaitTable::root_of(uint64_t memory) const {
    const Bucket& bucket = buckets_[number_of(memory)];
    if (bucket.memory == memory) return bucket.root;
    uint16_t root = bucket.second;
    while (root != kNone && at(root).memory != memory)
        root = at(root).chain;
    return root;
}

Queue* WaitTable::first(uint64_t memory) const {
    const uint16_t root = root_of(memory);
    return root == kNone ? nullptr : &rows_[root];
}

bool WaitTable::before(uint16_t a, uint16_t b) const {
    const Waiter& x = at(a);
    const Waiter& y = at(b);
    if (x.value != y.value) return x.value < y.value;
    return static_cast<int32_t>(x.sequence - y.sequence) < 0;
}

// Restores the heap's shape at one node: the shorter side is the right one. False: nothing has changed, so
// nothing will further up.
bool WaitTable::level(uint16_t number) {
    Waiter& node = at(number);
    if (rank(node.left) < rank(node.right)) {
        const uint16_t left = node.left;
        node.left = node.right;
        node.right = left;
    }
    const auto now = static_cast<uint8_t>(rank(node.right) + 1);
    if (now == node.rank) return false;
    node.rank = now;
    return true;
}

// Joins two heaps, each given by its root or kNone. Goes down the right sides only, which are short.
uint16_t WaitTable::merge(uint16_t a, uint16_t b) {
    uint16_t root = kNone;
    uint16_t last = kNone;
    while (a != kNone && b != kNone) {
        if (before(b, a)) {
            const uint16_t other = a;
            a = b;
            b = other;
        }
        at(a).parent = last;
        if (last == kNone)
            root = a;
        else
            at(last).right = a;
        last = a;
        a = at(a).right;
    }
    const uint16_t rest = a != kNone ? a : b;
    if (rest != kNone) at(rest).parent = last;
    if (last == kNone) return rest;
    at(last).right = rest;
    for (uint16_t n = last; n != kNone; n = at(n).parent)
        level(n);
    return root;
}

// A semaphore's heap has another root now, or is gone (kNone).
void WaitTable::replace_root(uint64_t memory, uint16_t old_root, uint16_t new_root) {
    if (old_root == new_root) return;
    Bucket& bucket = buckets_[number_of(memory)];
    uint16_t* link = &bucket.root;
    while (*link != old_root)
        link = &at(*link).chain;
    if (new_root == kNone) {
        *link = at(old_root).chain;
    } else {
        at(new_root).chain = at(old_root).chain;
        *link = new_root;
    }
    begin_with(bucket, bucket.root);
}

void WaitTable::park(Queue& queue, uint64_t memory, uint64_t value) {
    const uint16_t number = queue.number;
    queue.wait.memory = memory;
    queue.wait.value = value;
    queue.wait.sequence = sequence_++;
    queue.wait.parent = queue.wait.left = queue.wait.right = kNone;
    queue.wait.chain = kNone;
    queue.wait.rank = 1;
    queue.wait.holder = kNone;
    queue.wait.marks = 0;
    ++count_;
    const uint16_t root = root_of(memory);
    if (root == kNone) {
        Bucket& bucket = buckets_[number_of(memory)];
        queue.wait.chain = bucket.root;
        begin_with(bucket, number);
        return;
    }
    replace_root(memory, root, merge(root, number));
}

void WaitTable::remove(Queue& queue) {
    const uint16_t number = queue.number;
    const uint16_t parent = queue.wait.parent;
    const uint16_t below = merge(queue.wait.left, queue.wait.right);
    if (--count_ == 0) ++emptied_;
    if (below != kNone) at(below).parent = parent;
    if (parent == kNone) {
        replace_root(queue.wait.memory, number, below);
        return;
    }
    Waiter& above = at(parent);
    if (above.left == number)
        above.left = below;
    else
        above.right = below;
    for (uint16_t n = parent; n != kNone && level(n);)
        n = at(n).parent;
}

Queue* WaitTable::take(uint64_t memory, uint64_t value) {
    Queue* const queue = first(memory);
    if (queue == nullptr || queue->wait.value > value) return nullptr;
    remove(*queue);
    return queue;
}

}  // namespace orrery::fw
