// What comes and goes in order, in one piece of memory that grows: a std::deque asks for memory every few
// elements and divides to find one.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace orrery::umd {

// T: made without arguments, and moved without failing. Threads: one at a time.
template <typename T>
class Ring {
  public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    T& front() { return slots_[begin_]; }
    T& operator[](std::size_t place) { return slots_[(begin_ + place) & mask_]; }
    const T& operator[](std::size_t place) const { return slots_[(begin_ + place) & mask_]; }
    // Without memory for it (std::bad_alloc) all is as it was, `one` too.
    void push_back(T&& one) {
        if (slots_ == nullptr || size_ > mask_) grow();
        slots_[(begin_ + size_) & mask_] = std::move(one);
        ++size_;
    }
    // What the element holds it goes on to hold, until another one is there: take it before.
    void pop_front() {
        begin_ = (begin_ + 1) & mask_;
        if (--size_ == 0 && mask_ >= kKept) *this = {};
    }

  private:
    static constexpr std::size_t kFirst = 64;
    static constexpr std::size_t kKept = 4'096;  // an empty one keeps no more than this

    void grow() {
        const std::size_t room = slots_ == nullptr ? kFirst : 2 * (mask_ + 1);
        auto more = std::make_unique<T[]>(room);
        for (std::size_t i = 0; i < size_; ++i)
            more[i] = std::move((*this)[i]);
        slots_ = std::move(more);
        begin_ = 0;
        mask_ = room - 1;
    }

    std::unique_ptr<T[]> slots_;
    std::size_t begin_ = 0, size_ = 0;
    std::size_t mask_ = 0;  // one less than there is room for, a power of two
};

}  // namespace orrery::umd
