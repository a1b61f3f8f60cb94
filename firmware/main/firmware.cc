// SPDX-License-Identifier: MIT
#include "firmware/main/firmware.h"

#include <orrery/fw/boot_block.h>
#include <orrery/hw/bar0.h>

#include "firmware/sched/recover/restart.h"
#include "firmware/version.h"

namespace orrery::fw {
namespace {

constexpr uint64_t kAllLines =
    1u << SOC_LINE_DOORBELL | 1u << SOC_LINE_MAILBOX | 1u << SOC_LINE_DONE | 1u << SOC_LINE_POKE;

// The host does not ring when it has made room in a full message ring: look again after this time, then after
// twice that, and so on.
constexpr uint64_t kFirstRoomWaitPs = 10 * kPsPerUs;
constexpr uint64_t kLastRoomWaitPs = 10'000 * kPsPerUs;

constexpr uint32_t kTurnsPerPass = 8;

// A bus address that the firmware can use: named, aligned, and inside the host window.
bool usable(uint64_t bus, uint64_t alignment) {
    return bus != 0 && bus % alignment == 0 && bus >> 63 == 0;
}

// Tells the driver who we are. Also when its major is not ours, so that it can say what it found.
void answer(Hal& hal, uint64_t block, const char* build_id) {
    orr_boot_block ours;
    constexpr size_t kFirst = offsetof(orr_boot_block, fw_magic);
    constexpr size_t kWords = (offsetof(orr_boot_block, reserved3) - kFirst) / 8;
    uint64_t words[kWords];

    __builtin_memset(&ours, 0, offsetof(orr_boot_block, reserved3));
    ours.fw_magic = ORR_BB_FW_MAGIC;
    ours.fw_abi = ORR_FW_ABI;
    ours.fw_features = 0;
    ours.fw_version = kFirmwareVersion;
    ours.max_queues = ORR_FW_QUEUES;
    ours.max_contexts = ORR_FW_CONTEXTS;
    ours.max_ring_entries = ORR_RING_MAX_ENTRIES;
    for (size_t i = 0; i + 1 < sizeof(ours.build_id) && build_id[i] != '\0'; ++i)
        ours.build_id[i] = static_cast<uint8_t>(build_id[i]);
    __builtin_memcpy(words, &ours.fw_magic, sizeof(words));
    store_words(hal, block + kFirst, words, kWords);
}

// Areas that are not wholly in VRAM are none: then nothing is preempted inside a dispatch.
Scheduler::SaveAreas save_areas(Hal& hal, const orr_boot_block& host) {
    if (host.save_areas == 0 || host.save_base % ORR_PAGE_SIZE != 0) return {0, 0};
    const uint64_t vram = hal.reg(SOC_VRAM_SIZE);
    const uint64_t bytes = hal.reg(SOC_SAVE_BYTES);
    if (bytes == 0 || host.save_base >= vram || host.save_areas > (vram - host.save_base) / bytes)
        return {0, 0};
    return {host.save_base, host.save_areas};
}

}  // namespace

bool Firmware::start(Hal& hal, Tables& tables, const char* build_id) {
    hal_ = &hal;
    hal.set_reg(SOC_PROGRESS, ORR_BB_STEP_START);
    alarm_.init(hal);
    if (const uint32_t failure = handshake(tables, build_id); failure != 0) {
        hal.set_reg(SOC_PROGRESS, ORR_PROGRESS_FAILED | failure);
        return false;
    }
    inspect_.init(tables, scheduler_.ports());
    commands_.init(hal, mailbox_, scheduler_);
    take_over(tables, layout_of(build_id));
    hal.set_reg(SOC_IRQ_ENABLE, kAllLines);
    hal.set_reg(SOC_HEARTBEAT, persist_->heartbeat = heartbeat_ = heartbeat_base_);
    hal.set_reg(SOC_PROGRESS, ORR_PROGRESS_READY | ORR_BB_STEP_RINGS);
    return true;
}

// Begins anew, or where the last run was.
void Firmware::take_over(Tables& tables, uint64_t layout) {
    persist_ = &tables.header;
    const bool first = hal_->reg(SOC_BOOT_COUNT) <= 1;
    const bool warm = !first && survived(tables.header, layout);
    const uint32_t guilty =
        warm && tables.header.working - 1u < ORR_FW_QUEUES ? tables.header.working - 1u : ORR_TRACE_NONE;
    const uint32_t kind = warm ? ORR_BB_START_WARM : ORR_BB_START_COLD;
    trace::start(*hal_, inspect_.address(), kind, guilty);
    uint32_t resumed = 0;
    if (warm) {
        heartbeat_base_ = tables.header.heartbeat + 1;
        resumed = scheduler_.warm_start(tables);
    } else {
        heartbeat_base_ = 1;
        scheduler_.cold_start(tables, !first);
        tables.header = {};
    }
    tables.header.trap_cause = tables.header.trap_pc = 0;
    tables.header.layout = layout;
    tables.header.magic = kPersistMagic;
    hal_->store(block_ + offsetof(orr_boot_block, start_kind), kind | uint64_t{resumed} << 32);
    irq_.flush(*hal_);
}

uint32_t Firmware::handshake(Tables& tables, const char* build_id) {
    const uint64_t bus = hal_->reg(SOC_BOOT_ARG);
    if (!usable(bus, ORR_PAGE_SIZE)) return ORR_BB_FAIL_READ;
    const uint64_t block = ORR_HOST_WINDOW(bus);
    block_ = block;
    orr_boot_block host;
    constexpr size_t kHostBytes = offsetof(orr_boot_block, fw_magic);
    uint64_t words[kHostBytes / 8];
    load_words(*hal_, block, words, kHostBytes / 8);
    if (take_window_fault(*hal_)) return ORR_BB_FAIL_READ;
    __builtin_memcpy(static_cast<void*>(&host), words, kHostBytes);
    // A page that does not say that it is a boot block is not written to.
    if (host.host_magic != ORR_BB_HOST_MAGIC) return ORR_BB_FAIL_MAGIC;
    answer(*hal_, block, build_id);
    if (take_window_fault(*hal_)) return ORR_BB_FAIL_READ;
    if (host.host_abi >> 16 != ORR_FW_ABI_MAJOR) return ORR_BB_FAIL_ABI;
    hal_->set_reg(SOC_PROGRESS, ORR_BB_STEP_BOOT_BLOCK);

    if (!usable(host.command_ring, 64) || !usable(host.message_ring, 64) || !usable(host.queue_status, 64))
        return ORR_BB_FAIL_RINGS;
    const uint64_t status = ORR_HOST_WINDOW(host.queue_status);
    static_cast<void>(hal_->load(status));
    static_cast<void>(hal_->load(status + ORR_FW_QUEUES * sizeof(orr_queue_status) - 8));
    uint64_t usage = 0;
    if (host.queue_usage != 0) {
        if (!usable(host.queue_usage, 64)) return ORR_BB_FAIL_RINGS;
        usage = ORR_HOST_WINDOW(host.queue_usage);
        static_cast<void>(hal_->load(usage));
        static_cast<void>(hal_->load(usage + ORR_FW_QUEUES * sizeof(orr_queue_usage) - 8));
    }
    if (!mailbox_.init(*hal_, irq_, host.command_ring, host.message_ring)) return ORR_BB_FAIL_RINGS;
    scheduler_.init(*hal_, irq_, alarm_, tables, {status, usage}, save_areas(*hal_, host));
    hal_->set_reg(SOC_PROGRESS, ORR_BB_STEP_RINGS);
    return 0;
}

// What seldom asks for attention. True: the mailbox is to be served.
[[gnu::noinline]] bool Firmware::take_events(uint64_t lines) {
    if ((lines & 1u << SOC_LINE_POKE) != 0) {
        hal_->activity(ORR_ACTIVITY_LINKS);
        static_cast<void>(scheduler_.drain_remote_signals());
    }
    hal_->activity(ORR_ACTIVITY_OTHER);
    bool mail = false;
    if ((lines & 1u << SOC_LINE_MAILBOX) != 0) {
        hal_->set_reg(SOC_MBOX_ACK, 1);
        mail = true;
    }
    // Who lacks a core does not wait for those who would like to start.
    if (hal_->timer_pending()) {
        const uint64_t now = hal_->reg(SOC_TIME);
        scheduler_.on_timer(now);
        if (alarm_.at(Alarm::kMailbox) <= now) {
            alarm_.set(*hal_, Alarm::kMailbox, kNever);
            mail = true;
        }
    }
    if (scheduler_.gangs_due()) scheduler_.serve_gangs();
    if (scheduler_.waits_unsettled()) static_cast<void>(scheduler_.settle_waits());
    return mail;
}

bool Firmware::pass() {
    if (halted_) return false;
    const uint64_t lines = hal_->reg(SOC_IRQ_PENDING);
    if (lines != 1u << SOC_LINE_DOORBELL || scheduler_.has_ready() || scheduler_.unsettled() ||
        hal_->timer_pending())
        return take_turns(lines);
    // One doorbell and nothing else is what a card with little to do sees.
    hal_->activity(ORR_ACTIVITY_PACKETS);
    scheduler_.answer_doorbell();
    return finish(false, false);
}

[[gnu::noinline]] bool Firmware::take_turns(uint64_t lines) {
    constexpr uint64_t kUsual = 1u << SOC_LINE_DONE | 1u << SOC_LINE_DOORBELL;
    const bool bell = (lines & 1u << SOC_LINE_MAILBOX) != 0;
    bool mail = false;
    // Several turns in one pass, as long as nothing unusual asks for attention.
    for (uint32_t n = 0;;) {
        if ((lines & 1u << SOC_LINE_DONE) != 0) {
            hal_->activity(ORR_ACTIVITY_COMPLETIONS);
            ORRERY_FW_INLINE static_cast<void>(scheduler_.drain_completions());
        }
        if ((lines & 1u << SOC_LINE_DOORBELL) != 0) {
            hal_->activity(ORR_ACTIVITY_PACKETS);
            static_cast<void>(scheduler_.drain_doorbells());
        }
        if (n == 0 && ((lines & ~kUsual) != 0 || scheduler_.unsettled() || hal_->timer_pending()))
            [[unlikely]]
            mail = take_events(lines);
        if (!scheduler_.has_ready()) break;
        ORRERY_FW_INLINE scheduler_.turn();
        if (++n == kTurnsPerPass || scheduler_.unsettled() || hal_->timer_pending()) break;
        const uint64_t more = hal_->reg(SOC_IRQ_PENDING);
        if ((more & ~kUsual) != 0) break;
        lines = more;
    }
    return finish(mail, bell);
}

// What may be left of events shows in interrupt lines and the timer: with these the core does not sleep.
[[gnu::always_inline]] inline bool Firmware::finish(bool mail, bool bell) {
    bool again = false;
    if (scheduler_.wants_deadlocks()) again = scheduler_.look_for_deadlocks();
    if (mail || commands_.more() || scheduler_.has_message()) [[unlikely]]
        again |= serve_mailbox(bell);
    if (scheduler_.fatal() != kHaltNone || mailbox_.fatal() != kHaltNone) [[unlikely]]
        halt();
    irq_.flush(*hal_);
    const uint64_t progress = scheduler_.progress() + commands_.served() + heartbeat_base_;
    if (progress != heartbeat_) {
        heartbeat_ = progress;
        persist_->heartbeat = progress;
        hal_->set_reg(SOC_HEARTBEAT, heartbeat_);
    }
    if (scheduler_.has_ready() || scheduler_.unsettled()) return true;
    scheduler_.rest_turns();
    return again;
}

// `bell`: it has rung. True: there is more to be done.
[[gnu::noinline]] bool Firmware::serve_mailbox(bool bell) {
    hal_->activity(ORR_ACTIVITY_MAILBOX);
    // While the message ring is full only the alarm and the mailbox's own bell are reasons to try again.
    if (!commands_.blocked() || alarm_.at(Alarm::kMailbox) == kNever || bell) {
        static_cast<void>(commands_.service());
        wait_for_room(commands_.blocked());
    }
    return (commands_.more() || scheduler_.has_message()) && !commands_.blocked();
}

void Firmware::wait_for_room(bool blocked) {
    if (!blocked) {
        room_wait_ps_ = kFirstRoomWaitPs;
        if (alarm_.at(Alarm::kMailbox) != kNever) alarm_.set(*hal_, Alarm::kMailbox, kNever);
        return;
    }
    alarm_.set(*hal_, Alarm::kMailbox, hal_->reg(SOC_TIME) + room_wait_ps_);
    if (room_wait_ps_ < kLastRoomWaitPs) room_wait_ps_ *= 2;
}

[[gnu::noinline]] void Firmware::halt() {
    halted_ = true;
    hal_->set_reg(SOC_HALT, scheduler_.fatal() != kHaltNone ? scheduler_.fatal() : mailbox_.fatal());
}

}  // namespace orrery::fw
