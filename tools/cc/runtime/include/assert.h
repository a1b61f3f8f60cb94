/* SPDX-License-Identifier: MIT */
/* assert() of kernels: a failed one traps, and the runtime reports the place (orrErrorIllegalInstruction). */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif
#if !defined(__cplusplus) && !defined(static_assert)
#define static_assert _Static_assert
#endif
