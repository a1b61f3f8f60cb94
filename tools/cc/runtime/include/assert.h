/* SPDX-License-Identifier: MIT */
/*
 * assert() of kernels: a failed one ends the kernel, and the error's text names expression, place, group and
 * item (orrErrorIllegalInstruction).
 */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                               \
    ((condition) ? (void)0 : __extension__({                                                            \
        static constexpr orr_assertion orr_failed{#condition, __FILE__, __PRETTY_FUNCTION__, __LINE__}; \
        orr_assertion_failed(&orr_failed);                                                              \
    }))
#ifndef ORRERY_KERNEL_ASSERT_H
#define ORRERY_KERNEL_ASSERT_H
#define ORR_ASSERTION_CALL 0x4f525202 /* ORR_CALL_ASSERT, whose header includes this one */
/* What a0 of it points to; the runtime reads it from the module's file. */
struct orr_assertion {
    const char* expression;
    const char* file;
    const char* function;
    unsigned long line;
};
[[noreturn]] inline void orr_assertion_failed(const orr_assertion* failed) {
    register const orr_assertion* what asm("a0") = failed;
    register unsigned long call asm("a7") = ORR_ASSERTION_CALL;
    asm volatile("ecall" : : "r"(what), "r"(call) : "memory");
    __builtin_unreachable();
}
#endif
#endif
