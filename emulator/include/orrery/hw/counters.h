/* SPDX-License-Identifier: MIT */
/*
 * Counters: 64 bits, read-only, ORR_R_COUNTER(n), cleared by power-on only. One list for the
 * card, the driver's sysfs and the tools: X(number, NAME, "name", "unit"). Numbers never change
 * their meaning; new ones are added at the end of their group's range.
 */
#ifndef ORRERY_HW_COUNTERS_H
#define ORRERY_HW_COUNTERS_H

#define ORR_COUNTER_LIST(X)                                           \
    X(0, CORE_INSTRUCTIONS, "core_instructions", "instructions")      \
    X(1, CORE_BUSY_PS, "core_busy_ps", "ps")                          \
    X(2, CORE_INTERRUPTS, "core_interrupts", "interrupts")            \
    X(3, DOORBELLS, "doorbells", "doorbells")                         \
    X(4, KICKS, "kicks", "writes")                                    \
    X(5, HOST_INTERRUPTS, "host_interrupts", "interrupts")            \
    X(6, GUEST_ERRORS, "guest_errors", "accesses")                    \
    X(7, UNIMPLEMENTED, "unimplemented", "accesses")                  \
    X(8, MMU_TLB_HITS, "mmu_tlb_hits", "lookups")                     \
    X(9, MMU_TLB_MISSES, "mmu_tlb_misses", "lookups")                 \
    X(10, MMU_FAULTS, "mmu_faults", "faults")                         \
    X(11, COPY_JOBS, "copy_jobs", "descriptors")                      \
    X(12, COPY_BYTES, "copy_bytes", "bytes")                          \
    X(13, COPY_BUSY_PS, "copy_busy_ps", "ps")                         \
    X(14, VECTOR_JOBS, "vector_jobs", "descriptors")                  \
    X(15, VECTOR_GROUPS, "vector_groups", "work-groups")              \
    X(16, VECTOR_ITEMS, "vector_items", "work-items")                 \
    X(17, VECTOR_INSTRUCTIONS, "vector_instructions", "instructions") \
    X(18, VECTOR_BUSY_PS, "vector_busy_ps", "ps")                     \
    X(19, SEMAPHORE_SIGNALS, "semaphore_signals", "signals")          \
    X(20, LINK_TX_MESSAGES, "link_tx_messages", "messages")           \
    X(21, LINK_TX_BYTES, "link_tx_bytes", "bytes")                    \
    X(22, LINK_RX_MESSAGES, "link_rx_messages", "messages")           \
    X(23, LINK_RX_BYTES, "link_rx_bytes", "bytes")                    \
    X(24, LINK_DENIED, "link_denied", "messages")                     \
    X(25, LINK_STRAGGLERS, "link_stragglers", "messages")             \
    X(26, RESETS, "resets", "resets")                                 \
    X(27, DMA_MAPS, "dma_maps", "maps")                               \
    X(28, CORE_STALL_PS, "core_stall_ps", "ps")                       \
    X(29, SLOT_PACKETS, "slot_packets", "packets")                    \
    X(30, PREEMPTIONS, "preemptions", "descriptors")                  \
    X(31, SAVED_BYTES, "saved_bytes", "bytes")                        \
    X(32, CORE_RESTARTS, "core_restarts", "restarts")                 \
    X(33, VRAM_BYTES, "vram_bytes", "bytes")                          \
    X(34, VECTOR_AHEAD, "vector_ahead", "instructions")               \
    X(35, LINK_FORWARDED, "link_forwarded", "messages")               \
    X(36, LINK_DROPPED, "link_dropped", "messages")                   \
    X(37, BARRIER_RELEASES, "barrier_releases", "rounds")             \
    X(38, BARRIER_FAILURES, "barrier_failures", "barriers")           \
    X(39, BARRIER_DENIED, "barrier_denied", "messages")

#define ORR_COUNTER_ENUM_(number, NAME, name, unit) ORR_CTR_##NAME = number,
enum orr_counter { ORR_COUNTER_LIST(ORR_COUNTER_ENUM_) ORR_COUNTER_COUNT };

#endif /* ORRERY_HW_COUNTERS_H */
