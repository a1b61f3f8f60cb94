// Each counter of the card, and the test that holds it against a count which does not come from what counts
// it: a closed form, a list of what was done, or a replay. counter_truths_test.cc holds this list against the
// catalogue and the tests against this list.
#pragma once

#include <string_view>

#include <orrery/hw/counters.h>

namespace orrery::emu::test {

struct TruthTest {
    std::string_view file;  // below tests/unit
    std::string_view suite, name;
};
struct CounterTruth {
    orr_counter counter;
    TruthTest test;
    std::string_view by = {};  // how the test names the counter, if not as the catalogue does
};

inline constexpr TruthTest kCoresTime{"trace/replay_test.cc", "Replay",
                                      "CountersKnowWhatTheCoreDidWithItsTime"};
inline constexpr TruthTest kCoresInstructions{"trace/replay_test.cc", "Replay",
                                              "CountersKnowEachInstructionsClass"};
inline constexpr TruthTest kCoresMemory{"card/counter_truth_test.cc", "CounterTruth", "OfTheCoresMemory"};
inline constexpr TruthTest kCopiesAlone{"engines/copy_time_test.cc", "CopyTime",
                                        "OfWhatRunsAloneIsWhatItsWaysTake"};
inline constexpr TruthTest kBytesOfAKernel{"engines/vector_unit_test.cc", "VectorUnitTest", "CountsBytes"};
inline constexpr TruthTest kTriad{"engines/counters_test.cc", "CounterTruth", "OfATriad"};
inline constexpr TruthTest kLinesOfKernels{"engines/wait_truth_test.cc", "SlowVram",
                                           "KernelsWaitForEachOthersLines"};
inline constexpr TruthTest kWaitsForMemory{"engines/counters_test.cc", "CounterTruth", "OfWaitsForMemory"};
inline constexpr TruthTest kFloatingPoint{"engines/counters_test.cc", "CounterTruth",
                                          "OfFloatingPointOfEachWidth"};
inline constexpr TruthTest kTranslations{"engines/counters_test.cc", "CounterTruth", "OfTranslations"};
inline constexpr TruthTest kCopysTranslations{"engines/counters_test.cc", "CounterTruth",
                                              "OfACopysTranslations"};
inline constexpr TruthTest kCoresTranslations{"card/latency_test.cc", "CardLatency",
                                              "OfTranslationsOfTheCore"};
inline constexpr TruthTest kClasses{"engines/class_truth_test.cc", "ClassTruth", "OfAKernel"};
inline constexpr TruthTest kWritesOfALink{"link/link_port_test.cc", "LinkPortTest",
                                          "WritesLandInTheOwnersMemoryAtTheirArrival"};
inline constexpr std::string_view kNthActivity = "ORR_CTR_CORE_OTHER_PS + n";
inline constexpr std::string_view kNthClass = "ORR_CTR_VECTOR_SCALAR_INT + n";
inline constexpr std::string_view kAllClasses = "kInt, kMulDiv, kLoads, kStores, kJumps, kAtomics, kSystem";

inline constexpr CounterTruth kCounterTruths[] = {
    // --- the card ---
    {ORR_CTR_UNIMPLEMENTED, {"probes/probes_test.cc", "Errors", "CountEachKindAndNameTheCause"}},
    {ORR_CTR_RESETS, {"card/reset_test.cc", "Reset", "ByTheResetRegister"}},
    {ORR_CTR_PREEMPTIONS,
     {"engines/preempt_test.cc", "PreemptTest", "AtRandomTimesOnRandomPortsTheResultIsTheSame"}},
    {ORR_CTR_SAVED_BYTES, {"engines/preempt_test.cc", "PreemptTest", "NowTakesTwoMicrosecondsAndTheSave"}},
    // Not a truth but a check that two agree: the card's clock is what all else is told from.
    {ORR_CTR_TIME_PS, {"card/snapshot_test.cc", "Snapshot", "HasAllCountersWhereItWasTold"}},

    // --- the control core: a replay of the firmware, instruction by instruction ---
    {ORR_CTR_CORE_INSTRUCTIONS, kCoresTime},
    {ORR_CTR_CORE_BUSY_PS, kCoresTime},
    {ORR_CTR_CORE_OTHER_PS, kCoresTime},
    {ORR_CTR_CORE_PACKETS_PS, kCoresTime, kNthActivity},
    {ORR_CTR_CORE_SCHEDULING_PS, kCoresTime, kNthActivity},
    {ORR_CTR_CORE_COMPLETIONS_PS, kCoresTime, kNthActivity},
    {ORR_CTR_CORE_MAILBOX_PS, kCoresTime, kNthActivity},
    {ORR_CTR_CORE_LINKS_PS, {"card/counter_truth_test.cc", "CounterTruth", "OfWhatTheCoreDoesForLinks"}},
    {ORR_CTR_CORE_INT, kCoresInstructions},
    {ORR_CTR_CORE_MULDIV, kCoresInstructions, kAllClasses},
    {ORR_CTR_CORE_LOADS, kCoresInstructions, kAllClasses},
    {ORR_CTR_CORE_STORES, kCoresInstructions, kAllClasses},
    {ORR_CTR_CORE_JUMPS, kCoresInstructions, kAllClasses},
    {ORR_CTR_CORE_ATOMICS, {"card/counter_truth_test.cc", "CounterTruth", "OfTheCoresAtomics"}},
    {ORR_CTR_CORE_SYSTEM, kCoresInstructions, kAllClasses},
    {ORR_CTR_CORE_INTERRUPTS, {"card/counter_truth_test.cc", "CounterTruth", "OfTheCoresInterrupts"}},
    {ORR_CTR_CORE_STALL_PS, {"card/soc_test.cc", "Soc", "WaitsForMemoryAreCounted"}},
    {ORR_CTR_CORE_RESTARTS, {"card/restart_test.cc", "Restart", "KeepsSramOutsideTheImage"}},
    {ORR_CTR_CORE_TLB_LOOKUPS, kCoresTranslations},
    {ORR_CTR_CORE_TLB_MISSES, kCoresTranslations},
    {ORR_CTR_CORE_TLB_WALKED, kCoresTranslations},
    {ORR_CTR_CORE_IDLE_PS, {"card/counter_truth_test.cc", "IdleTruth", "OfTheCore"}},

    // --- the host ---
    {ORR_CTR_DOORBELLS, {"card/doorbell_test.cc", "CardDoorbells", "ReachTheFirmware"}},
    {ORR_CTR_KICKS, {"card/doorbell_test.cc", "CardDoorbells", "ReachTheFirmware"}},
    {ORR_CTR_HOST_INTERRUPTS,
     {"card/registers_test.cc", "HostRegistersTest", "InterruptsAreStatusMaskAndClear"}},
    {ORR_CTR_GUEST_ERRORS,
     {"card/registers_test.cc", "HostRegistersTest", "InterruptsAreStatusMaskAndClear"}},
    {ORR_CTR_DMA_MAPS, {"card/reset_test.cc", "DmaMaps", "OverlapsAreRefusedAndUnknownUnmapsAreFine"}},
    {ORR_CTR_PCIE_READ_BYTES, kCoresMemory},
    {ORR_CTR_PCIE_WRITE_BYTES, kCoresMemory},
    {ORR_CTR_PCIE_WAIT_PS, {"engines/wait_truth_test.cc", "CopyWaits", "OfCopiesByChanceAreThoseOfAReplay"}},
    {ORR_CTR_DOORBELL_POPS, {"card/slots_test.cc", "Slots", "DoorbellsWaitUntilTheyAreTaken"}},
    {ORR_CTR_DOORBELL_WAIT_PS, {"card/slots_test.cc", "Slots", "DoorbellsWaitUntilTheyAreTaken"}},

    // --- the launch unit ---
    {ORR_CTR_SLOT_PACKETS, {"card/slots_test.cc", "Slots", "PacketsWaitForThoseBeforeThem"}},
    {ORR_CTR_RING_PACKETS, {"card/slots_test.cc", "Slots", "CountWhatWaits"}},
    {ORR_CTR_RING_WAIT_PS, {"card/slots_test.cc", "Slots", "CountWhatWaits"}},

    // --- copy engines ---
    {ORR_CTR_COPY_JOBS, {"engines/copy_time_test.cc", "CopyTime", "AtEachMomentIsAllThatHasPassed"}},
    {ORR_CTR_COPY_BYTES, {"engines/counters_test.cc", "CounterTruth", "OfCopies"}},
    {ORR_CTR_COPY_BUSY_PS, {"engines/counters_test.cc", "CounterTruth", "OfCopies"}},
    {ORR_CTR_COPY_IDLE_PS, {"card/counter_truth_test.cc", "IdleTruth", "OfCopyEngines"}},
    {ORR_CTR_COPY_SETUP_PS, kCopiesAlone, "Ledger::kSetup"},
    {ORR_CTR_COPY_MOVE_PS, kCopiesAlone, "Ledger::kMove"},
    {ORR_CTR_COPY_ROWS_PS,
     {"engines/copy_time_test.cc", "CopyTime", "OfShortRowsIsMostlyOfTheirStarts"},
     "Ledger::kRows"},
    {ORR_CTR_COPY_VRAM_PS, {"engines/wait_truth_test.cc", "CopyWaits", "AreForThePiecesOfTheOthers"}},
    {ORR_CTR_COPY_PCIE_PS, {"engines/wait_truth_test.cc", "CopyWaits", "AreForThePiecesOfTheOthers"}},
    {ORR_CTR_COPY_LATENCY_PS, kCopiesAlone, "Ledger::kLatency"},
    {ORR_CTR_COPY_TRANSLATION_PS,
     {"engines/copy_time_test.cc", "CopyTime", "OfPagesThatAreNotAtHandHasTheFirstOnesWalks"},
     "Ledger::kTranslation"},
    {ORR_CTR_COPY_TLB_LOOKUPS, kCopysTranslations},
    {ORR_CTR_COPY_TLB_MISSES, kCopysTranslations},
    {ORR_CTR_COPY_TLB_WALKED, kCopysTranslations},
    {ORR_CTR_COPY_LINK_PS, kCopiesAlone, "Ledger::kLink"},
    {ORR_CTR_COPY_CREDIT_PS,
     {"engines/copy_time_test.cc", "CopyTime", "WithoutRoomInALinkIsThatOfCredits"},
     "Ledger::kCredit"},
    {ORR_CTR_COPY_PEER_PS,
     {"engines/copy_time_test.cc", "CopyTime", "OfOneThatReadsAnotherCardIsThatOfItsAnswers"},
     "Ledger::kPeer"},

    // --- vector cores ---
    {ORR_CTR_VECTOR_JOBS, kBytesOfAKernel},
    {ORR_CTR_VECTOR_GROUPS, kBytesOfAKernel},
    {ORR_CTR_VECTOR_ITEMS, kBytesOfAKernel},
    {ORR_CTR_VECTOR_INSTRUCTIONS, kTriad},
    {ORR_CTR_VECTOR_BUSY_PS, kLinesOfKernels},
    // Not a truth but a check that three agree: how many groups threads compute is up to the host.
    {ORR_CTR_VECTOR_AHEAD, {"engines/ahead_test.cc", "Ahead", "ALaunchSaysHowMuchOfItRanInOrderAndWhy"}},
    {ORR_CTR_VECTOR_IDLE_PS, {"card/counter_truth_test.cc", "IdleTruth", "OfVectorCores"}},
    {ORR_CTR_VECTOR_LATENCY_PS, kLinesOfKernels},
    {ORR_CTR_VECTOR_BANDWIDTH_PS, kLinesOfKernels},
    {ORR_CTR_VECTOR_LINK_PS, {"engines/wait_truth_test.cc", "PeerWaits", "KernelsWaitForEachAnswer"}},
    {ORR_CTR_VECTOR_LAUNCH_PS, kWaitsForMemory},
    {ORR_CTR_VECTOR_PAUSE_PS, {"engines/counters_test.cc", "CounterTruth", "OfPauses"}},
    {ORR_CTR_VECTOR_BARRIERS, {"engines/counters_test.cc", "CounterTruth", "OfBarriers"}},
    {ORR_CTR_VECTOR_SIMD_INT, kTriad},
    {ORR_CTR_VECTOR_SIMD_FP, {"engines/counters_test.cc", "CounterTruth", "OfAProduct"}},
    {ORR_CTR_VECTOR_SIMD_MOVES, {"engines/counters_test.cc", "CounterTruth", "OfAProduct"}},
    {ORR_CTR_VECTOR_SIMD_LOADS, kTriad},
    {ORR_CTR_VECTOR_SIMD_STORES, kTriad},
    {ORR_CTR_VECTOR_SIMD_CONFIG, kTriad},
    {ORR_CTR_VECTOR_LANES_ACTIVE, {"engines/counters_test.cc", "CounterTruth", "OfAMask"}},
    {ORR_CTR_VECTOR_LANES, {"engines/counters_test.cc", "CounterTruth", "OfAMask"}},
    {ORR_CTR_VECTOR_FLOPS_F16, kFloatingPoint},
    {ORR_CTR_VECTOR_FLOPS_F32, kFloatingPoint},
    {ORR_CTR_VECTOR_FLOPS_F64, kFloatingPoint},
    {ORR_CTR_VECTOR_TLB_LOOKUPS, kTranslations},
    {ORR_CTR_VECTOR_TLB_MISSES, kTranslations},
    {ORR_CTR_VECTOR_TLB_WALKED, kTranslations},
    {ORR_CTR_VECTOR_QUEUED_PS, {"engines/counters_test.cc", "CounterTruth", "OfKernelsThatQueue"}},
    {ORR_CTR_VECTOR_SCALAR_INT, kClasses},
    {ORR_CTR_VECTOR_SCALAR_MULDIV, kClasses, kNthClass},
    {ORR_CTR_VECTOR_SCALAR_FP, kClasses, kNthClass},
    {ORR_CTR_VECTOR_SCALAR_LOADS, kClasses, kNthClass},
    {ORR_CTR_VECTOR_SCALAR_STORES, kClasses, kNthClass},
    {ORR_CTR_VECTOR_SCALAR_JUMPS, kClasses, kNthClass},
    {ORR_CTR_VECTOR_SCALAR_ATOMICS, kClasses, kNthClass},
    {ORR_CTR_VECTOR_SCALAR_SYSTEM, kClasses, kNthClass},

    // --- translations ---
    {ORR_CTR_MMU_TLB_HITS, {"memory/mmu_test.cc", "MmuTest", "CountsEachLookup"}},
    {ORR_CTR_MMU_TLB_MISSES, {"memory/mmu_test.cc", "MmuTest", "CountsEachLookup"}},
    {ORR_CTR_MMU_FAULTS, {"memory/mmu_test.cc", "MmuTest", "NamesEachFault"}},

    // --- memory of the card ---
    {ORR_CTR_VRAM_BYTES, kWaitsForMemory},
    {ORR_CTR_VRAM_CORE_BYTES, kCoresMemory},
    {ORR_CTR_VRAM_COPY_BYTES, {"engines/counters_test.cc", "CounterTruth", "OfACopysTranslations"}},
    {ORR_CTR_VRAM_VECTOR_BYTES, kTranslations},
    {ORR_CTR_VRAM_LINK_BYTES, {"card/counter_truth_test.cc", "LinkTruth", "OfTheOwnersMemory"}},
    {ORR_CTR_VRAM_WAIT_PS, {"engines/wait_truth_test.cc", "CopyWaits", "OfCopiesByChanceAreThoseOfAReplay"}},

    // --- semaphores, links, barriers ---
    {ORR_CTR_SEMAPHORE_SIGNALS, {"card/soc_test.cc", "Soc", "SemaphoresGetTimeAndValue"}},
    {ORR_CTR_LINK_TX_MESSAGES, kWritesOfALink},
    {ORR_CTR_LINK_TX_BYTES, kWritesOfALink},
    {ORR_CTR_LINK_RX_MESSAGES, kWritesOfALink},
    {ORR_CTR_LINK_RX_BYTES, kWritesOfALink},
    {ORR_CTR_LINK_DENIED, {"card/counter_truth_test.cc", "LinkTruth", "OfTheOwnersMemory"}},
    {ORR_CTR_LINK_STRAGGLERS, {"link/link_port_test.cc", "LinkPortTest", "CountsStragglers"}},
    {ORR_CTR_LINK_FORWARDED, {"link/forward_test.cc", "Forward", "TimesAreExact"}},
    {ORR_CTR_LINK_DROPPED, {"link/forward_test.cc", "Forward", "NothingGoesWithoutLeaveOrRoute"}},
    {ORR_CTR_BARRIER_RELEASES, {"link/barrier_test.cc", "Latency", "IsTheLongestWay"}},
    {ORR_CTR_BARRIER_FAILURES,
     {"link/barrier_test.cc", "BarrierTest", "AMemberThatFailsTellsAllTheFirstCause"}},
    {ORR_CTR_BARRIER_DENIED, {"link/barrier_test.cc", "BarrierTest", "ClearedWithoutAWordItIsGoneQuietly"}},
    {ORR_CTR_LINK_RETRIES, {"card/counter_truth_test.cc", "LinkTruth", "OfFramesThatWereSentAgain"}},
    {ORR_CTR_LINK_WAIT_PS, {"card/counter_truth_test.cc", "LinkTruth", "OfHowLongMessagesWaitForOthers"}},
    {ORR_CTR_LINK_CREDIT_PS, {"card/congestion_test.cc", "Congested", "TheTimeWithoutRoomIsCounted"}},
};

}  // namespace orrery::emu::test
