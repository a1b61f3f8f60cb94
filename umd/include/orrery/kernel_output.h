/* SPDX-License-Identifier: MIT */
/**
 * printf from kernels. <orrery/kernel.h> includes this; the structure is also what the runtime reads.
 */
#ifndef ORRERY_KERNEL_OUTPUT_H
#define ORRERY_KERNEL_OUTPUT_H

#include <stdint.h>

#define ORR_OUTPUT_WORDS 32768u                 /* a power of two */
#define ORR_OUTPUT_RECORD 0x5052494e54000000ull /* "PRINT"; the low 24 bits: words of the record */
#define ORR_OUTPUT_RECORD_HEAD 3u               /* words before the arguments */
#define ORR_OUTPUT_ARGS 16u

/** A ring in host memory, one a process and card. Positions count words and go up for ever. */
struct orr_output {
    uint64_t head; /* claimed by items */
    uint64_t tail; /* printed, and cleared, by the host */
    uint64_t lost; /* calls for which there was no room */
    uint64_t pad[5];
    /* Records: ORR_OUTPUT_RECORD | words (written last), VA of the format, group << 16 | item, arguments. */
    uint64_t words[ORR_OUTPUT_WORDS];
};

#ifdef __riscv

#include <orrery/hw/engine.h>

namespace orr {

namespace detail {

/* The loader of the module puts the address here. */
__attribute__((visibility("default"))) inline orr_output* output asm("orr_output") = nullptr;

template <typename T>
inline uint64_t output_word(T value) {
    if constexpr (__is_floating_point(T))
        return __builtin_bit_cast(uint64_t, static_cast<double>(value));
    else if constexpr (__is_pointer(T))
        return reinterpret_cast<uint64_t>(value);
    else
        return static_cast<uint64_t>(value);
}

[[gnu::noinline]] inline void put_output(const char* format, const uint64_t* args, uint64_t count,
                                         uint64_t item) {
    orr_output* const ring = output;
    if (ring == nullptr) return;
    const uint64_t words = ORR_OUTPUT_RECORD_HEAD + count;
    // Places are used again when the host has cleared them, which a card that looks for races does not see:
    // so all here are atomics in its eyes. (A relaxed load or store is a plain one in RISC-V.)
    uint64_t head = __atomic_fetch_add(&ring->head, 0, __ATOMIC_RELAXED);
    do {
        if (head + words - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > ORR_OUTPUT_WORDS) {
            __atomic_fetch_add(&ring->lost, 1, __ATOMIC_RELAXED);
            return;
        }
    } while (!__atomic_compare_exchange_n(&ring->head, &head, head + words, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    const auto at = [&](uint64_t i) -> uint64_t& { return ring->words[(head + i) % ORR_OUTPUT_WORDS]; };
    const auto put = [&](uint64_t i, uint64_t word) { __atomic_store_n(&at(i), word, __ATOMIC_RELEASE); };
    put(1, reinterpret_cast<uint64_t>(format));
    put(2, item);
    for (uint64_t i = 0; i < count; ++i)
        put(ORR_OUTPUT_RECORD_HEAD + i, args[i]);
    put(0, ORR_OUTPUT_RECORD | words);
}

}  // namespace detail

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wgcc-compat" /* clang checks formats of templates too */
/**
 * Formatted and printed by the host, to its standard output, when it waits for the kernel. A call's text
 * stays in one piece, and those of an item are in its order. Strings for %s are constants of the module. What
 * finds the ring full is counted, and the host says so.
 */
template <typename... Args>
__attribute__((format(printf, 1, 2))) inline void printf(const char* format, Args... args) {
    static_assert(sizeof...(Args) <= ORR_OUTPUT_ARGS, "at most 16 values");
    const uint64_t group = group_x() + uint64_t{grid_x()} * (group_y() + uint64_t{grid_y()} * group_z());
    const uint64_t words[] = {detail::output_word(args)..., 0};
    detail::put_output(format, words, sizeof...(Args), group << ORR_DONE_ITEM_BITS | item_id());
}
#pragma clang diagnostic pop

}  // namespace orr

#endif /* __riscv */

#endif /* ORRERY_KERNEL_OUTPUT_H */
