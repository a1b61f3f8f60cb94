#include "tests/unit/firmware/fake_soc.h"

#include <fmt/format.h>
#include <orrery/hw/doorbell.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "emulator/engines/descriptor.h"

namespace orrery::fw::test {
namespace {

constexpr std::uint64_t kPsPerAccess = 1000;
constexpr std::uint32_t kEngineBase = SOC_ENGINE(0);
constexpr std::uint32_t kEngineEnd = SOC_ENGINE(SOC_ENGINES_MAX);
constexpr std::uint32_t kSlotBase = SOC_SLOT(0);
constexpr std::uint32_t kSlotEnd = SOC_SLOT(SOC_SLOTS);

// Of a descriptor for Config::more_ports.
std::optional<std::uint64_t> more_work(const std::array<std::uint64_t, 8>& desc) {
    return desc[1] == 0 ? std::nullopt : std::optional(desc[1]);
}

}  // namespace

FakeSoc::FakeSoc(const Config& config)
    : config_(config), host_(kHostSize / 8), memory_(config.memory_bytes / 8) {
    slot_read_.fill(kEmpty);
    engines.resize(config.copy_engines + config.vector_ports);
    for (std::size_t n = 0; n < engines.size(); ++n)
        engines[n].kind = n < config.copy_engines ? ORR_ENGINE_COPY : ORR_ENGINE_VECTOR;
    for (const std::uint64_t kind : config.more_ports)
        engines.emplace_back().kind = kind;
}

void FakeSoc::count_access() {
    if (++accesses == crash_at) crash();
    time += kPsPerAccess;
}

void FakeSoc::crash() {
    if (on_crash) on_crash();
    throw CoreCrash{};
}

void FakeSoc::restart_core() {
    ++config_.boot_count;
    irq_enable = 0;
    timer = kEmpty;
    crash_at = kEmpty;
    window_fault_ = 0;
}

std::uint64_t FakeSoc::lines() const {
    return (rung_.empty() ? 0u : 1u << SOC_LINE_DOORBELL) | (mailbox_rung_ ? 1u << SOC_LINE_MAILBOX : 0u) |
           (done_.empty() ? 0u : 1u << SOC_LINE_DONE) | (pokes_.empty() ? 0u : 1u << SOC_LINE_POKE);
}

std::uint64_t FakeSoc::reg(std::uint32_t offset) {
    count_access();
    if (offset >= kEngineBase && offset < kEngineEnd) {
        const std::uint32_t port = (offset - kEngineBase) / 0x100;
        if (port >= engines.size()) return 0;
        if (offset % 0x100 == SOC_ENGINE_KIND) return engines[port].kind;
        const Engine& engine = engines[port];
        switch (offset % 0x100) {
            case SOC_ENGINE_BUSY:
                return engine.busy ? 1 : 0;
            case SOC_ENGINE_SAVE:
                return engine.save;
            case SOC_ENGINE_PRIORITY:
                return engine.priority;
            case SOC_ENGINE_WEIGHT:
                return engine.weight;
            case SOC_ENGINE_ACTIVE:
                return engine.busy ? engine.active : 0;
            case SOC_ENGINE_TAG:
                return engine.tag;
            case SOC_ENGINE_USED_PS:
                return engine.busy ? engine.used_ps(time) : 0;
            default:
                violation(fmt::format("read of engine register {:#x}", offset % 0x100));
                return 0;
        }
    }
    if (offset >= kSlotBase && offset < kSlotEnd) return slot_reg(offset);
    switch (offset) {
        case SOC_BOOT_ARG:
            return boot_arg;
        case SOC_VRAM_SIZE:
            return config_.memory_bytes;
        case SOC_KIND(ORR_ENGINE_VECTOR) + SOC_KIND_UNITS:
            return config_.tells_kinds ? config_.vector_cores : 0;
        case SOC_CONFIG:
            return std::uint64_t{config_.vector_cores} << 48;
        case SOC_SAVE_BYTES:
            return config_.save_bytes;
        case SOC_BOOT_COUNT:
            return config_.boot_count;
        case SOC_UID:
            return 0x1234;
        case SOC_MMU_RESULT:
            return mmu_result_;
        case SOC_MMU_FAULT:
            return mmu_fault_;
        case SOC_SEM_MEMORY:
            return sem_memory_;
        case SOC_IRQ_PENDING:
            return lines();
        case SOC_TIME:
        case SOC_SYSTEM_TIME:
            return time;
        case SOC_DB_POP: {
            if (rung_.empty()) return kEmpty;
            const auto where = rung_.front();
            rung_.pop_front();
            db_value_ = doorbells_[where];
            return bindings.at(where) | (rung_.empty() ? 0 : SOC_DB_MORE);
        }
        case SOC_DB_VALUE:
            return db_value_;
        case SOC_WINDOW_FAULT:
            return window_fault_;
        case SOC_WINDOW_FAULT_VA:
            return window_fault_va_;
        case SOC_SEM_STATUS:
            return sem_status_;
        case SOC_POKE_POP: {
            if (pokes_.empty()) return kEmpty;
            const std::uint64_t offset_of = pokes_.front();
            pokes_.pop_front();
            return offset_of;
        }
        case SOC_DONE_POP:
            if (done_.empty()) return kEmpty;
            latched_ = done_.front();
            done_.pop_front();
            return latched_.popped;
        case SOC_DONE_STATUS:
            return latched_.status;
        case SOC_DONE_START_PS:
            return latched_.start_ps;
        case SOC_DONE_END_PS:
            return latched_.end_ps;
        case SOC_DONE_USED_PS:
            return latched_.used_ps;
        case SOC_LAUNCH_RESULT:
            return launch_result_;
        case SOC_DONE_FAULT:
            return latched_.fault;
        case SOC_DONE_DETAIL:
            return latched_.detail;
        case SOC_DONE_ITEM:
            return latched_.detail + 1;
        case SOC_DONE_OTHER:
            return latched_.detail + 2;
        default:
            violation(fmt::format("read of register {:#x}", offset));
            return 0;
    }
}

void FakeSoc::set_reg(std::uint32_t offset, std::uint64_t value) {
    if (offset == SOC_TRACE) return trace(value);
    if (offset >= SOC_ACTIVITY(0) && offset < SOC_ACTIVITY(ORR_ACTIVITIES)) return;
    count_access();
    if (offset >= kEngineBase && offset < kEngineEnd) {
        set_engine_reg(offset, value);
        return;
    }
    if (offset >= kSlotBase && offset < kSlotEnd) return set_slot_reg(offset, value);
    switch (offset) {
        case SOC_PROGRESS:
            progress = value;
            break;
        case SOC_HEARTBEAT:
            if (value == heartbeat) violation("heartbeat written without an advance");
            heartbeat = value;
            break;
        case SOC_HALT:
            halt = value;
            break;
        case SOC_IRQ_ENABLE:
            irq_enable = value;
            break;
        case SOC_MBOX_ACK:
            mailbox_rung_ = false;
            break;
        case SOC_TIMER:
            timer = value;
            break;
        case SOC_HOST_IRQ:
            if (value < ORR_IRQ_VECTORS)
                ++host_irqs[value];
            else
                violation(fmt::format("host interrupt {}", value));
            break;
        case SOC_DB_CMD:
            doorbell_command(value);
            break;
        case SOC_MMU_CMD:
            mmu_command(value);
            break;
        case SOC_WINDOW_FAULT:
            window_fault_ = 0;
            break;
        case SOC_SEM_SIGNAL:
            if (busy_signals != 0) {
                --busy_signals;
                sem_status_ = ORR_FAULT_PEER_BUSY;
                break;
            }
            signal(value);
            break;
        case SOC_SEM_LAUNCH:
            launch_signal(value);
            break;
        case SOC_SEM_CLOSE:
            close(value);
            break;
        case SOC_DB_PAGE:
        case SOC_DB_SLOT:
        case SOC_DB_TAG:
        case SOC_MMU_ASID:
        case SOC_MMU_ARG:
        case SOC_MMU_SIZE:
        case SOC_SEM_ASID:
        case SOC_SEM_VA:
            regs_[offset] = value;
            break;
        default:
            violation(fmt::format("write of register {:#x}", offset));
    }
}

void FakeSoc::set_engine_reg(std::uint32_t offset, std::uint64_t value) {
    const std::uint32_t port = (offset - kEngineBase) / 0x100;
    const std::uint32_t at = offset % 0x100;
    if (port >= engines.size()) {
        violation(fmt::format("write to port {}", port));
        return;
    }
    Engine& engine = engines[port];
    if (at < SOC_ENGINE_START) {
        engine.desc[at / 8] = value;
    } else if (at == SOC_ENGINE_START) {
        start(port, value);
    } else if (at == SOC_ENGINE_LAUNCH) {
        launch(port, value);
    } else if (at == SOC_ENGINE_ABORT) {
        engine.abort_wanted = engine.busy;
        if (engine.busy && config_.abort_at_once) finish(port, ORR_DONE_ABORTED);
    } else if (at == SOC_ENGINE_SAVE) {
        if (value % ORR_PAGE_SIZE != 0 || value + config_.save_bytes > config_.memory_bytes)
            violation(fmt::format("save area at {:#x}", value));
        if (engine.busy && engine.preempt != 0) violation("save area changed while it is being written");
        engine.save = value;
    } else if (at == SOC_ENGINE_PREEMPT) {
        if (value != SOC_PREEMPT_GROUP && value != SOC_PREEMPT_NOW) violation("preemption of no kind");
        if (!engine.busy) return;
        if (engine.save == kEmpty) violation(fmt::format("preemption of port {} without a save area", port));
        engine.preempt = value;
        if (config_.preempt_at_once && (value == SOC_PREEMPT_NOW || engine.kind != ORR_ENGINE_VECTOR))
            preempt(port);
    } else if (at == SOC_ENGINE_RESUME) {
        resume(port, value);
    } else if (at == SOC_ENGINE_PRIORITY && engine.kind == ORR_ENGINE_VECTOR) {
        if (value > 3) violation(fmt::format("engine priority {}", value));
        engine.priority = value;
    } else if (at == SOC_ENGINE_WEIGHT && engine.kind == ORR_ENGINE_VECTOR) {
        if (value == 0 || value > 65535) violation(fmt::format("engine weight {}", value));
        engine.weight = value;
    } else {
        violation(fmt::format("write of engine register {:#x}", at));
    }
}

void FakeSoc::start(std::uint32_t port, std::uint64_t tag) {
    Engine& engine = engines[port];
    if (engine.busy) {
        violation(fmt::format("start of busy port {}", port));
        return;
    }
    const auto op = static_cast<std::uint16_t>(engine.desc[0]);
    const auto asid = static_cast<std::uint32_t>(engine.desc[0] >> 32);
    const bool kernel = op == ORR_DESC_KERNEL;
    if (engine.kind <= ORR_ENGINE_VECTOR && kernel != (engine.kind == ORR_ENGINE_VECTOR))
        violation(fmt::format("op {} on port {}", op, port));
    if (!has_root(asid)) violation(fmt::format("descriptor for context {} that has no root", asid));
    engine.tag = static_cast<std::uint32_t>(tag);
    engine.busy = true;
    engine.abort_wanted = false;
    engine.resumed = false;
    engine.preempt = 0;
    engine.used = kEmpty;
    engine.start_ps = time;
    if (on_start) on_start(port, engine);
}

void FakeSoc::launch(std::uint32_t port, std::uint64_t value) {
    launch_result_ = kEmpty;
    const auto n = static_cast<std::uint32_t>(value >> 32);
    if (n >= SOC_SLOTS || engines[port].busy) {
        violation(fmt::format("launch of port {} from slot {}", port, n));
        return;
    }
    const bool all_there = read_slot(n);
    if (!all_there || slot_fault_[n] != 0) return;
    std::array<std::uint64_t, 8> desc = slot_packet_[n];
    desc[0] = engines[port].desc[0];
    const auto kind = static_cast<std::uint32_t>(engines[port].kind);
    const auto work =
        kind > ORR_ENGINE_VECTOR ? more_work(desc) : emu::work_of(desc, kind, config_.vector_cores);
    if (!work) return;
    engines[port].desc = desc;
    launch_result_ = *work;
    ++slots[n].next;
    slot_read_[n] = kEmpty;
    start(port, value & 0xffffffff);
}

void FakeSoc::launch_signal(std::uint64_t value) {
    sem_status_ = sem_memory_ = kEmpty;
    const auto n = static_cast<std::uint32_t>(value >> 32);
    if (n >= SOC_SLOTS) {
        violation(fmt::format("signal from slot {}", n));
        return;
    }
    const bool all_there = read_slot(n);
    if (!all_there || slot_fault_[n] != 0) return;
    const std::array<std::uint64_t, 8> packet = slot_packet_[n];
    if (std::any_of(packet.begin() + 3, packet.end(), [](std::uint64_t word) { return word != 0; })) return;
    if (busy_signals != 0) {
        --busy_signals;
        sem_status_ = ORR_FAULT_PEER_BUSY;
        return;
    }
    regs_[SOC_SEM_ASID] = value & 0xffffffff;
    regs_[SOC_SEM_VA] = packet[1];
    signal(packet[2]);
    if (sem_status_ != ORR_FAULT_NONE) return;
    ++slots[n].next;
    slot_read_[n] = kEmpty;
}

void FakeSoc::resume(std::uint32_t port, std::uint64_t tag) {
    Engine& engine = engines[port];
    const auto found = saved.find(engine.save);
    if (engine.busy || found == saved.end() || found->second.kind != engine.kind) {
        violation(fmt::format("resume on port {} of what is not there", port));
        return;
    }
    engine.desc = found->second.desc;
    engine.tag = static_cast<std::uint32_t>(tag);
    engine.busy = engine.resumed = true;
    engine.abort_wanted = false;
    engine.preempt = 0;
    engine.used = kEmpty;
    engine.start_ps = time;
    saved.erase(found);
    if (on_start) on_start(port, engine);
}

void FakeSoc::preempt(std::uint32_t port) {
    Engine& engine = engines.at(port);
    if (!engine.busy || engine.preempt == 0) return;
    saved[engine.save] = engine;
    finish(port, ORR_DONE_PREEMPTED, 0, config_.save_bytes);
}

void FakeSoc::finish(std::uint32_t port, std::uint64_t status, std::uint64_t fault, std::uint64_t detail) {
    Engine& engine = engines.at(port);
    if (!engine.busy) return;
    engine.busy = false;
    done_.push_back({std::uint64_t{port} << 32 | engine.tag, status, fault, detail, engine.start_ps, time,
                     engine.used_ps(time)});
}

std::vector<std::uint32_t> FakeSoc::busy_ports() const {
    std::vector<std::uint32_t> ports;
    for (std::uint32_t n = 0; n < engines.size(); ++n) {
        if (engines[n].busy) ports.push_back(n);
    }
    return ports;
}

void FakeSoc::doorbell_command(std::uint64_t command) {
    const std::pair where{regs_[SOC_DB_PAGE], regs_[SOC_DB_SLOT]};
    if (where.first >= ORR_DB_PAGES || where.second >= ORR_DB_SLOTS) violation("doorbell outside the pages");
    std::erase(rung_, where);
    if (command == SOC_DB_BIND) {
        if (bindings.contains(where)) violation("doorbell bound twice");
        bindings[where] = static_cast<std::uint32_t>(regs_[SOC_DB_TAG]);
    } else if (bindings.erase(where) == 0) {
        violation("doorbell unbound that was not bound");
    }
}

void FakeSoc::ring(std::uint32_t page, std::uint32_t slot, std::uint64_t value) {
    const std::pair where{std::uint64_t{page}, std::uint64_t{slot}};
    doorbells_[where] = value;
    if (bindings.contains(where) && std::ranges::find(rung_, where) == rung_.end()) rung_.push_back(where);
}

std::uint64_t FakeSoc::slot_reg(std::uint32_t offset) {
    const std::uint32_t n = (offset - kSlotBase) / 0x200;
    const std::uint32_t at = offset % 0x200;
    Slot& slot = slots[n];
    if (at >= SOC_SLOT_PACKET + 64) {
        return at == SOC_SLOT_RING   ? slot.ring
               : at == SOC_SLOT_MASK ? slot.mask
               : at == SOC_SLOT_NEXT ? slot.next
                                     : slot.limit;
    }
    if (!read_slot(n)) return 0;
    if (at == SOC_SLOT_PACKET && slot_fault_[n] != 0)
        window_fault(slot_fault_[n], slot.ring + (slot.next & slot.mask) * 64);
    return slot_packet_[n][at / 8];
}

// The packet that a slot shows, into slot_packet_. False: none.
bool FakeSoc::read_slot(std::uint32_t n) {
    const Slot& slot = slots[n];
    if (slot.next >= slot.limit) {
        violation(fmt::format("read of slot {} beyond its limit", n));
        return false;
    }
    if (slot_read_[n] != slot.next) {
        slot_read_[n] = slot.next;
        slot_packet_[n] = {};
        slot_fault_[n] = 0;
        const std::uint64_t window = slot.ring + (slot.next & slot.mask) * 64;
        for (std::uint64_t word = 0; word < 8; ++word) {
            std::uint64_t fault = ORR_FAULT_NONE;
            const auto asid = static_cast<std::uint32_t>(window >> 48 & 0x3fff);
            const std::uint64_t* const from =
                translate(asid, (window & ((std::uint64_t{1} << 48) - 1)) + 8 * word, false, fault);
            if (from != nullptr) slot_packet_[n][word] = *from;
            if (fault != ORR_FAULT_NONE) slot_fault_[n] = fault;
        }
        if (slot_fault_[n] != 0) slot_packet_[n] = {};
    }
    return true;
}

void FakeSoc::set_slot_reg(std::uint32_t offset, std::uint64_t value) {
    const std::uint32_t n = (offset - kSlotBase) / 0x200;
    Slot& slot = slots[n];
    switch (offset % 0x200) {
        case SOC_SLOT_RING:
            slot.ring = value;
            slot.next = slot.limit = 0;
            slot_read_[n] = kEmpty;
            break;
        case SOC_SLOT_MASK:
            slot.mask = value;
            break;
        case SOC_SLOT_NEXT:
            slot.next = value;
            slot_read_[n] = kEmpty;
            break;
        case SOC_SLOT_LIMIT:
            if (value < slot.limit) violation(fmt::format("limit of slot {} lowered", n));
            slot.limit = value;
            break;
        default:
            violation(fmt::format("write of slot register {:#x}", offset % 0x200));
    }
}

void FakeSoc::signal(std::uint64_t value) {
    const auto asid = static_cast<std::uint32_t>(regs_[SOC_SEM_ASID]);
    const std::uint64_t va = regs_[SOC_SEM_VA];
    sem_memory_ = kEmpty;
    sem_status_ = va % 16 != 0 ? ORR_FAULT_MISALIGNED : ORR_FAULT_NONE;
    if (sem_status_ != ORR_FAULT_NONE) return;
    if (const auto peer = peers_.find({asid, va / ORR_PAGE_SIZE}); peer != peers_.end()) {
        peer->second(va % ORR_PAGE_SIZE, value);
        return;
    }
    std::uint64_t* const word = translate(asid, va, true, sem_status_);
    if (word == nullptr) return;
    sem_memory_ = ORR_VRAM_WINDOW + static_cast<std::uint64_t>(word - memory_.data()) * 8;
    if (value > word[0] && (word[0] & ORR_SEM_FAILED) == 0) {
        word[1] = (word[1] & ORR_SEM_CLOSED) | time;
        word[0] = value;
    }
    if (on_signal) on_signal(asid, va, value);
}

}  // namespace orrery::fw::test
