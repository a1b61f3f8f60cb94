// A bounded first-in first-out buffer that allocates once.
#pragma once

#include <cstddef>
#include <vector>

namespace orrery::emu {

template <class T>
class Fifo {
  public:
    explicit Fifo(std::size_t capacity) : items_(capacity) {}

    bool empty() const { return size_ == 0; }
    bool full() const { return size_ == items_.size(); }
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return items_.size(); }

    // false: full, nothing was done.
    bool push(const T& item) {
        if (full()) return false;
        items_[(first_ + size_) % items_.size()] = item;
        ++size_;
        return true;
    }
    // Not when empty.
    T pop() {
        const T item = items_[first_];
        first_ = (first_ + 1) % items_.size();
        --size_;
        return item;
    }
    void clear() { size_ = 0; }
    // Removes every item equal to `item`, keeping the order of the rest.
    void remove(const T& item) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            const T& candidate = items_[(first_ + i) % items_.size()];
            if (candidate == item) continue;
            items_[(first_ + kept) % items_.size()] = candidate;
            ++kept;
        }
        size_ = kept;
    }

  private:
    std::vector<T> items_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

}  // namespace orrery::emu
