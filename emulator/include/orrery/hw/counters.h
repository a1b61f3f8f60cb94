/* SPDX-License-Identifier: MIT */
/*
 * Counters: 64 bits, read-only, ORR_R_COUNTER(n), cleared by power-on only. One list for the card, the
 * driver's sysfs and perf events, the library's catalogue and docs/counters.md:
 *
 *     X(number, NAME, "name", "unit", "engine", "meaning")
 *
 * engine: the part of the card that counts it, one of ORR_COUNTER_ENGINES. Numbers never change their
 * meaning; new ones are added at the end. docs/first-change.md says what else a new one needs.
 */
#ifndef ORRERY_HW_COUNTERS_H
#define ORRERY_HW_COUNTERS_H

/* X("engine", "what it is") */
#define ORR_COUNTER_ENGINES(X)                                \
    X("card", "the card as a whole")                          \
    X("core", "the control core, which runs the firmware")    \
    X("host", "what goes between the card and its host")      \
    X("launch", "the launch unit, between rings and engines") \
    X("copy", "the copy engines, all together")               \
    X("vector", "the vector cores, all together")             \
    X("mmu", "the card's address translation")                \
    X("vram", "the card's memory")                            \
    X("sync", "the semaphore unit")                           \
    X("link", "the ports to other cards, and the barrier unit")

