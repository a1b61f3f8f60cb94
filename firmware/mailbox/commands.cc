// SPDX-License-Identifier: MIT
#include "firmware/mailbox/commands.h"

#include <orrery/fw/boot_block.h>
#include <orrery/hw/doorbell.h>
#include <orrery/hw/link.h>

#include "firmware/sched/show/trace.h"
#include "firmware/version.h"

namespace orrery::fw {
namespace {

constexpr uint32_t kCommandsPerPass = 16;
// Longer limits would overflow when they become picoseconds; 11 days are as good as none.
constexpr uint64_t kMaxLimitUs = 1ull << 40;

// Shorter periods would be all bookkeeping, longer ones would let a context hold the card for seconds.
constexpr uint64_t kMinPeriodUs = 100;
constexpr uint64_t kMaxPeriodUs = 1'000'000;
constexpr uint64_t kMaxPermille = 1000;

constexpr uint64_t low(uint64_t word) {
    return word & 0xffffffffu;
}
constexpr uint64_t high(uint64_t word) {
    return word >> 32;
}

// Text of a stranger, for people to read: what cannot be printed becomes a question mark.
void copy_text(char (&to)[ORR_NAME_BYTES], const uint64_t* words) {
    size_t n = 0;
    for (; n + 1 < sizeof(to); ++n) {
        const auto byte = static_cast<uint8_t>(words[n / 8] >> n % 8 * 8);
        if (byte == 0) break;
        to[n] = byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '?';
    }
    for (; n < sizeof(to); ++n)
        to[n] = 0;
}

// Number of the first argument from `from` on that is not zero; 6: all are.
uint32_t first_nonzero(const orr_mbox_message& command, uint32_t from) {
    constexpr uint32_t kArgs = sizeof(command.arg) / sizeof(command.arg[0]);
    while (from < kArgs && command.arg[from] == 0)
        ++from;
    return from;
}

// permille | period in microseconds << 32; 0: no limit.
bool quota_ok(uint64_t quota) {
    const uint64_t permille = low(quota);
    const uint64_t period = high(quota);
    return quota == 0 ||
           (permille >= 1 && permille <= kMaxPermille && period >= kMinPeriodUs && period <= kMaxPeriodUs);
}

// weight | time slice in microseconds << 32
bool share_ok(uint64_t share) {
    return low(share) <= ORR_WEIGHT_MAX;
}
uint16_t weight_of(uint64_t share) {
    return low(share) == 0 ? uint16_t{ORR_WEIGHT_DEFAULT} : static_cast<uint16_t>(low(share));
}

// How many arguments an opcode takes; the rest must be zero. -1: no such opcode.
int argument_count(uint32_t opcode) {
    switch (opcode) {
        case ORR_MBOX_PING:
            return 6;
        case ORR_MBOX_VERSION:
            return 0;
        case ORR_MBOX_CONTEXT_CREATE:
            return 5;
        case ORR_MBOX_CONTEXT_DESTROY:
            return 1;
        case ORR_MBOX_QUEUE_CREATE:
            return 6;
        case ORR_MBOX_QUEUE_DESTROY:
            return 1;
        case ORR_MBOX_TLB_FLUSH:
            return 3;
        case ORR_MBOX_QUEUE_ARM:
            return 2;
        case ORR_MBOX_QUEUE_INFO:
            return 1;
        case ORR_MBOX_NAME:
            return 6;
        case ORR_MBOX_QUEUE_SET:
            return 3;
        case ORR_MBOX_QUEUE_STATS:
            return 1;
        case ORR_MBOX_QUOTA_SET:
            return 2;
        case ORR_MBOX_CRASH:
            return 1;
        case ORR_MBOX_QUEUE_ABORT:
            return 1;
        case ORR_MBOX_SEM_CLOSE:
            return 3;
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
    trace::mail(*hal_, command.opcode, command.sequence, result.status);
    const bool later = (command.opcode == ORR_MBOX_QUEUE_DESTROY || command.opcode == ORR_MBOX_QUEUE_ABORT) &&
                       result.status == ORR_STATUS_OK;
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
        case ORR_MBOX_QUEUE_INFO:
            return queue_info(command, reply);
        case ORR_MBOX_NAME:
            return set_name(command);
        case ORR_MBOX_QUEUE_SET:
            return queue_set(command);
        case ORR_MBOX_QUEUE_STATS:
            return queue_stats(command, reply);
        case ORR_MBOX_CRASH:
            return crash(command);
        case ORR_MBOX_QUEUE_ABORT:
            return queue_abort(command);
        case ORR_MBOX_SEM_CLOSE:
            return sem_close(command);
        default:  // QUOTA_SET: argument_count() knows no other
            return quota_set(command);
    }
}

Queue* Commands::find_queue(uint64_t argument, Result& refusal) {
    refusal = {ORR_STATUS_INVALID, 0};
    if (argument >= ORR_FW_QUEUES) return nullptr;
    refusal = {ORR_STATUS_NO_ENTRY, 0};
    return scheduler_->queue(static_cast<uint32_t>(argument));
}

Context* Commands::find_context(uint64_t argument, Result& refusal) {
    refusal = {ORR_STATUS_INVALID, 0};
    if (argument >= ORR_FW_CONTEXTS) return nullptr;
    refusal = {ORR_STATUS_NO_ENTRY, 0};
    return scheduler_->context(static_cast<uint32_t>(argument));
}

Commands::Result Commands::context_create(const orr_mbox_message& command) {
    const uint64_t number = command.arg[0];
    const uint64_t root = command.arg[1];
    if (number == 0 || number >= ORR_FW_CONTEXTS) return {ORR_STATUS_INVALID, 0};
    if (root % ORR_PAGE_SIZE != 0 || root >= hal_->reg(SOC_VRAM_SIZE)) return {ORR_STATUS_INVALID, 1};
    if (command.arg[2] >= ORR_DB_PAGES) return {ORR_STATUS_INVALID, 2};
    if (!quota_ok(command.arg[3])) return {ORR_STATUS_INVALID, 3};
    const Context* const old = scheduler_->context(static_cast<uint32_t>(number));
    if (old != nullptr && (!old->lost || old->queues != 0)) return {ORR_STATUS_EXISTS, 0};
    const uint32_t status = scheduler_->create_context(
        static_cast<uint32_t>(number), root, static_cast<uint16_t>(command.arg[2]),
        static_cast<uint32_t>(low(command.arg[4])), static_cast<uint32_t>(high(command.arg[4])));
    if (status != ORR_STATUS_OK) return {status, 4};
    if (command.arg[3] == 0) return {ORR_STATUS_OK, 0};
    scheduler_->set_quota(*scheduler_->context(static_cast<uint32_t>(number)),
                          static_cast<uint16_t>(low(command.arg[3])),
                          static_cast<uint32_t>(high(command.arg[3])));
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::context_destroy(const orr_mbox_message& command) {
    Result refusal;
    Context* const context = find_context(command.arg[0], refusal);
    if (context == nullptr) return refusal;
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
    if (!share_ok(command.arg[5])) return {ORR_STATUS_INVALID, 5};
    const Context* const owner = scheduler_->context(static_cast<uint32_t>(context));
    if (owner == nullptr || owner->lost) return {ORR_STATUS_NO_ENTRY, 0};
    if (scheduler_->queue(static_cast<uint32_t>(number)) != nullptr) return {ORR_STATUS_EXISTS, 0};

    const uint32_t status =
        scheduler_->create_queue({.queue = static_cast<uint32_t>(number),
                                  .context = static_cast<uint32_t>(context),
                                  .ring_va = va,
                                  .entries = entries,
                                  .slot = static_cast<uint16_t>(slot),
                                  .priority = static_cast<uint8_t>(priority),
                                  .limit_ps = limit_us * kPsPerUs,
                                  .weight = weight_of(command.arg[5]),
                                  .slice_us = static_cast<uint32_t>(high(command.arg[5]))});
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
    Result refusal;
    Queue* const queue = find_queue(command.arg[0], refusal);
    if (queue == nullptr) return refusal;
    if (queue->destroying) {
        // Under way since before a restart, or without a reply: this command gets it.
        const bool told = scheduler_->tell_end(*queue, command.sequence);
        return {told ? ORR_STATUS_OK : ORR_STATUS_BUSY, 0};
    }
    scheduler_->destroy_queue(*queue, command.sequence, (command.flags & ORR_MBOX_F_NO_REPLY) != 0);
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::queue_abort(const orr_mbox_message& command) {
    Result refusal;
    Queue* const queue = find_queue(command.arg[0], refusal);
    if (queue == nullptr) return refusal;
    const bool silent = (command.flags & ORR_MBOX_F_NO_REPLY) != 0;
    const bool begun = !queue->destroying && scheduler_->abort_queue(*queue, silent ? 0 : command.sequence);
    return {begun ? ORR_STATUS_OK : ORR_STATUS_BUSY, 0};
}

Commands::Result Commands::sem_close(const orr_mbox_message& command) {
    const uint64_t address = command.arg[0];
    const uint64_t place = command.arg[1];
    if (place > ORR_SEM_IN_HOST) return {ORR_STATUS_INVALID, 1};
    if (address % sizeof(orr_semaphore) != 0 ||
        (place == ORR_SEM_IN_VRAM ? address >= hal_->reg(SOC_VRAM_SIZE) : address >> 63 != 0))
        return {ORR_STATUS_INVALID, 0};
    if (command.arg[2] >= ORR_SEM_FAILED) return {ORR_STATUS_INVALID, 2};
    const uint64_t memory = place == ORR_SEM_IN_VRAM ? ORR_VRAM_WINDOW + address : ORR_HOST_WINDOW(address);
    return {scheduler_->close_semaphore(memory, command.arg[2]), 0};
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
    scheduler_->remapped(*context);
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::queue_arm(const orr_mbox_message& command) {
    Result refusal;
    Queue* const queue = find_queue(command.arg[0], refusal);
    if (queue == nullptr) return refusal;
    if (queue->destroying) return {ORR_STATUS_BUSY, 0};
    scheduler_->arm(*queue, command.arg[1]);
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::queue_info(const orr_mbox_message& command, orr_mbox_message& reply) {
    Result refusal;
    Queue* const queue = find_queue(command.arg[0], refusal);
    if (queue == nullptr) return refusal;
    reply.arg[0] = scheduler_->state(*queue);
    reply.arg[1] = queue->retired;
    reply.arg[2] = queue->stopped ? queue->error.code : ORR_QERR_NONE;
    reply.arg[3] = queue->in_flight;
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::queue_set(const orr_mbox_message& command) {
    Result refusal;
    Queue* const queue = find_queue(command.arg[0], refusal);
    if (queue == nullptr) return refusal;
    if (command.arg[1] > ORR_PRIORITY_REALTIME) return {ORR_STATUS_INVALID, 1};
    if (!share_ok(command.arg[2])) return {ORR_STATUS_INVALID, 2};
    if (queue->destroying) return {ORR_STATUS_BUSY, 0};
    scheduler_->set_queue(*queue, static_cast<uint8_t>(command.arg[1]), weight_of(command.arg[2]),
                          static_cast<uint32_t>(high(command.arg[2])));
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::queue_stats(const orr_mbox_message& command, orr_mbox_message& reply) {
    Result refusal;
    const Queue* const queue = find_queue(command.arg[0], refusal);
    if (queue == nullptr) return refusal;
    const QueueStats& stats = queue->stats;
    reply.arg[0] = stats.used_ps[ORR_ENGINE_VECTOR - 1];
    reply.arg[1] = stats.used_ps[ORR_ENGINE_COPY - 1];
    reply.arg[2] = stats.finished;
    reply.arg[3] = stats.preempted;
    reply.arg[4] = stats.ready_ps;
    reply.arg[5] = stats.longest_ready_ps;
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::quota_set(const orr_mbox_message& command) {
    Result refusal;
    Context* const context = find_context(command.arg[0], refusal);
    if (context == nullptr) return refusal;
    if (!quota_ok(command.arg[1])) return {ORR_STATUS_INVALID, 1};
    scheduler_->set_quota(*context, static_cast<uint16_t>(low(command.arg[1])),
                          static_cast<uint32_t>(high(command.arg[1])));
    return {ORR_STATUS_OK, 0};
}

// All-ones: nobody is to look guilty.
Commands::Result Commands::crash(const orr_mbox_message& command) {
    Result refusal;
    if (command.arg[0] != ~uint64_t{0} && find_queue(command.arg[0], refusal) == nullptr) return refusal;
    const uint64_t number = command.arg[0] < ORR_FW_QUEUES ? command.arg[0] : ORR_FW_QUEUES;
    scheduler_->crash(static_cast<uint32_t>(number));
    return {ORR_STATUS_OK, 0};
}

Commands::Result Commands::set_name(const orr_mbox_message& command) {
    const uint64_t kind = high(command.arg[0]);
    if (kind != ORR_NAME_QUEUE && kind != ORR_NAME_CONTEXT) return {ORR_STATUS_INVALID, 0};
    Result refusal;
    if (kind == ORR_NAME_QUEUE) {
        Queue* const queue = find_queue(low(command.arg[0]), refusal);
        if (queue == nullptr) return refusal;
        copy_text(queue->name, &command.arg[1]);
        trace::name(*hal_, queue->number, ORR_NAME_QUEUE, queue->name);
    } else {
        Context* const context = find_context(low(command.arg[0]), refusal);
        if (context == nullptr) return refusal;
        copy_text(context->name, &command.arg[1]);
        trace::name(*hal_, context->number, ORR_NAME_CONTEXT, context->name);
    }
    return {ORR_STATUS_OK, 0};
}

}  // namespace orrery::fw
