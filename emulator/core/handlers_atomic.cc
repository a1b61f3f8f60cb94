// LR, SC, AMOs and fences. The memory may be shared with other harts, the host and its guests: to memory
// these are host atomics, sequentially consistent, which is more than any aq and rl bits ask for.
#include "emulator/core/amo.h"
#include "emulator/core/decode.h"
#include "emulator/core/handler.h"
#include "emulator/core/host_fp.h"

namespace orrery::emu {
namespace {

template <class T>
std::uint64_t extend(T value) {
    return sizeof(T) == 4 ? sext32(value) : std::uint64_t{value};
}

// One compare-and-swap on whatever is at `va`. `host` is its memory, or nullptr for MMIO. False: raised.
template <class T>
bool exchange(Core* core, std::uint64_t va, std::uint8_t* host, T expected, T desired, T& observed) {
    if (host != nullptr) {
        using Memory [[gnu::may_alias]] = T;
        observed = expected;
        const bool stored = __atomic_compare_exchange_n(reinterpret_cast<Memory*>(host), &observed, desired,
                                                        false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        if (stored && holds_code(core, host, sizeof(T))) forget_code(core, host, sizeof(T));
        return true;
    }
    const HostFpPause pause(core);
    std::uint64_t wide = 0;
    if (!core->bus->compare_exchange(va, sizeof(T), expected, desired, wide)) {
        core->raise(Cause::kStoreAccess, va);
        return false;
    }
    observed = static_cast<T>(wide);
    return true;
}

void tell_atomic(Core* core, const Op* op, unsigned size, AccessKind kind) {
    tell_access(core, {.va = core->x[op->rs1],
                       .bytes = size,
                       .kind = kind,
                       .acquires = (op->imm & 2) != 0,
                       .releases = (op->imm & 1) != 0,
                       .element = size});
}

void tell_acquire(Core* core, const Op* op) {
    if (core->config.tells_acquires && (op->imm & 2) != 0) core->bus->acquired();
}

// False: the stores before it are not where they must be first.
bool may_release(Core* core, const Op* op) {
    return !core->config.tells_acquires || (op->imm & 1) == 0 || core->bus->releases();
}

// A device may never let a compare-and-swap succeed, by changing under it; the guest then gets a fault.
constexpr unsigned kMmioTries = 64;

template <class T>
bool amo(Core* core, const Op* op, T& old) {
    const std::uint64_t va = core->x[op->rs1];
    const auto operand = static_cast<T>(core->x[op->rs2]);
    const auto function = static_cast<AmoFunction>(op->aux);
    // One that acquires or releases has to be done in its place among others.
    if (core->overlay != nullptr && op->rd == kDumpRegister && (op->imm & 3) == 0 &&
        posted_ahead(core, va, sizeof(T), function, operand))
        return true;
    bool mmio = false;
    std::uint8_t* host = atomic_host(core, va, sizeof(T), false, mmio);
    if (host == nullptr && !mmio) return false;
    if (mmio) {
        const HostFpPause pause(core);
        std::uint64_t wide = 0;
        if (const auto done = core->bus->amo(va, sizeof(T), function, operand, wide)) {
            old = static_cast<T>(wide);
            if (!*done) core->raise(Cause::kStoreAccess, va);
            return *done;
        }
    }
    T expected = 0;
    for (unsigned tries = 0; !mmio || tries < kMmioTries; ++tries) {
        const T desired = apply(function, expected, operand);
        if (!exchange<T>(core, va, host, expected, desired, old)) return false;
        if (old == expected) {
            if (!mmio) tell_atomic(core, op, sizeof(T), AccessKind::kAtomic);
            return true;
        }
        expected = old;
    }
    core->raise(Cause::kStoreAccess, va);
    return false;
}

template <class T, unsigned kLength>
Next op_amo(Core* core, Op* op, Left left) {
    core->publish(op, left);
    T old = 0;
    if (!may_release(core, op)) ORR_STOP();
    if (!amo<T>(core, op, old)) ORR_STOP();
    tell_acquire(core, op);
    core->charge_wait(left);
    core->x[op->rd] = extend(old);
    count_scalar(core, ScalarClass::kAtomics);
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}

template <class T>
bool load_reserved(Core* core, const Op* op, T& value) {
    const std::uint64_t va = core->x[op->rs1];
    bool mmio = false;
    const std::uint8_t* host = atomic_host(core, va, sizeof(T), true, mmio);
    if (mmio) {
        std::uint64_t wide = 0;
        if (!slow_load(core, va, sizeof(T), wide)) return false;
        value = static_cast<T>(wide);
    } else {
        if (host == nullptr) return false;
        using Memory [[gnu::may_alias]] = const T;
        value = __atomic_load_n(reinterpret_cast<Memory*>(host), __ATOMIC_SEQ_CST);
        tell_atomic(core, op, sizeof(T), AccessKind::kAtomicLoad);
    }
    core->reservation_address = va;
    core->reservation_value = value;
    core->reservation_size = sizeof(T);
    return true;
}

template <class T, unsigned kLength>
Next op_lr(Core* core, Op* op, Left left) {
    core->publish(op, left);
    T value = 0;
    if (!may_release(core, op)) ORR_STOP();
    if (!load_reserved<T>(core, op, value)) ORR_STOP();
    tell_acquire(core, op);
    core->charge_wait(left);
    core->x[op->rd] = extend(value);
    count_scalar(core, ScalarClass::kAtomics);
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}

// Succeeds if the reservation is for these bytes and they still hold what LR read.
template <class T>
bool store_conditional(Core* core, const Op* op, std::uint64_t& failed) {
    const std::uint64_t va = core->x[op->rs1];
    const bool reserved = core->reservation_size == sizeof(T) && core->reservation_address == va;
    const auto expected = static_cast<T>(core->reservation_value);
    bool mmio = false;
    std::uint8_t* host = atomic_host(core, va, sizeof(T), false, mmio);
    if (host == nullptr && !mmio) return false;
    failed = 1;
    if (reserved) {
        T observed = 0;
        if (!exchange<T>(core, va, host, expected, static_cast<T>(core->x[op->rs2]), observed)) return false;
        failed = observed == expected ? 0 : 1;
        if (failed == 0 && !mmio) tell_atomic(core, op, sizeof(T), AccessKind::kAtomic);
    }
    core->drop_reservation();
    return true;
}

template <class T, unsigned kLength>
Next op_sc(Core* core, Op* op, Left left) {
    core->publish(op, left);
    std::uint64_t failed = 0;
    if (!may_release(core, op)) ORR_STOP();
    if (!store_conditional<T>(core, op, failed)) ORR_STOP();
    tell_acquire(core, op);
    core->charge_wait(left);
    core->x[op->rd] = failed;
    count_scalar(core, ScalarClass::kAtomics);
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}

template <unsigned kLength>
ORR_COLD Next told_fence(Core* core, Op* op, Left left) {
    core->publish(op, left);
    const auto both = static_cast<unsigned>(op->imm);
    const unsigned before = both >> 4, after = both & 15;
    constexpr unsigned kRead = 2, kWrite = 1, kBoth = kRead | kWrite;
    tell_access(core, {.bytes = both,
                       .kind = AccessKind::kFence,
                       .acquires = (before & kRead) != 0 && (after & kBoth) == kBoth,
                       .releases = (before & kBoth) == kBoth && (after & kWrite) != 0});
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}

// FENCE W, with nothing behind: the hint PAUSE. It orders nothing.
constexpr std::int32_t kPause = 0x10;
template <unsigned kLength>
ORR_COLD Next op_pause(Core* core, Op* op, Left left) {
    core->publish(op, left);
    if (const std::uint64_t cycles = core->config.pause_cycles; cycles > 1) {
        core->paused_pc = core->pc;
        core->work_counts.paused += cycles - 1;
        core->charge(left, cycles);
    }
    count_scalar(core, ScalarClass::kSystem);
    op += kLength;
    ORR_NEXT_SLOW(core, op, left);
}

template <unsigned kLength>
Next op_fence(Core* core, Op* op, Left left) {
    if (ORR_UNLIKELY(core->overlay != nullptr)) {
        core->publish(op, left);
        core->held = true;
        ORR_STOP();
    }
    if (ORR_UNLIKELY(op->imm == kPause)) {
        const Handler pause = op_pause<kLength>;
        ORR_CALL(pause, core, op, left);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (core->config.tells_acquires) {
        constexpr std::int32_t kWriteBefore = 0x10, kBothBehind = 3;
        if ((op->imm & kWriteBefore) != 0 && (op->imm & kBothBehind) != 0) {
            core->publish(op, left);
            if (!core->bus->releases()) ORR_STOP();
        }
        core->bus->acquired();
    }
    count_scalar(core, ScalarClass::kSystem);
    if (ORR_UNLIKELY(core->config.tells_accesses)) {
        const Handler told = told_fence<kLength>;
        ORR_CALL(told, core, op, left);
    }
    op += kLength;
    ORR_NEXT(core, op, left);
}

}  // namespace

void add_atomic_handlers(HandlerTable& table) {
    // None of these has a compressed form.
#define FOUR(code, ...) table.set(OpCode::code, nullptr, __VA_ARGS__)
    FOUR(kLrW, op_lr<std::uint32_t, 2>);
    FOUR(kLrD, op_lr<std::uint64_t, 2>);
    FOUR(kScW, op_sc<std::uint32_t, 2>);
    FOUR(kScD, op_sc<std::uint64_t, 2>);
    FOUR(kAmoW, op_amo<std::uint32_t, 2>);
    FOUR(kAmoD, op_amo<std::uint64_t, 2>);
    FOUR(kFence, op_fence<2>);
#undef FOUR
}

}  // namespace orrery::emu
