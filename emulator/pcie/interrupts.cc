#include "emulator/pcie/interrupts.h"

#include <unistd.h>

#include <algorithm>

namespace orrery::emu {
namespace {

constexpr uint64_t bit(unsigned vector) {
    return uint64_t{1} << vector;
}

constexpr uint64_t bits(unsigned start, unsigned count) {
    return ((uint64_t{1} << count) - 1) << start;
}

}  // namespace

// mutex_ is held.
void Interrupts::signal(Type& type, unsigned vector) {
    const UniqueFd& fd = type.fds[vector];
    if (!fd) {
        counters_.dropped++;
        return;
    }
    if ((type.masked & bit(vector)) != 0) {
        type.pending |= bit(vector);
        counters_.pended++;
        return;
    }
    const uint64_t one = 1;
    // The descriptor is a non-blocking eventfd: it can only fail by its counter being full, and then the
    // client has an event waiting for it anyway.
    if (::write(fd.get(), &one, sizeof one) == sizeof one) {
        counters_.sent++;
    } else {
        counters_.dropped++;
    }
}

void Interrupts::raise(unsigned vector) {
    const std::lock_guard lock(mutex_);
    counters_.raised++;
    Type& type = types_[types_[kMsixIndex].enabled > 0 ? kMsixIndex : kMsiIndex];
    if (vector >= kVectorCount || type.enabled == 0) {
        counters_.dropped++;
        return;
    }
    signal(type, vector % type.enabled);
}

void Interrupts::raise_error() {
    const std::lock_guard lock(mutex_);
    counters_.raised++;
    signal(types_[kErrorIndex], 0);
}

void Interrupts::request_release() {
    const std::lock_guard lock(mutex_);
    counters_.raised++;
    signal(types_[kRequestIndex], 0);
}

Interrupts::Counters Interrupts::counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
}

void Interrupts::set_eventfds(unsigned index, unsigned start, std::span<UniqueFd> fds) {
    const std::lock_guard lock(mutex_);
    Type& type = types_[index];
    for (size_t i = 0; i < fds.size(); i++)
        type.fds[start + i] = std::move(fds[i]);
    type.enabled = kVectorCount;
    while (type.enabled > 0 && !type.fds[type.enabled - 1])
        type.enabled--;
}

void Interrupts::set_masked(unsigned index, unsigned start, unsigned count, bool masked) {
    const std::lock_guard lock(mutex_);
    Type& type = types_[index];
    if (masked) {
        type.masked |= bits(start, count);
        return;
    }
    type.masked &= ~bits(start, count);
    for (unsigned v = start; v < start + count; v++) {
        if ((type.pending & bit(v)) == 0) continue;
        type.pending &= ~bit(v);
        signal(type, v);
    }
}

void Interrupts::trigger(unsigned index, unsigned start, unsigned count) {
    const std::lock_guard lock(mutex_);
    for (unsigned v = start; v < start + count; v++)
        signal(types_[index], v);
}

void Interrupts::drop(Type& type) {
    for (UniqueFd& fd : type.fds)
        fd.reset();
    type.masked = 0;
    type.pending = 0;
    type.enabled = 0;
}

void Interrupts::disable(unsigned index) {
    const std::lock_guard lock(mutex_);
    drop(types_[index]);
}

void Interrupts::disable_all() {
    const std::lock_guard lock(mutex_);
    std::ranges::for_each(types_, drop);
}

void Interrupts::clear_pending() {
    const std::lock_guard lock(mutex_);
    for (Type& type : types_)
        type.pending = 0;
}

uint64_t Interrupts::pending() const {
    const std::lock_guard lock(mutex_);
    return types_[kMsixIndex].pending;
}

}  // namespace orrery::emu
