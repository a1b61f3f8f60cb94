// SPDX-License-Identifier: MIT
// Doubly linked lists whose links live in the elements: O(1) without memory of their own. All zero is a valid
// empty list, so they cost nothing at start.
#pragma once

namespace orrery::fw {

template <typename T>
struct Link {
    T* next;
    T* prev;
};

template <typename T, Link<T> T::* kLink>
class List {
  public:
    bool empty() const { return head_ == nullptr; }
    T* front() const { return head_; }
    static T* next(const T& element) { return (element.*kLink).next; }

    void push_back(T& element) {
        (element.*kLink) = {nullptr, tail_};
        if (tail_ != nullptr)
            (tail_->*kLink).next = &element;
        else
            head_ = &element;
        tail_ = &element;
    }

    // The element must be on this list.
    void remove(T& element) {
        Link<T>& link = element.*kLink;
        if (link.prev != nullptr)
            (link.prev->*kLink).next = link.next;
        else
            head_ = link.next;
        if (link.next != nullptr)
            (link.next->*kLink).prev = link.prev;
        else
            tail_ = link.prev;
        link = {nullptr, nullptr};
    }

    T* pop_front() {
        T* const element = head_;
        if (element != nullptr) remove(*element);
        return element;
    }

  private:
    T* head_;
    T* tail_;
};

}  // namespace orrery::fw
