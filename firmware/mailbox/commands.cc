// SPDX-License-Identifier: MIT
#include "firmware/mailbox/commands.h"

#include <orrery/fw/boot_block.h>
#include <orrery/hw/doorbell.h>

#include "firmware/version.h"

namespace orrery::fw {
namespace {

constexpr uint32_t kCommandsPerPass = 16;
// Longer limits would overflow when they become picoseconds; 11 days are as good as none.
constexpr uint64_t kMaxLimitUs = 1ull << 40;

constexpr uint64_t low(uint64_t word) {
    return word & 0xffffffffu;
}
constexpr uint64_t high(uint64_t word) {
    return word >> 32;
}

// Number of the first argument from `from` on that is not zero; 6: all are.
uint32_t first_nonzero(const orr_mbox_message& command, uint32_t from) {
    constexpr uint32_t kArgs = sizeof(command.arg) / sizeof(command.arg[0]);
    while (from < kArgs && command.arg[from] == 0)
        ++from;
    return from;
}

// How many arguments an opcode takes; the rest must be zero. -1: no such opcode.
int argument_count(uint32_t opcode) {
    switch (opcode) {
        case ORR_MBOX_PING:
            return 6;
        case ORR_MBOX_VERSION:
            return 0;
        case ORR_MBOX_CONTEXT_CREATE:
            return 3;
        case ORR_MBOX_CONTEXT_DESTROY:
            return 1;
        case ORR_MBOX_QUEUE_CREATE:
            return 5;
        case ORR_MBOX_QUEUE_DESTROY:
            return 1;
        case ORR_MBOX_TLB_FLUSH:
            return 3;
        case ORR_MBOX_QUEUE_ARM:
            return 2;
        case ORR_MBOX_QUEUE_INFO:
            return 1;
        default:
            return -1;
    }
}

}  // namespace

void Commands::init(Hal& hal, Mailbox& mailbox, Scheduler& scheduler) {
    hal_ = &hal;
    mailbox_ = &mailbox;
    scheduler_ = &scheduler;
}

bool Commands::service() {
    bool worked = false;
    blocked_ = false;
    more_ = false;
    orr_mbox_message message;
    for (uint32_t n = 0;; ++n) {
        // What happened before a command is told before its reply.
        while (scheduler_->has_message() && mailbox_->has_room()) {
            if (scheduler_->take_message(message)) mailbox_->post(message);
            worked = true;
        }
        if (n == kCommandsPerPass) {
            more_ = true;
            return true;
        }
        if (mailbox_->fatal() != kHaltNone) return worked;
        const bool room = mailbox_->has_room();
        if (!room || !mailbox_->peek(message)) {
            blocked_ = !room && mailbox_->fatal() == kHaltNone;
            return worked;
        }
        mailbox_->consume();
        serve(message);
        ++served_;
        worked = true;
    }
}

void Commands::serve(const orr_mbox_message& command) {
    if (command.sequence == 0) {
        // A reply could not be told from an event.
        mailbox_->log("mailbox: command with sequence 0 was ignored");
        return;
    }
    orr_mbox_message reply = {};
    reply.sequence = command.sequence;
    reply.opcode = command.opcode;
    const Result result = carry_out(command, reply);
    const bool later = command.opcode == ORR_MBOX_QUEUE_DESTROY && result.status == ORR_STATUS_OK;
    if (later || (command.flags & ORR_MBOX_F_NO_REPLY) != 0) return;
    reply.status = result.status;
    reply.detail = result.detail;
    mailbox_->post(reply);
}

Commands::Result Commands::carry_out(const orr_mbox_message& command, orr_mbox_message& reply) {
    const int arguments = argument_count(command.opcode);
    if (arguments < 0 || (command.flags & ~ORR_MBOX_F_NO_REPLY) != 0) return {ORR_STATUS_NOT_SUPPORTED, 0};
    if (command.status != 0 || command.detail != 0) return {ORR_STATUS_INVALID, 0};
    const uint32_t extra = first_nonzero(command, static_cast<uint32_t>(arguments));
    if (extra < 6) return {ORR_STATUS_INVALID, extra};

    switch (command.opcode) {
        case ORR_MBOX_PING:
            __builtin_memcpy(reply.arg, command.arg, sizeof(reply.arg));
            return {ORR_STATUS_OK, 0};
        case ORR_MBOX_VERSION:
            reply.arg[0] = ORR_FW_ABI;
            reply.arg[1] = kFirmwareVersion;
            return {ORR_STATUS_OK, 0};
        case ORR_MBOX_CONTEXT_CREATE:
            return context_create(command);
        case ORR_MBOX_CONTEXT_DESTROY:
            return context_destroy(command);
        case ORR_MBOX_QUEUE_CREATE:
            return queue_create(command, reply);
        case ORR_MBOX_QUEUE_DESTROY:
            return queue_destroy(command);
        case ORR_MBOX_TLB_FLUSH:
            return tlb_flush(command);
        case ORR_MBOX_QUEUE_ARM:
            return queue_arm(command);
        default:  // QUEUE_INFO: argument_count() knows no other
            return queue_info(command, reply);
    }
}

Commands::Result Commands::context_create(const orr_mbox_message& command) {
    const uint64_t number = command.arg[0];
    const uint64_t root = command.arg[1];
    if (number == 0 || number >= ORR_FW_CONTEXTS) return {ORR_STATUS_INVALID, 0};
    if (root % ORR_PAGE_SIZE != 0 || root >= hal_->reg(SOC_VRAM_SIZE)) return {ORR_STATUS_INVALID, 1};
    if (command.arg[2] >= ORR_DB_PAGES) return {ORR_STATUS_INVALID, 2};
    if (scheduler_->context(static_cast<uint32_t>(number)) != nullptr) return {ORR_STATUS_EXISTS, 0};
    scheduler_->create_context(static_cast<uint32_t>(number), root, static_cast<uint16_t>(command.arg[2]));
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::context_destroy(const orr_mbox_message& command) {
    if (command.arg[0] >= ORR_FW_CONTEXTS) return {ORR_STATUS_INVALID, 0};
    Context* const context = scheduler_->context(static_cast<uint32_t>(command.arg[0]));
    if (context == nullptr) return {ORR_STATUS_NO_ENTRY, 0};
    if (context->queues != 0) return {ORR_STATUS_BUSY, 0};
    scheduler_->destroy_context(*context);
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::queue_create(const orr_mbox_message& command, orr_mbox_message& reply) {
    const uint64_t number = low(command.arg[0]);
    const uint64_t context = high(command.arg[0]);
    const uint64_t va = command.arg[1];
    const uint64_t entries = command.arg[2];
    const uint64_t slot = low(command.arg[3]);
    const uint64_t priority = high(command.arg[3]);
    const uint64_t limit_us = command.arg[4];

    if (number >= ORR_FW_QUEUES || context == 0 || context >= ORR_FW_CONTEXTS) return {ORR_STATUS_INVALID, 0};
    if (entries < 2 || entries > ORR_RING_MAX_ENTRIES || (entries & (entries - 1)) != 0)
        return {ORR_STATUS_INVALID, 2};
    const uint64_t bytes = sizeof(orr_ring) + entries * ORR_PACKET_SIZE;
    if (va % 64 != 0 || va >= kVaEnd || bytes > kVaEnd - va) return {ORR_STATUS_INVALID, 1};
    if (slot >= ORR_DB_SLOTS || priority > ORR_PRIORITY_REALTIME) return {ORR_STATUS_INVALID, 3};
    if (limit_us > kMaxLimitUs) return {ORR_STATUS_INVALID, 4};
    if (scheduler_->context(static_cast<uint32_t>(context)) == nullptr) return {ORR_STATUS_NO_ENTRY, 0};
    if (scheduler_->queue(static_cast<uint32_t>(number)) != nullptr) return {ORR_STATUS_EXISTS, 0};

    const uint32_t status =
        scheduler_->create_queue({.queue = static_cast<uint32_t>(number),
                                  .context = static_cast<uint32_t>(context),
                                  .ring_va = va,
                                  .entries = entries,
                                  .slot = static_cast<uint16_t>(slot),
                                  .priority = static_cast<uint8_t>(priority),
                                  .limit_ps = limit_us == 0 ? kDefaultLimitPs : limit_us * kPsPerUs});
    switch (status) {
        case ORR_STATUS_OK:
            reply.arg[0] = scheduler_->queue(static_cast<uint32_t>(number))->generation;
            return {ORR_STATUS_OK, 0};
        case ORR_STATUS_FAULT:
            return {status, 1};
        default:  // the doorbell
            return {status, 3};
    }
}

Commands::Result Commands::queue_destroy(const orr_mbox_message& command) {
    if (command.arg[0] >= ORR_FW_QUEUES) return {ORR_STATUS_INVALID, 0};
    Queue* const queue = scheduler_->queue(static_cast<uint32_t>(command.arg[0]));
    if (queue == nullptr) return {ORR_STATUS_NO_ENTRY, 0};
    if (queue->destroying) return {ORR_STATUS_BUSY, 0};
    scheduler_->destroy_queue(*queue, command.sequence, (command.flags & ORR_MBOX_F_NO_REPLY) != 0);
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::tlb_flush(const orr_mbox_message& command) {
    const uint64_t va = command.arg[1];
    const uint64_t bytes = command.arg[2];
    if (command.arg[0] >= ORR_FW_CONTEXTS) return {ORR_STATUS_INVALID, 0};
    if (va >= kVaEnd) return {ORR_STATUS_INVALID, 1};
    if (bytes > kVaEnd - va) return {ORR_STATUS_INVALID, 2};
    Context* const context = scheduler_->context(static_cast<uint32_t>(command.arg[0]));
    if (context == nullptr) return {ORR_STATUS_NO_ENTRY, 0};
    hal_->set_reg(SOC_MMU_ASID, context->number);
    hal_->set_reg(SOC_MMU_ARG, va);
    hal_->set_reg(SOC_MMU_SIZE, bytes);
    hal_->set_reg(SOC_MMU_CMD, bytes == 0 ? SOC_MMU_FLUSH_ASID : SOC_MMU_FLUSH_RANGE);
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::queue_arm(const orr_mbox_message& command) {
    if (command.arg[0] >= ORR_FW_QUEUES) return {ORR_STATUS_INVALID, 0};
    Queue* const queue = scheduler_->queue(static_cast<uint32_t>(command.arg[0]));
    if (queue == nullptr) return {ORR_STATUS_NO_ENTRY, 0};
    if (queue->destroying) return {ORR_STATUS_BUSY, 0};
    scheduler_->arm(*queue, command.arg[1]);
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::queue_info(const orr_mbox_message& command, orr_mbox_message& reply) {
    if (command.arg[0] >= ORR_FW_QUEUES) return {ORR_STATUS_INVALID, 0};
    Queue* const queue = scheduler_->queue(static_cast<uint32_t>(command.arg[0]));
    if (queue == nullptr) return {ORR_STATUS_NO_ENTRY, 0};
    reply.arg[0] = scheduler_->state(*queue);
    reply.arg[1] = queue->retired;
    reply.arg[2] = queue->stopped ? queue->error.code : ORR_QERR_NONE;
    reply.arg[3] = queue->in_flight;
    return {ORR_STATUS_OK, 0};
}

}  // namespace orrery::fw
