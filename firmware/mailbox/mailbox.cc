// SPDX-License-Identifier: MIT
#include "firmware/mailbox/mailbox.h"

#include "firmware/hal/window.h"

namespace orrery::fw {
namespace {

constexpr size_t kMessageWords = sizeof(orr_mbox_message) / 8;

}  // namespace

bool Mailbox::init(Hal& hal, HostIrq& irq, uint64_t command_ring, uint64_t message_ring) {
    hal_ = &hal;
    irq_ = &irq;
    command_ring_ = ORR_HOST_WINDOW(command_ring);
    message_ring_ = ORR_HOST_WINDOW(message_ring);
    hal.store(command_ring_ + offsetof(orr_mbox_ring, consumer), 0);
    hal.store(message_ring_ + offsetof(orr_mbox_ring, producer), 0);
    static_cast<void>(hal.load(entry(command_ring_, ORR_MBOX_ENTRIES - 1) + sizeof(orr_mbox_message) - 8));
    static_cast<void>(hal.load(entry(message_ring_, ORR_MBOX_ENTRIES - 1) + sizeof(orr_mbox_message) - 8));
    return !take_window_fault(hal);
}

bool Mailbox::peek(orr_mbox_message& command) {
    const uint64_t pending = hal_->load(command_ring_ + offsetof(orr_mbox_ring, producer)) - consumed_;
    if (pending > ORR_MBOX_ENTRIES) {
        fatal_ = take_window_fault(*hal_) ? kHaltHostMemory : kHaltCommandIndex;
        return false;
    }
    if (pending == 0) {
        if (take_window_fault(*hal_)) fatal_ = kHaltHostMemory;
        return false;
    }
    hal_->fence();
    uint64_t words[kMessageWords];
    load_words(*hal_, entry(command_ring_, consumed_), words, kMessageWords);
    if (take_window_fault(*hal_)) {
        fatal_ = kHaltHostMemory;
        return false;
    }
    __builtin_memcpy(&command, words, sizeof(command));
    return true;
}

void Mailbox::consume() {
    ++consumed_;
    hal_->store(command_ring_ + offsetof(orr_mbox_ring, consumer), consumed_);
}

bool Mailbox::has_room() {
    if (posted_ - taken_ < ORR_MBOX_ENTRIES) return true;
    const uint64_t taken = hal_->load(message_ring_ + offsetof(orr_mbox_ring, consumer));
    if (take_window_fault(*hal_)) {
        fatal_ = kHaltHostMemory;
        return false;
    }
    if (posted_ - taken > ORR_MBOX_ENTRIES) {
        fatal_ = kHaltMessageIndex;
        return false;
    }
    taken_ = taken;
    return posted_ - taken_ < ORR_MBOX_ENTRIES;
}

void Mailbox::post(const orr_mbox_message& message) {
    uint64_t words[kMessageWords];
    __builtin_memcpy(words, &message, sizeof(message));
    store_words(*hal_, entry(message_ring_, posted_), words, kMessageWords);
    ++posted_;
    hal_->fence();
    hal_->store(message_ring_ + offsetof(orr_mbox_ring, producer), posted_);
    if (take_window_fault(*hal_)) fatal_ = kHaltHostMemory;
    irq_->raise(ORR_IRQ_MAILBOX);
}

void Mailbox::log(const char* text) {
    if (!has_room()) return;
    orr_mbox_message message = {};
    message.opcode = ORR_EVENT_LOG;
    char line[sizeof(message.arg)] = {};
    for (size_t i = 0; i < sizeof(line) && text[i] != '\0'; ++i)
        line[i] = text[i];
    __builtin_memcpy(message.arg, line, sizeof(line));
    post(message);
}

}  // namespace orrery::fw
