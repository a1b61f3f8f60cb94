/* SPDX-License-Identifier: MIT */
/*
 * Metrics: what follows from counters. One list for the library's catalogue, the tools and docs/counters.md:
 *
 *     X(NAME, "name", "unit", formula, "meaning", "high", "low")
 *
 * A formula is an expression in doubles of how much counters (by their NAMEs in counters.h) have gone up, and
 * of VECTOR_HZ, a constant of the card. It is computed and, as text, documented.
 */
#ifndef ORRERY_HW_METRICS_H
#define ORRERY_HW_METRICS_H

/* clang-format off */
#define ORR_METRIC_LIST(X) \
    X(CORE_UTILISATION, "core_utilisation", "%", \
      100 * CORE_BUSY_PS / TIME_PS, \
      "Share of the time in which the control core worked.", \
      "The firmware is what limits many small jobs: batch them, or use graphs.", \
      "The firmware waits for work.") \
    X(CORE_STALLS, "core_stalls", "%", \
      100 * CORE_STALL_PS / CORE_BUSY_PS, \
      "Share of the control core's work in which it waits for memory or engines.", \
      "Queues in host memory, or others that fill the ways to memory, slow the firmware down.", \
      "The firmware computes.") \
    X(CORE_SCHEDULING, "core_scheduling", "%", \
      100 * CORE_SCHEDULING_PS / CORE_BUSY_PS, \
      "Share of the control core's work that chooses whose turn it is and who gets a port.", \
      "Many queues compete: fewer, with more in each.", \
      "There is little to choose.") \
    X(CORE_MAILBOX, "core_mailbox", "%", \
      100 * CORE_MAILBOX_PS / CORE_BUSY_PS, \
      "Share of the control core's work that serves the driver.", \
      "Queues are made, ended or asked about all the time: keep them.", \
      "The firmware works for queues.") \
    X(CORE_TLB_MISS_RATE, "core_tlb_miss_rate", "%", \
      100 * CORE_TLB_MISSES / CORE_TLB_LOOKUPS, \
      "Share of the control core's and the launch unit's translations that walk tables.", \
      "More rings, queues and semaphores are in use than the core has pages at hand for.", \
      "Pages are at hand.") \
    X(QUEUE_DEPTH, "queue_depth", "packets", \
      RING_WAIT_PS / TIME_PS, \
      "Packets that wait in ring slots, the mean over the time.", \
      "More is submitted than the card takes: it is busy, or queues wait for semaphores.", \
      "Packets are taken as they come.") \
    X(DISPATCH_LATENCY, "dispatch_latency", "us", \
      DOORBELL_WAIT_PS / DOORBELL_POPS / 1e6 + RING_WAIT_PS / RING_PACKETS / 1e6, \
      "Time from a doorbell to the start of a packet, the mean: until the firmware takes the doorbell, and then the packet.", \
      "The firmware is busy, or packets wait behind others of their queue.", \
      "Nothing is in the way of what is submitted.") \
    X(COPY_UTILISATION, "copy_utilisation", "%", \
      100 * COPY_BUSY_PS / (COPY_BUSY_PS + COPY_IDLE_PS), \
      "Share of the time in which copy engines had a copy, the mean of all.", \
      "Copies limit, or they wait for memory: look at copy_bandwidth.", \
      "Copies are short, or nobody asks for any beside kernels.") \
    X(COPY_BANDWIDTH, "copy_bandwidth", "GB/s", \
      1000 * COPY_BYTES / COPY_BUSY_PS, \
      "What a busy copy engine moves.", \
      "Copies are large and nothing holds them up.", \
      "Small copies, rows of few bytes, or others at the same memory or link.") \
    X(COPY_OVERHEAD, "copy_overhead", "%", \
      100 * (COPY_SETUP_PS + COPY_ROWS_PS) / COPY_BUSY_PS, \
      "Share of busy copy engines' time that starts copies, rows and entries of lists.", \
      "Copies or their rows are short: copy more at once, in longer rows.", \
      "Bytes are what takes time.") \
    X(COPY_VRAM_STALLS, "copy_vram_stalls", "%", \
      100 * COPY_VRAM_PS / COPY_BUSY_PS, \
      "Share of busy copy engines' time that waits for the card's memory.", \
      "Kernels or other copies want the same memory at the same time.", \
      "The card's memory keeps up.") \
    X(COPY_PCIE_STALLS, "copy_pcie_stalls", "%", \
      100 * COPY_PCIE_PS / COPY_BUSY_PS, \
      "Share of busy copy engines' time that waits for PCIe.", \
      "Copies from and to the host go as fast as PCIe: move fewer bytes, or keep them on the card.", \
      "Copies stay on cards, or are short.") \
    X(COPY_LATENCY_STALLS, "copy_latency_stalls", "%", \
      100 * (COPY_LATENCY_PS + COPY_TRANSLATION_PS) / COPY_BUSY_PS, \
      "Share of busy copy engines' time that waits for answers of memory and for walks of page tables.", \
      "Copies are short, or jump over many pages.", \
      "Latency is hidden behind bytes.") \
    X(COPY_TLB_MISS_RATE, "copy_tlb_miss_rate", "%", \
      100 * COPY_TLB_MISSES / COPY_TLB_LOOKUPS, \
      "Share of copy engines' translations that walk tables.", \
      "Rows or entries of lists jump over many pages: larger pages, or denser rows.", \
      "Pages are at hand.") \
    X(COPY_LINK_STALLS, "copy_link_stalls", "%", \
      100 * (COPY_LINK_PS + COPY_CREDIT_PS + COPY_PEER_PS) / COPY_BUSY_PS, \
      "Share of busy copy engines' time that waits for links and other cards.", \
      "Copies between cards go as fast as their links; copy_credit_ps: the other end takes slowly what is sent.", \
      "Copies stay on this card, or links keep up.") \
    X(VECTOR_UTILISATION, "vector_utilisation", "%", \
      100 * VECTOR_BUSY_PS / (VECTOR_BUSY_PS + VECTOR_IDLE_PS), \
      "Share of the time in which vector cores had a work-group, the mean of all.", \
      "Cores are what limits, or what they wait for: look at the stalls.", \
      "Too few work-groups, gaps between kernels, or a long last group.") \
    X(VECTOR_IPC, "vector_ipc", "instructions/cycle", \
      VECTOR_INSTRUCTIONS / (VECTOR_BUSY_PS * VECTOR_HZ / 1e12), \
      "Instructions that a busy vector core completes in a cycle, 1 at most.", \
      "Scalar code, or short vectors: are there vectors at all (vector_simd_share)?", \
      "Long vector instructions, each of many cycles, or stalls.") \
    X(VECTOR_LATENCY_STALLS, "vector_latency_stalls", "%", \
      100 * VECTOR_LATENCY_PS / VECTOR_BUSY_PS, \
      "Share of busy vector cores' time that waits for answers of memory.", \
      "Scalar loads that miss the cache, or atomics: load by vectors, use memory of the work-group.", \
      "Nearly all loads hit, or are of vectors.") \
    X(VECTOR_BANDWIDTH_STALLS, "vector_bandwidth_stalls", "%", \
      100 * VECTOR_BANDWIDTH_PS / VECTOR_BUSY_PS, \
      "Share of busy vector cores' time that waits for memory's bandwidth.", \
      "Memory limits: move fewer bytes for each result, or keep them in the core.", \
      "Memory keeps up.") \
    X(VECTOR_LINK_STALLS, "vector_link_stalls", "%", \
      100 * VECTOR_LINK_PS / VECTOR_BUSY_PS, \
      "Share of busy vector cores' time that waits for memory of other cards.", \
      "Copy what is read often to this card first.", \
      "Kernels hardly use other cards' memory, or write to it.") \
    X(VECTOR_LAUNCH_SHARE, "vector_launch_share", "%", \
      100 * VECTOR_LAUNCH_PS / VECTOR_BUSY_PS, \
      "Share of busy vector cores' time that starts work-items.", \
      "Work-items do too little: give each more.", \
      "Starting items costs nothing that matters.") \
    X(VECTOR_PAUSE_SHARE, "vector_pause_share", "%", \
      100 * VECTOR_PAUSE_PS / VECTOR_BUSY_PS, \
      "Share of busy vector cores' time that pauses between looks whether others have come, as at barriers of a launch.", \
      "Work-groups, other cards or the host come late: share the work evenly, or start what waits later.", \
      "Nobody waits inside kernels, or not in this way.") \
    X(VECTOR_SIMD_SHARE, "vector_simd_share", "%", \
      100 * (VECTOR_SIMD_INT + VECTOR_SIMD_FP + VECTOR_SIMD_MOVES + VECTOR_SIMD_LOADS + VECTOR_SIMD_STORES) / VECTOR_INSTRUCTIONS, \
      "Share of kernels' instructions that are of vectors.", \
      "The kernel is vectorised.", \
      "Scalar code: was it compiled for vectors, and do loops have a form that compilers vectorise?") \
    X(VECTOR_SCALAR_MEMORY, "vector_scalar_memory", "%", \
      100 * (VECTOR_SCALAR_LOADS + VECTOR_SCALAR_STORES) / VECTOR_INSTRUCTIONS, \
      "Share of kernels' instructions that load or store one value.", \
      "Values go one by one, or registers to the stack and back: vectors, fewer live values, no calls in loops.", \
      "Vectors move the data, or kernels compute in registers.") \
    X(VECTOR_JUMP_SHARE, "vector_jump_share", "%", \
      100 * VECTOR_SCALAR_JUMPS / VECTOR_INSTRUCTIONS, \
      "Share of kernels' instructions that branch, jump, call or return.", \
      "Loops of few instructions: unroll them, or do more elements in each turn.", \
      "Loops are long, or of vectors.") \
    X(VECTOR_ATOMIC_SHARE, "vector_atomic_share", "%", \
      100 * VECTOR_SCALAR_ATOMICS / VECTOR_INSTRUCTIONS, \
      "Share of kernels' instructions that are atomics.", \
      "Work-items meet in memory: sum up in the work-item or the work-group first.", \
      "Few results are shared.") \
    X(VECTOR_LANE_USE, "vector_lane_use", "%", \
      100 * VECTOR_LANES_ACTIVE / VECTOR_LANES, \
      "Share of the elements of register groups that vector instructions work on.", \
      "Vectors are full.", \
      "Short rows, tails or masks leave most of each vector unused.") \
    X(VECTOR_GFLOPS, "vector_gflops", "GFLOP/s", \
      1000 * (VECTOR_FLOPS_F16 + VECTOR_FLOPS_F32 + VECTOR_FLOPS_F64) / TIME_PS, \
      "Floating point operations of kernels, of all types.", \
      "Compare with the peak of the card's SKU.", \
      "Gaps, stalls, short vectors, or work that is not floating point.") \
    X(VECTOR_INTENSITY, "vector_intensity", "FLOP/byte", \
      (VECTOR_FLOPS_F16 + VECTOR_FLOPS_F32 + VECTOR_FLOPS_F64) / VRAM_VECTOR_BYTES, \
      "Operations for each byte that kernels move from or to the card's memory.", \
      "Computing limits.", \
      "Memory limits: below the card's peak GFLOP/s divided by its GB/s.") \
    X(VECTOR_TLB_MISS_RATE, "vector_tlb_miss_rate", "%", \
      100 * VECTOR_TLB_MISSES / VECTOR_TLB_LOOKUPS, \
      "Share of vector cores' translations that walk tables.", \
      "Accesses jump over many pages: larger pages, or another order.", \
      "Pages are at hand.") \
    X(VECTOR_DISPATCH_WAIT, "vector_dispatch_wait", "us", \
      VECTOR_QUEUED_PS / VECTOR_JOBS / 1e6, \
      "Time from a kernel's descriptor at its port to the first work-group on a core, the mean.", \
      "Kernels queue for cores behind others.", \
      "Cores are free when kernels come.") \
    X(VRAM_BANDWIDTH, "vram_bandwidth", "GB/s", \
      1000 * VRAM_BYTES / TIME_PS, \
      "What goes into and out of the card's memory.", \
      "Near to the SKU's copy.vram_gb_per_s: memory limits.", \
      "Memory does not limit.") \
    X(VRAM_WAIT, "vram_wait", "ns/KiB", \
      1.024 * VRAM_WAIT_PS / VRAM_BYTES, \
      "How long each KiB waited for what others moved before it.", \
      "Many users at once, more than memory has room for.", \
      "Whoever comes finds it free.") \
    X(PCIE_READ_BANDWIDTH, "pcie_read_bandwidth", "GB/s", \
      1000 * PCIE_READ_BYTES / TIME_PS, \
      "What the card reads of host memory.", \
      "Near to the SKU's copy.host_gb_per_s: input limits.", \
      "Host memory is hardly read.") \
    X(PCIE_WRITE_BANDWIDTH, "pcie_write_bandwidth", "GB/s", \
      1000 * PCIE_WRITE_BYTES / TIME_PS, \
      "What the card writes to host memory.", \
      "Near to the SKU's copy.host_gb_per_s: output limits.", \
      "Host memory is hardly written.") \
    X(LINK_TX_BANDWIDTH, "link_tx_bandwidth", "GB/s", \
      1000 * LINK_TX_BYTES / TIME_PS, \
      "Payload that leaves by links, all ports together.", \
      "Near to link.gbit_per_s of the SKU, times the ports in use: links limit.", \
      "Links do not limit, or wait for who sends.") \
    X(LINK_RX_BANDWIDTH, "link_rx_bandwidth", "GB/s", \
      1000 * LINK_RX_BYTES / TIME_PS, \
      "Payload that comes by links, all ports together.", \
      "As link_tx_bandwidth.", \
      "As link_tx_bandwidth.") \
    X(LINK_RETRY_RATE, "link_retry_rate", "%", \
      100 * LINK_RETRIES / LINK_TX_MESSAGES, \
      "Frames that were sent again, for each message sent.", \
      "A damaged link: orrery-smi links names the port.", \
      "Links are sound.") \
    X(LINK_CREDIT_STALLS, "link_credit_stalls", "%", \
      100 * LINK_CREDIT_PS / TIME_PS, \
      "Share of the time in which a port had no room at the other end; more than 100 % if several had none.", \
      "The other end takes slowly what is sent: its memory, or links on the way, limit.", \
      "What is sent finds room.")
/* clang-format on */

#endif /* ORRERY_HW_METRICS_H */
