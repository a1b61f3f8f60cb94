// Shorthands for writing handlers.
#pragma once

#include "emulator/core/core.h"

#define ORR_LIKELY(x) __builtin_expect(!!(x), 1)
#define ORR_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace orrery::emu {

#if defined(__clang__)
#define ORR_COLD [[gnu::noinline, gnu::cold]]
#else
#define ORR_COLD [[gnu::noinline]]
#endif

// Back to run(): `op` is the next instruction.
[[gnu::noinline]] inline Next leave(Core* core, Op* op, Left left) {
    core->publish(op, left);
    ORR_STOP();
}

// The instruction completes, and is one of this class: neither an integer or vector instruction nor one that
// Left counts.
inline void count_scalar(Core* core, ScalarClass kind, std::uint64_t times = 1) {
    core->work_counts.of(kind) += times;
}

// Takes one of kLeft... off. True: nothing is left.
inline bool was_last(Left& left, Left what) {
    return __builtin_sub_overflow(left, what, &left);
}

// The instruction is complete; the next one is `op`.
#define ORR_NEXT(core, op, left) ORR_NEXT_AS(core, op, left, kLeftStep)
// And is one of those that are counted in `left`.
#define ORR_NEXT_AS(core, op, left, what)                                            \
    do {                                                                             \
        if (ORR_UNLIKELY(was_last((left), (what)))) ORR_CALL(leave, core, op, left); \
        ORR_DISPATCH(core, op, left);                                                \
    } while (0)

// The same after something that may have called the bus, or has locals in memory.
#define ORR_NEXT_SLOW(core, op, left) ORR_NEXT_SLOW_AS(core, op, left, kLeftStep)
#define ORR_NEXT_SLOW_AS(core, op, left, what)                                              \
    do {                                                                                    \
        if (was_last((left), (what)) || (core)->attention) ORR_CALL(leave, core, op, left); \
        ORR_DISPATCH_SLOW(core, op, left);                                                  \
    } while (0)

// The instruction at `op` cannot be done: pc and counters stay, run() takes core->trap.
#define ORR_TRAP(core, op, left, cause, tval) \
    do {                                      \
        (core)->publish(op, left);            \
        (core)->raise(cause, tval);           \
        ORR_STOP();                           \
    } while (0)

// The instruction is complete; the next one is at `target`, anywhere.
#define ORR_JUMP(core, target, left)                                                                   \
    do {                                                                                               \
        const std::uint64_t jump_target = (target);                                                    \
        const std::uint64_t jump_page = jump_target & ~kPageOffset;                                    \
        const CodeEntry& jump_code = (core)->code_pages[jump_target / kPageBytes & (core)->code_mask]; \
        if (ORR_UNLIKELY(was_last((left), kLeftJump) || jump_code.va != jump_page)) {                  \
            (core)->jumped = op;                                                                       \
            (core)->pc = jump_target;                                                                  \
            (core)->keep(left);                                                                        \
            ORR_STOP();                                                                                \
        }                                                                                              \
        (core)->code_va = jump_page;                                                                   \
        (core)->code_ops = jump_code.ops;                                                              \
        Op* const jump_op = jump_code.ops + (jump_target & kPageOffset) / 2;                           \
        ORR_DISPATCH(core, jump_op, left);                                                             \
    } while (0)

inline std::uint64_t sext(std::int32_t value) {
    return static_cast<std::uint64_t>(std::int64_t{value});
}
inline std::uint64_t sext32(std::uint64_t value) {
    return static_cast<std::uint64_t>(
        std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(value))});
}
inline std::int64_t as_signed(std::uint64_t value) {
    return static_cast<std::int64_t>(value);
}

}  // namespace orrery::emu