/* clang-format off */
#define ORR_COUNTER_LIST(X) \
    X(0, CORE_INSTRUCTIONS, "core_instructions", "instructions", "core", \
      "Instructions of the firmware.") \
    X(1, CORE_BUSY_PS, "core_busy_ps", "ps", "core", \
      "Model time in which the control core did not sleep.") \
    X(2, CORE_INTERRUPTS, "core_interrupts", "interrupts", "core", \
      "Interrupts that the firmware took.") \
    X(3, DOORBELLS, "doorbells", "doorbells", "host", \
      "Doorbells that the card found rung.") \
    X(4, KICKS, "kicks", "writes", "host", \
      "Writes to kick pages, which wake the card.") \
    X(5, HOST_INTERRUPTS, "host_interrupts", "interrupts", "host", \
      "Interrupts sent to the host.") \
    X(6, GUEST_ERRORS, "guest_errors", "accesses", "host", \
      "Accesses of the host to registers that made no sense.") \
    X(7, UNIMPLEMENTED, "unimplemented", "accesses", "card", \
      "Accesses to what the card does not have.") \
    X(8, MMU_TLB_HITS, "mmu_tlb_hits", "lookups", "mmu", \
      "Translations found in the emulator's own table of them, which is no part of the model: engines' are *_tlb_lookups.") \
    X(9, MMU_TLB_MISSES, "mmu_tlb_misses", "lookups", "mmu", \
      "Translations that were not there; model time has nothing of that, but of *_tlb_misses.") \
    X(10, MMU_FAULTS, "mmu_faults", "faults", "mmu", \
      "Translations that failed.") \
    X(11, COPY_JOBS, "copy_jobs", "descriptors", "copy", \
      "Descriptors that the copy engines finished.") \
    X(12, COPY_BYTES, "copy_bytes", "bytes", "copy", \
      "Bytes that the copy engines moved or filled.") \
    X(13, COPY_BUSY_PS, "copy_busy_ps", "ps", "copy", \
      "Model time in which copy engines worked, the sum over the engines.") \
    X(14, VECTOR_JOBS, "vector_jobs", "descriptors", "vector", \
      "Kernels that the vector cores finished.") \
    X(15, VECTOR_GROUPS, "vector_groups", "work-groups", "vector", \
      "Work-groups that the vector cores ran.") \
    X(16, VECTOR_ITEMS, "vector_items", "work-items", "vector", \
      "Work-items that the vector cores ran.") \
    X(17, VECTOR_INSTRUCTIONS, "vector_instructions", "instructions", "vector", \
      "Instructions of kernels.") \
    X(18, VECTOR_BUSY_PS, "vector_busy_ps", "ps", "vector", \
      "Model time in which vector cores worked, the sum over the cores.") \
    X(19, SEMAPHORE_SIGNALS, "semaphore_signals", "signals", "sync", \
      "Signals that the semaphore unit carried out.") \
    X(20, LINK_TX_MESSAGES, "link_tx_messages", "messages", "link", \
      "Messages sent over links.") \
    X(21, LINK_TX_BYTES, "link_tx_bytes", "bytes", "link", \
      "Payload sent over links.") \
    X(22, LINK_RX_MESSAGES, "link_rx_messages", "messages", "link", \
      "Messages received over links.") \
    X(23, LINK_RX_BYTES, "link_rx_bytes", "bytes", "link", \
      "Payload received over links.") \
    X(24, LINK_DENIED, "link_denied", "messages", "link", \
      "Messages of other cards to memory that was not granted to them.") \
    X(25, LINK_STRAGGLERS, "link_stragglers", "messages", "link", \
      "Messages whose model time was in this card's past.") \
    X(26, RESETS, "resets", "resets", "card", \
      "Resets of the card since power-on.") \
    X(27, DMA_MAPS, "dma_maps", "maps", "host", \
      "Ranges of host memory that were made visible to the card.") \
    X(28, CORE_STALL_PS, "core_stall_ps", "ps", "core", \
      "Model time in which the control core waited for memory or engines.") \
    X(29, SLOT_PACKETS, "slot_packets", "packets", "launch", \
      "Packets that ring slots read ahead, each time that one did.") \
    X(30, PREEMPTIONS, "preemptions", "descriptors", "card", \
      "Kernels that were interrupted for others.") \
    X(31, SAVED_BYTES, "saved_bytes", "bytes", "card", \
      "Bytes of state saved for interrupted kernels.") \
    X(32, CORE_RESTARTS, "core_restarts", "restarts", "core", \
      "Restarts of the control core alone.") \
    X(33, VRAM_BYTES, "vram_bytes", "bytes", "vram", \
      "Bytes that went into and out of the card's memory, as its bandwidth is charged for them.") \
    X(34, VECTOR_AHEAD, "vector_ahead", "instructions", "vector", \
      "Instructions of kernels that host threads computed ahead of their model time.") \
    X(35, LINK_FORWARDED, "link_forwarded", "messages", "link", \
      "Messages between other cards that this card passed on.") \
    X(36, LINK_DROPPED, "link_dropped", "messages", "link", \
      "Messages between other cards that this card could not pass on.") \
    X(37, BARRIER_RELEASES, "barrier_releases", "rounds", "link", \
      "Rounds of barriers of several cards that this card saw completed.") \
    X(38, BARRIER_FAILURES, "barrier_failures", "barriers", "link", \
      "Barriers of several cards that failed while this card was a member.") \
    X(39, BARRIER_DENIED, "barrier_denied", "messages", "link", \
      "Messages for barriers from cards that are no members or had another key.") \
    X(40, TIME_PS, "time_ps", "ps", "card", \
      "Model time since power-on, at the moment of the snapshot.") \
    X(41, CORE_IDLE_PS, "core_idle_ps", "ps", "core", \
      "Model time in which the control core slept: with core_busy_ps it is time_ps.") \
    X(42, COPY_IDLE_PS, "copy_idle_ps", "ps", "copy", \
      "Model time in which copy engines had nothing to do: with copy_busy_ps it is time_ps for each engine.") \
    X(43, VECTOR_IDLE_PS, "vector_idle_ps", "ps", "vector", \
      "Model time in which vector cores did not work: with vector_busy_ps it is time_ps for each core.") \
    X(44, VECTOR_LATENCY_PS, "vector_latency_ps", "ps", "vector", \
      "Of vector_busy_ps: waits for the answers to scalar loads and atomics.") \
    X(45, VECTOR_BANDWIDTH_PS, "vector_bandwidth_ps", "ps", "vector", \
      "Of vector_busy_ps: waits for memory behind what was computed: for its bandwidth, and for requests in flight.") \
    X(46, VECTOR_LINK_PS, "vector_link_ps", "ps", "vector", \
      "Of vector_busy_ps: waits for memory of other cards.") \
    X(47, VECTOR_LAUNCH_PS, "vector_launch_ps", "ps", "vector", \
      "Of vector_busy_ps: starts of work-items.") \
    X(48, VECTOR_BARRIERS, "vector_barriers", "arrivals", "vector", \
      "Arrivals of work-items at barriers of their work-group, whose items run one after the other.") \
    X(49, VECTOR_SIMD_INT, "vector_simd_int", "instructions", "vector", \
      "Vector instructions of kernels that compute integers, fixed point, masks and compares of these.") \
    X(50, VECTOR_SIMD_FP, "vector_simd_fp", "instructions", "vector", \
      "Vector instructions of kernels that compute, compare or convert floating point.") \
    X(51, VECTOR_SIMD_MOVES, "vector_simd_moves", "instructions", "vector", \
      "Vector instructions of kernels that move, merge or permute elements.") \
    X(52, VECTOR_SIMD_LOADS, "vector_simd_loads", "instructions", "vector", \
      "Vector loads of kernels.") \
    X(53, VECTOR_SIMD_STORES, "vector_simd_stores", "instructions", "vector", \
      "Vector stores of kernels.") \
    X(54, VECTOR_SIMD_CONFIG, "vector_simd_config", "instructions", "vector", \
      "Instructions of kernels that set vl and vtype.") \
    X(55, VECTOR_LANES_ACTIVE, "vector_lanes_active", "elements", "vector", \
      "Elements that vector instructions worked on: up to vl, without those that the mask leaves out.") \
    X(56, VECTOR_LANES, "vector_lanes", "elements", "vector", \
      "Elements that the same instructions had room for: VLMAX, for each field of a segment.") \
    X(57, VECTOR_FLOPS_F16, "vector_flops_f16", "operations", "vector", \
      "Operations with results of 16 bits floating point, of scalar and vector instructions: 1 for add, sub, mul, div, sqrt, min and max, 2 for a multiply-add.") \
    X(58, VECTOR_FLOPS_F32, "vector_flops_f32", "operations", "vector", \
      "The same with results of 32 bits; products of bf16 and widening ones of f16 are among them.") \
    X(59, VECTOR_FLOPS_F64, "vector_flops_f64", "operations", "vector", \
      "The same with results of 64 bits.") \
    X(60, VECTOR_TLB_LOOKUPS, "vector_tlb_lookups", "lookups", "vector", \
      "Translations that vector cores needed: of lines that pass the cache, and of pages of vector loads and stores.") \
    X(61, VECTOR_TLB_MISSES, "vector_tlb_misses", "lookups", "vector", \
      "Of these, translations that were not at hand and walked tables.") \
    X(62, VECTOR_TLB_WALKED, "vector_tlb_walked", "entries", "vector", \
      "Entries of tables that these walks read, a line of VRAM each.") \
    X(63, VRAM_CORE_BYTES, "vram_core_bytes", "bytes", "vram", \
      "Of vram_bytes: the control core's and the launch unit's.") \
    X(64, VRAM_COPY_BYTES, "vram_copy_bytes", "bytes", "vram", \
      "Of vram_bytes: the copy engines'.") \
    X(65, VRAM_VECTOR_BYTES, "vram_vector_bytes", "bytes", "vram", \
      "Of vram_bytes: the vector cores', with what saves and loads their work-groups.") \
    X(66, VRAM_LINK_BYTES, "vram_link_bytes", "bytes", "vram", \
      "Of vram_bytes: what came by links. With the three before it is vram_bytes.") \
    X(67, VRAM_WAIT_PS, "vram_wait_ps", "ps", "vram", \
      "How long requests to the card's memory waited for those before them, all added up.") \
    X(68, PCIE_READ_BYTES, "pcie_read_bytes", "bytes", "host", \
      "Bytes that the card read of host memory, as PCIe's bandwidth is charged for them.") \
    X(69, PCIE_WRITE_BYTES, "pcie_write_bytes", "bytes", "host", \
      "Bytes that the card wrote to host memory, as PCIe's bandwidth is charged for them.") \
    X(70, PCIE_WAIT_PS, "pcie_wait_ps", "ps", "host", \
      "How long requests to host memory waited for those before them in their direction, all added up.") \
    X(71, LINK_RETRIES, "link_retries", "frames", "link", \
      "Frames that were sent again, of all ports.") \
    X(72, LINK_WAIT_PS, "link_wait_ps", "ps", "link", \
      "How long messages waited for those before them on their port's wire, all added up.") \
    X(73, VECTOR_QUEUED_PS, "vector_queued_ps", "ps", "vector", \
      "From the arrival of a kernel's descriptor at its port to its first work-group on a core, all added up.") \
    X(74, CORE_OTHER_PS, "core_other_ps", "ps", "core", \
      "Of core_busy_ps: the start of the firmware, alarms, and what it does not tell.") \
    X(75, CORE_PACKETS_PS, "core_packets_ps", "ps", "core", \
      "Of core_busy_ps: doorbells, and reading packets and carrying them out.") \
    X(76, CORE_SCHEDULING_PS, "core_scheduling_ps", "ps", "core", \
      "Of core_busy_ps: choosing whose turn it is and who gets a port, with the start of what got one.") \
    X(77, CORE_COMPLETIONS_PS, "core_completions_ps", "ps", "core", \
      "Of core_busy_ps: completions of engines, with what follows them at once.") \
    X(78, CORE_MAILBOX_PS, "core_mailbox_ps", "ps", "core", \
      "Of core_busy_ps: commands of the driver, and messages to it.") \
    X(79, CORE_LINKS_PS, "core_links_ps", "ps", "core", \
      "Of core_busy_ps: semaphores that other cards signalled. With the five before it is core_busy_ps.") \
    X(80, DOORBELL_POPS, "doorbell_pops", "doorbells", "host", \
      "Doorbells that the firmware took: one that is rung again before is one.") \
    X(81, DOORBELL_WAIT_PS, "doorbell_wait_ps", "ps", "host", \
      "How long these waited for the firmware, from the arrival of the first ring on, all added up.") \
    X(82, RING_PACKETS, "ring_packets", "packets", "launch", \
      "Packets that the firmware, or the launch unit for it, took out of ring slots.") \
    X(83, RING_WAIT_PS, "ring_wait_ps", "ps", "launch", \
      "How long packets waited in ring slots that were told of them, all added up: their number at each moment, times how long it was that.") \
    X(84, LINK_CREDIT_PS, "link_credit_ps", "ps", "link", \
      "How long ports could not send for lack of room at the other end, the sum over ports and their channels.") \
    X(85, COPY_SETUP_PS, "copy_setup_ps", "ps", "copy", \
      "Of copy_busy_ps: the start of copies, with descriptors that stand in memory and saved state.") \
    X(86, COPY_MOVE_PS, "copy_move_ps", "ps", "copy", \
      "Of copy_busy_ps: moving bytes at the rate of the engine itself, and looking at what is told for checks.") \
    X(87, COPY_ROWS_PS, "copy_rows_ps", "ps", "copy", \
      "Of copy_busy_ps: starts of rows and of entries of lists that are too short to hide them.") \
    X(88, COPY_VRAM_PS, "copy_vram_ps", "ps", "copy", \
      "Of copy_busy_ps: waits for bandwidth of the card's memory.") \
    X(89, COPY_PCIE_PS, "copy_pcie_ps", "ps", "copy", \
      "Of copy_busy_ps: waits for bandwidth of PCIe.") \
    X(90, COPY_LATENCY_PS, "copy_latency_ps", "ps", "copy", \
      "Of copy_busy_ps: waits for answers of VRAM and host memory: requests in flight are as many as there may be, or the last bytes are on their way.") \
    X(91, COPY_TRANSLATION_PS, "copy_translation_ps", "ps", "copy", \
      "Of copy_busy_ps: waits for walks of page tables.") \
    X(92, COPY_LINK_PS, "copy_link_ps", "ps", "copy", \
      "Of copy_busy_ps: waits for the wire of the link by which bytes leave.") \
    X(93, COPY_CREDIT_PS, "copy_credit_ps", "ps", "copy", \
      "Of copy_busy_ps: waits for room in a link, which its other end gives.") \
    X(94, COPY_PEER_PS, "copy_peer_ps", "ps", "copy", \
      "Of copy_busy_ps: waits for what other cards were asked for. With the nine before it is copy_busy_ps.") \
    X(95, VECTOR_SCALAR_INT, "vector_scalar_int", "instructions", "vector", \
      "Scalar instructions of kernels that compute, compare, move and make integers, but those of the next counter.") \
    X(96, VECTOR_SCALAR_MULDIV, "vector_scalar_muldiv", "instructions", "vector", \
      "Those that multiply and divide integers.") \
    X(97, VECTOR_SCALAR_FP, "vector_scalar_fp", "instructions", "vector", \
      "Scalar instructions of kernels that compute, compare, convert or move floating point.") \
    X(98, VECTOR_SCALAR_LOADS, "vector_scalar_loads", "instructions", "vector", \
      "Scalar loads of kernels, of integers and floating point.") \
    X(99, VECTOR_SCALAR_STORES, "vector_scalar_stores", "instructions", "vector", \
      "Scalar stores of kernels, of integers and floating point.") \
    X(100, VECTOR_SCALAR_JUMPS, "vector_scalar_jumps", "instructions", "vector", \
      "Branches, taken or not, and jumps of kernels, with calls and returns.") \
    X(101, VECTOR_SCALAR_ATOMICS, "vector_scalar_atomics", "instructions", "vector", \
      "Atomics of kernels: AMOs, LR and SC.") \
    X(102, VECTOR_SCALAR_SYSTEM, "vector_scalar_system", "instructions", "vector", \
      "Accesses of kernels to CSRs, fences and arrivals at barriers. With the seven before and the six vector_simd_* it is vector_instructions.") \
    X(103, CORE_INT, "core_int", "instructions", "core", \
      "Of core_instructions: those that compute, compare, move and make integers, but those of the next counter.") \
    X(104, CORE_MULDIV, "core_muldiv", "instructions", "core", \
      "Of core_instructions: those that multiply and divide.") \
    X(105, CORE_LOADS, "core_loads", "instructions", "core", \
      "Of core_instructions: loads.") \
    X(106, CORE_STORES, "core_stores", "instructions", "core", \
      "Of core_instructions: stores.") \
    X(107, CORE_JUMPS, "core_jumps", "instructions", "core", \
      "Of core_instructions: branches, taken or not, and jumps, with calls and returns.") \
    X(108, CORE_ATOMICS, "core_atomics", "instructions", "core", \
      "Of core_instructions: AMOs, LR and SC.") \
    X(109, CORE_SYSTEM, "core_system", "instructions", "core", \
      "Of core_instructions: accesses to CSRs, fences, WFI and MRET. With the six before it is core_instructions.") \
    X(110, VECTOR_PAUSE_PS, "vector_pause_ps", "ps", "vector", \
      "Of vector_busy_ps: pauses (the instruction PAUSE) between looks whether others have come, as at barriers of a launch.") \
    X(111, COPY_TLB_LOOKUPS, "copy_tlb_lookups", "lookups", "copy", \
      "Translations that copy engines needed: of the pages of each piece that they move, on either side, and of lists and descriptors that stand in memory.") \
    X(112, COPY_TLB_MISSES, "copy_tlb_misses", "lookups", "copy", \
      "Of these, translations that were not at hand and walked tables.") \
    X(113, COPY_TLB_WALKED, "copy_tlb_walked", "entries", "copy", \
      "Entries of tables that these walks read, a line of VRAM each.") \
    X(114, CORE_TLB_LOOKUPS, "core_tlb_lookups", "lookups", "core", \
      "Translations that the control core and the launch unit needed: of windows into address spaces, of packets, and of semaphores.") \
    X(115, CORE_TLB_MISSES, "core_tlb_misses", "lookups", "core", \
      "Of these, translations that were not at hand and walked tables.") \
    X(116, CORE_TLB_WALKED, "core_tlb_walked", "entries", "core", \
      "Entries of tables that these walks read, a line of VRAM each.")

/* clang-format on */

#define ORR_COUNTER_ENUM_(number, NAME, ...) ORR_CTR_##NAME = number,
enum orr_counter { ORR_COUNTER_LIST(ORR_COUNTER_ENUM_) ORR_COUNTER_COUNT };

#endif /* ORRERY_HW_COUNTERS_H */
