// SPDX-License-Identifier: MIT
// Doubly linked lists of rows of a table: links are numbers of rows, so they cost four bytes, survive a
// restart where they are, and can be checked. All zero is a valid empty list, so they cost nothing at start.
#pragma once

#include <stdint.h>

namespace orrery::fw {

// Numbers of the neighbours, plus one; 0: none.
struct alignas(4) Link {
    uint16_t next;
    uint16_t prev;
};

// Rows have a member `number`, their place in the table; `all` is its row 0.
template <typename T, Link T::* kLink>
class List {
  public:
    bool empty() const { return head_ == 0; }
    T* front(T* all) const { return row(all, head_); }
    T* back(T* all) const { return row(all, tail_); }
    static T* next(T* all, const T& element) { return row(all, (element.*kLink).next); }
    static T* previous(T* all, const T& element) { return row(all, (element.*kLink).prev); }
    // It is on this list, alone.
    bool only(const T& element) const { return head_ == tail_ && head_ == element.number + 1; }

    void push_back(T* all, T& element) {
        const auto name = static_cast<uint16_t>(element.number + 1);
        (element.*kLink) = {0, tail_};
        if (tail_ != 0)
            link(all, tail_).next = name;
        else
            head_ = name;
        tail_ = name;
    }

    void push_front(T* all, T& element) {
        const auto name = static_cast<uint16_t>(element.number + 1);
        (element.*kLink) = {head_, 0};
        if (head_ != 0)
            link(all, head_).prev = name;
        else
            tail_ = name;
        head_ = name;
    }

    // Behind `before`; null: to the front.
    void insert_after(T* all, T* before, T& element) {
        if (before == nullptr) {
            push_front(all, element);
        } else if (next(all, *before) == nullptr) {
            push_back(all, element);
        } else {
            const auto name = static_cast<uint16_t>(element.number + 1);
            Link& own = element.*kLink;
            own = {(before->*kLink).next, static_cast<uint16_t>(before->number + 1)};
            link(all, own.next).prev = name;
            (before->*kLink).next = name;
        }
    }

    // The element must be on this list.
    void remove(T* all, T& element) {
        Link& own = element.*kLink;
        if (own.prev != 0)
            link(all, own.prev).next = own.next;
        else
            head_ = own.next;
        if (own.next != 0)
            link(all, own.next).prev = own.prev;
        else
            tail_ = own.prev;
        own = {0, 0};
    }

  private:
    static T* row(T* all, uint16_t name) { return name == 0 ? nullptr : all + (name - 1); }
    // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn): it does not follow pointers to members
    static Link& link(T* all, uint16_t name) { return all[name - 1].*kLink; }

    uint16_t head_;
    uint16_t tail_;
};

}  // namespace orrery::fw
