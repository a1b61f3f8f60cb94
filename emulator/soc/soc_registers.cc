#include "emulator/soc/soc_registers.h"

#include <algorithm>
#include <utility>

#include "emulator/engines/save_area.h"
#include "emulator/soc/register_names.h"

namespace orrery::emu {

namespace {

constexpr std::uint64_t kNothing = ~std::uint64_t{0};
constexpr std::uint32_t kEngineFirst = SOC_ENGINE(0);
constexpr std::uint32_t kEngineEnd = SOC_ENGINE(SOC_ENGINES_MAX);
constexpr std::uint32_t kEngineStride = SOC_ENGINE(1) - SOC_ENGINE(0);
constexpr std::uint32_t kKindFirst = SOC_KIND(0);
constexpr std::uint32_t kKindEnd = SOC_KIND(SOC_KINDS_MAX);
constexpr std::uint32_t kKindStride = SOC_KIND(1) - SOC_KIND(0);
constexpr std::uint32_t kDescriptorBytes = 64;
constexpr std::uint32_t kSlotFirst = SOC_SLOT(0);
// A packet goes to its port over a path of 16 bytes.
constexpr ModelTime kLaunchCycles = 4;

}  // namespace

SocRegisters::SocRegisters(const Sku& sku, std::uint64_t uid, std::uint64_t vram_bytes, EventQueue& events,
                           Doorbells& doorbells, Mmu& mmu, Windows& windows, MemorySystem& memory,
                           Counters& counters, Errors& errors, SocEffects& effects)
    : sku_(sku),
      uid_(uid),
      vram_bytes_(vram_bytes),
      events_(events),
      doorbells_(doorbells),
      mmu_(mmu),
      windows_(windows),
      errors_(errors),
      effects_(effects),
      ports_(SOC_ENGINES_MAX),
      slots_(sku, events, windows, memory, counters, errors),
      mmu_result_(kNothing),
      sem_memory_(kNothing),
      completions_(kCompletions),
      launch_result_(kNothing) {}

void SocRegisters::restart() {
    boot_entry_ = boot_arg_ = 0;
    irq_enable_ = 0;
    db_page_ = db_slot_ = db_tag_ = 0;
    mmu_asid_ = mmu_arg_ = mmu_size_ = 0;
    mmu_result_ = sem_memory_ = launch_result_ = kNothing;
    mmu_fault_ = ORR_FAULT_NONE;
    sem_asid_ = sem_va_ = sem_status_ = 0;
    popped_ = {};
    slots_.reset();
}

void SocRegisters::reset() {
    restart();
    boot_count_ = 0;
    mailbox_ = false;
    completions_.clear();
    pokes_.clear();
    for (unsigned port = 0; poke_room_hook_ && port < Pokes::kLanes; ++port)
        poke_room_hook_(port);
    for (Port& port : ports_)
        port = {};
}

void SocRegisters::completed(const Completion& completion) {
    // start_engine() keeps room for one completion of every port.
    if (faults_ == nullptr || !faulty(completion)) completions_.push(completion);
}

// Whether a completion has been taken care of.
bool SocRegisters::faulty(const Completion& completion) {
    const Fault fault = faults_->at(FaultPoint::kDone, completion.port);
    switch (fault.action) {
        case FaultAction::kDrop:
            return true;
        case FaultAction::kDelay:
            faults_->later(fault.delay, [this, completion] { completions_.push(completion); });
            return true;
        case FaultAction::kDuplicate:
            completions_.push(completion);
            return false;
        case FaultAction::kFail: {
            Completion failed = completion;
            failed.status = ORR_DONE_FAULT;
            failed.fault = ORR_FAULT_PAGE_RANGE;
            failed.detail = 0;
            completions_.push(failed);
            return true;
        }
        default:
            return false;
    }
}

void SocRegisters::poked(std::uint64_t vram_offset, unsigned port) {
    if (!pokes_.push(port, vram_offset)) {
        errors_.report(ErrorKind::kUndefined, "a poke came for port {}, whose lane is full: lost", port);
    }
}

std::uint64_t SocRegisters::pop_poke() {
    unsigned freed = Pokes::kLanes;
    const std::uint64_t memory = pokes_.pop(freed);
    if (freed != Pokes::kLanes && poke_room_hook_) poke_room_hook_(freed);
    return memory;
}

std::uint64_t SocRegisters::pop_completion() {
    if (completions_.empty()) return kNothing;
    popped_ = completions_.pop();
    return std::uint64_t{popped_.port} << 32 | popped_.tag;
}

std::uint64_t SocRegisters::read(std::uint32_t offset, ModelTime& wait) {
    const std::uint64_t value = look_up(offset, wait);
    if (watch_.read(offset, value)) [[unlikely]] {
        if (const char* why = why_it_stays(offset)) {
            errors_.note(
                "the firmware has read {} (SoC offset {:#x}) {} times in a row, and it is {:#x} for good: {}",
                name_of_soc_register(offset), offset, watch_.row(), value, why);
        }
    }
    return value;
}

const char* SocRegisters::why_it_stays(std::uint32_t offset) const {
    constexpr const char* kOwn = "only the firmware's own stores to the registers around it change it";
    constexpr const char* kConstant = "it never changes while the core runs";
    if (offset >= kEngineFirst && offset < kEngineEnd) {
        const std::uint32_t number = (offset - kEngineFirst) / kEngineStride;
        const std::uint32_t reg = (offset - kEngineFirst) % kEngineStride;
        if (number >= engines_.size() || reg == SOC_ENGINE_KIND) return kConstant;
        const bool state = reg == SOC_ENGINE_BUSY || reg == SOC_ENGINE_ACTIVE || reg == SOC_ENGINE_USED_PS;
        if (!state) return kOwn;
        return engines_[number]->busy() ? nullptr : "the port is idle: only a start changes it";
    }
    if (offset >= kSlotFirst) return nullptr;
    if (offset >= kKindFirst && offset < kKindEnd) return kConstant;
    switch (offset) {
        case SOC_IRQ_PENDING:
        case SOC_DB_POP:
        case SOC_POKE_POP:
            return nullptr;
        case SOC_DONE_POP: {
            const bool any = std::ranges::any_of(engines_, [](const EnginePort* one) { return one->busy(); });
            return any ? nullptr : "no engine is busy, so nothing completes";
        }
        case SOC_BOOT_ENTRY:
        case SOC_BOOT_ARG:
        case SOC_UID:
        case SOC_CONFIG:
        case SOC_VRAM_SIZE:
        case SOC_SAVE_BYTES:
        case SOC_BOOT_COUNT:
            return kConstant;
        default:
            return kOwn;
    }
}

void SocRegisters::nothing_there(std::uint32_t offset, const char* access) {
    const std::uint64_t number = watch_.unknown(offset);
    errors_.guest_if(AccessWatch::shown(number),
                     "the firmware {} SoC offset {:#x}, where no such register is (nearest: {}); {} times",
                     access, offset, name_of_soc_register(offset), number);
}

std::uint64_t SocRegisters::look_up(std::uint32_t offset, ModelTime& wait) {
    if (offset >= kEngineFirst && offset < kEngineEnd) return read_engine(offset - kEngineFirst);
    if (offset >= kKindFirst && offset < kKindEnd) return read_kind(offset - kKindFirst);
    std::uint64_t value = 0;
    if (offset >= kSlotFirst && slots_.read(offset - kSlotFirst, value, wait)) return value;
    switch (offset) {
        case SOC_BOOT_ENTRY:
            return boot_entry_;
        case SOC_BOOT_ARG:
            return boot_arg_;
        case SOC_UID:
            return uid_;
        case SOC_CONFIG:
            return sku_.copy_engines | std::uint64_t{sku_.vector_ports} << 16 |
                   std::uint64_t{sku_.link_ports} << 32 | std::uint64_t{sku_.vector_cores} << 48;
        case SOC_VRAM_SIZE:
            return vram_bytes_;
        case SOC_SAVE_BYTES:
            return save_area_bytes(sku_.vector_cores, sku_.vector_vlen);
        case SOC_BOOT_COUNT:
            return boot_count_;
        case SOC_IRQ_PENDING:
            return pending();
        case SOC_IRQ_ENABLE:
            return irq_enable_;
        case SOC_DB_PAGE:
            return db_page_;
        case SOC_DB_SLOT:
            return db_slot_;
        case SOC_DB_TAG:
            return db_tag_;
        case SOC_DB_POP:
            return doorbells_.pop();
        case SOC_DB_VALUE:
            return doorbells_.value();
        case SOC_MMU_ASID:
            return mmu_asid_;
        case SOC_MMU_ARG:
            return mmu_arg_;
        case SOC_MMU_SIZE:
            return mmu_size_;
        case SOC_MMU_RESULT:
            return mmu_result_;
        case SOC_MMU_FAULT:
            return mmu_fault_;
        case SOC_WINDOW_FAULT:
            return windows_.fault();
        case SOC_WINDOW_FAULT_VA:
            return windows_.fault_address();
        case SOC_SEM_ASID:
            return sem_asid_;
        case SOC_SEM_VA:
            return sem_va_;
        case SOC_SEM_STATUS:
            return sem_status_;
        case SOC_SEM_MEMORY:
            return sem_memory_;
        case SOC_POKE_POP:
            return pop_poke();
        case SOC_DONE_POP:
            return pop_completion();
        case SOC_DONE_STATUS:
            return popped_.status;
        case SOC_DONE_FAULT:
            return popped_.fault;
        case SOC_DONE_DETAIL:
            return popped_.detail;
        case SOC_DONE_START_PS:
            return popped_.start_ps;
        case SOC_DONE_END_PS:
            return popped_.end_ps;
        case SOC_DONE_USED_PS:
            return popped_.used_ps;
        case SOC_DONE_ITEM:
            return popped_.item;
        case SOC_DONE_OTHER:
            return popped_.other;
        case SOC_LAUNCH_RESULT:
            return launch_result_;
        default:
            break;
    }
    nothing_there(offset, "read");
    return 0;
}

void SocRegisters::write(std::uint32_t offset, std::uint64_t value, ModelTime& wait) {
    watch_.other();
    if (offset >= kEngineFirst && offset < kEngineEnd)
        return write_engine(offset - kEngineFirst, value, wait);
    if (offset >= kSlotFirst && slots_.write(offset - kSlotFirst, value)) return;
    switch (offset) {
        case SOC_PROGRESS:
            effects_.progress(static_cast<std::uint32_t>(value));
            return;
        case SOC_HEARTBEAT:
            effects_.heartbeat(value);
            return;
        case SOC_HALT:
            effects_.halt(value);
            return;
        case SOC_HOST_IRQ:
            effects_.host_interrupt(value);
            return;
        case SOC_IRQ_ENABLE:
            irq_enable_ = value;
            return;
        case SOC_MBOX_ACK:
            mailbox_ = false;
            return;
        case SOC_DB_PAGE:
            db_page_ = value;
            return;
        case SOC_DB_SLOT:
            db_slot_ = value;
            return;
        case SOC_DB_TAG:
            db_tag_ = value & 0xffffffffu;
            return;
        case SOC_DB_CMD:
            doorbell_command(value);
            return;
        case SOC_DB_RING:
            if (value > 0xffffffffu || !doorbells_.ring(static_cast<std::uint32_t>(value))) {
                errors_.guest("the firmware rang doorbell tag {:#x}, which is not bound", value);
            }
            return;
        case SOC_MMU_ASID:
            mmu_asid_ = value;
            return;
        case SOC_MMU_ARG:
            mmu_arg_ = value;
            return;
        case SOC_MMU_SIZE:
            mmu_size_ = value;
            return;
        case SOC_MMU_CMD:
            mmu_command(value, wait);
            return;
        case SOC_WINDOW_FAULT:
            if (value == 0) {
                windows_.clear_fault();
                return;
            }
            break;
        case SOC_SEM_ASID:
            sem_asid_ = value;
            return;
        case SOC_SEM_VA:
            sem_va_ = value;
            return;
        case SOC_SEM_SIGNAL:
            return signal(value, wait);
        case SOC_SEM_CLOSE:
            sem_status_ = windows_.close(value);
            return;
        case SOC_SEM_LAUNCH:
            return launch_signal(value, wait);
        default:
            break;
    }
    nothing_there(offset, "wrote to");
}

void SocRegisters::doorbell_command(std::uint64_t command) {
    bool good = false;
    if (command == SOC_DB_BIND) {
        good = doorbells_.bind(db_page_, db_slot_, static_cast<std::uint32_t>(db_tag_));
    } else if (command == SOC_DB_UNBIND) {
        good = doorbells_.unbind(db_page_, db_slot_);
    }
    if (!good) {
        errors_.guest("doorbell command {} for page {}, slot {} cannot be done ({} bindings of {} in use)",
                      command, db_page_, db_slot_, doorbells_.bindings(), ORR_DB_BINDINGS);
    }
}

void SocRegisters::signal(std::uint64_t value, ModelTime& wait) {
    sem_memory_ = kNothing;
    if (sem_asid_ >= ORR_ASIDS) {
        sem_status_ = ORR_FAULT_NO_CONTEXT;
        return;
    }
    const Signalled done =
        windows_.signal(static_cast<std::uint32_t>(sem_asid_), sem_va_, value, events_.system_now());
    sem_status_ = done.fault;
    sem_memory_ = done.memory;
    wait += done.walk;
}

// Of the semaphore and the value in the packet that a ring slot shows.
void SocRegisters::launch_signal(std::uint64_t value, ModelTime& wait) {
    const std::uint64_t slot = value >> 32;
    sem_status_ = sem_memory_ = kNothing;
    wait += sku_.cycle_ps;
    const PacketWords* const packet = slots_.front(slot, wait);
    if (packet == nullptr) return;
    const auto& words = *packet;
    if (std::any_of(words.begin() + 3, words.end(), [](std::uint64_t word) { return word != 0; })) return;
    sem_asid_ = value & 0xffffffffu;
    sem_va_ = words[1];
    signal(words[2], wait);
    if (sem_status_ == ORR_FAULT_NONE) slots_.drop(slot);
}

void SocRegisters::translate(ModelTime& wait) {
    mmu_result_ = kNothing;
    mmu_fault_ = ORR_FAULT_NO_CONTEXT;
    if (mmu_asid_ >= ORR_ASIDS) return;
    const auto found = mmu_.translate(static_cast<std::uint32_t>(mmu_asid_), mmu_arg_, 1, Access::kLoad);
    mmu_fault_ = found ? ORR_FAULT_NONE : found.error().code;
    if (!found) return;
    mmu_result_ = memory_of(*found);
    wait += windows_.walk(static_cast<std::uint32_t>(mmu_asid_), mmu_arg_, found->huge);
}

void SocRegisters::mmu_command(std::uint64_t command, ModelTime& wait) {
    std::uint32_t fault = ORR_FAULT_NONE;
    switch (command) {
        case SOC_MMU_SET_ROOT:
            fault = mmu_.set_root(mmu_asid_, mmu_arg_);
            break;
        case SOC_MMU_CLEAR_ROOT:
            fault = mmu_.clear_root(mmu_asid_);
            break;
        case SOC_MMU_FLUSH_ASID:
            mmu_.flush_asid(mmu_asid_);
            break;
        case SOC_MMU_FLUSH_RANGE:
            mmu_.flush_range(mmu_asid_, mmu_arg_, mmu_size_);
            break;
        case SOC_MMU_TRANSLATE:
            return translate(wait);
        default:
            errors_.guest("the firmware gave the MMU command {}, which does not exist", command);
            return;
    }
    // Until every engine has answered.
    wait += sku_.mmu_invalidate_ps;
    if (fault != ORR_FAULT_NONE) {
        errors_.guest("MMU command {} for address space {} and root {:#x} failed with fault {}", command,
                      mmu_asid_, mmu_arg_, fault);
    }
}

std::uint64_t SocRegisters::read_kind(std::uint32_t offset) {
    const std::uint32_t reg = offset % kKindStride;
    EngineKind kind;
    std::uint64_t ports = 0;
    for (const EnginePort* const engine : engines_) {
        if (engine->kind() != offset / kKindStride) continue;
        kind = engine->properties();
        ++ports;
    }
    if (reg == SOC_KIND_PORTS) return ports;
    if (reg == SOC_KIND_UNITS) return kind.units;
    if (reg == SOC_KIND_DESC_BYTES) return ports == 0 ? 0 : kind.descriptor_bytes;
    if (reg == SOC_KIND_PREEMPT) return kind.preempt;
    nothing_there(kKindFirst + offset, "read");
    return 0;
}

std::uint64_t SocRegisters::read_engine(std::uint32_t offset) {
    const std::uint32_t number = offset / kEngineStride;
    const std::uint32_t reg = offset % kEngineStride;
    if (reg == SOC_ENGINE_KIND) return number < engines_.size() ? engines_[number]->kind() : 0;
    if (number < engines_.size()) {
        if (reg < SOC_ENGINE_DESC + kDescriptorBytes) return ports_[number].descriptor[reg / 8];
        if (reg == SOC_ENGINE_BUSY) return engines_[number]->busy() ? 1 : 0;
        if (reg == SOC_ENGINE_TAG) return ports_[number].tag;
        if (reg == SOC_ENGINE_USED_PS) return engines_[number]->used();
        if (reg == SOC_ENGINE_SAVE) return ports_[number].save;
        if (engines_[number]->properties().units != 0) {
            if (reg == SOC_ENGINE_PRIORITY) return ports_[number].priority;
            if (reg == SOC_ENGINE_WEIGHT) return ports_[number].weight;
            if (reg == SOC_ENGINE_ACTIVE) return engines_[number]->active();
        }
    }
    nothing_there(kEngineFirst + offset, "read");
    return 0;
}

void SocRegisters::write_engine(std::uint32_t offset, std::uint64_t value, ModelTime& wait) {
    const std::uint32_t number = offset / kEngineStride;
    const std::uint32_t reg = offset % kEngineStride;
    if (number < engines_.size()) {
        if (reg < SOC_ENGINE_DESC + kDescriptorBytes) {
            ports_[number].descriptor[reg / 8] = value;
            return;
        }
        if (reg == SOC_ENGINE_START) return start_engine(number, value, false);
        if (reg == SOC_ENGINE_RESUME) return start_engine(number, value, true);
        if (reg == SOC_ENGINE_LAUNCH) return launch_engine(number, value, wait);
        if (reg == SOC_ENGINE_PREEMPT) return preempt_engine(number, value);
        if (reg == SOC_ENGINE_ABORT) return engines_[number]->abort();
        if (reg == SOC_ENGINE_SAVE) {
            ports_[number].save = value;
            return;
        }
        if ((reg == SOC_ENGINE_PRIORITY || reg == SOC_ENGINE_WEIGHT) &&
            engines_[number]->properties().units != 0) {
            return share_engine(number, reg, value);
        }
    }
    nothing_there(kEngineFirst + offset, "wrote to");
}

void SocRegisters::share_engine(std::uint32_t number, std::uint32_t reg, std::uint64_t value) {
    constexpr std::uint64_t kMaxPriority = 3, kMaxWeight = 65535;
    if (reg == SOC_ENGINE_PRIORITY && value <= kMaxPriority) {
        ports_[number].priority = value;
        engines_[number]->set_priority(static_cast<std::uint32_t>(value));
    } else if (reg == SOC_ENGINE_WEIGHT && value >= 1 && value <= kMaxWeight) {
        ports_[number].weight = value;
        engines_[number]->set_weight(static_cast<std::uint32_t>(value));
    } else {
        errors_.guest("engine port {} was given a {} of {}: ignored", number,
                      reg == SOC_ENGINE_PRIORITY ? "priority" : "weight", value);
    }
}

void SocRegisters::preempt_engine(std::uint32_t number, std::uint64_t mode) {
    if (mode != SOC_PREEMPT_GROUP && mode != SOC_PREEMPT_NOW) {
        errors_.guest("engine port {} was to be preempted in the way {}, which does not exist: ignored",
                      number, mode);
        return;
    }
    const Preempt how = mode == SOC_PREEMPT_NOW ? Preempt::kNow : Preempt::kGroup;
    if (!engines_[number]->preempt(how, ports_[number].save)) {
        errors_.guest(
            "engine port {} was to be preempted with a save area at {:#x}: it must be 4 KiB aligned and lie "
            "in "
            "VRAM, with {} bytes; ignored",
            number, ports_[number].save, save_area_bytes(sku_.vector_cores, sku_.vector_vlen));
    }
}

// There is room for one completion of every port.
bool SocRegisters::completion_room(std::uint32_t number) {
    if (completions_.size() + SOC_ENGINES_MAX <= completions_.capacity()) return true;
    errors_.guest("engine port {} was started while {} completions wait unread: ignored", number,
                  completions_.size());
    return false;
}

// A descriptor of the written word 0 and the packet that a ring slot shows.
void SocRegisters::launch_engine(std::uint32_t number, std::uint64_t value, ModelTime& wait) {
    launch_result_ = kNothing;
    Port& port = ports_[number];
    EnginePort& engine = *engines_[number];
    const std::uint64_t slot = value >> 32;
    if (engine.busy()) {
        errors_.guest("engine port {} was launched while it is busy: ignored", number);
        return;
    }
    if (slot >= SOC_SLOTS) {
        errors_.guest("engine port {} was launched from ring slot {}, which does not exist: ignored", number,
                      slot);
        return;
    }
    if (!completion_room(number)) return;
    const PacketWords* const packet = slots_.front(slot, wait);
    wait += kLaunchCycles * sku_.cycle_ps;
    if (packet == nullptr) return;
    DescriptorWords descriptor = *packet;
    descriptor[0] = port.descriptor[0];
    const auto work = engine.work_of(descriptor);
    if (!work) return;
    slots_.drop(slot);
    port.descriptor = descriptor;
    port.tag = static_cast<std::uint32_t>(value);
    hand_over(number, static_cast<std::uint32_t>(value), false);
    launch_result_ = *work;
}

// What stands in the port's registers goes to its engine. false: it is busy.
bool SocRegisters::hand_over(std::uint32_t number, std::uint32_t tag, bool resume) {
    constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
    EnginePort& engine = *engines_[number];
    DescriptorWords descriptor = ports_[number].descriptor;
    std::uint64_t save = ports_[number].save;
    if (faults_ != nullptr) {
        const Fault fault = faults_->at(FaultPoint::kDispatch, number);
        if (fault.action == FaultAction::kDrop) return true;
        if (fault.action == FaultAction::kFail) {
            descriptor.fill(~std::uint64_t{0});
            save = kNowhere;
        } else if (fault.action == FaultAction::kCorrupt) {
            const std::uint64_t bit = Faults::bit_of(fault, descriptor.size() * 64);
            descriptor[bit / 64] ^= std::uint64_t{1} << bit % 64;
            save ^= std::uint64_t{1} << bit % 64;
        }
    }
    return resume ? engine.resume(save, tag) : engine.start(descriptor, tag);
}

void SocRegisters::start_engine(std::uint32_t number, std::uint64_t tag, bool resume) {
    if (!completion_room(number)) return;
    const auto low = static_cast<std::uint32_t>(tag);
    if (!hand_over(number, low, resume)) {
        errors_.guest("engine port {} was started while it is busy: ignored", number);
        return;
    }
    ports_[number].tag = low;
}

}  // namespace orrery::emu
