// Numbers of the test kernels, in the order of the table at the start of their image.
#pragma once

namespace orrery::emu::test {

enum Kernel : unsigned {
    kHistogram,
    kAtomics,
    kLocal,
    kFloat,
    kIds,
    kRegisters,
    kClock,
    kIllegal,
    kEcall,
    kLoop,
    kJump,
    kLoad,
    kStore,
    kMisalignedAtomic,
    kRecurse,
    kWaitForever,
    kMark,
    kSpin,
    kMix,
    kTree,
    kBarrierEnded,
    kBarrierLate,
    kBarrierOther,
    kDeep,
    kRounding,
    kAssert,
    kVectors,
    kEveryAtomic,
    kTriad,
    kChase,
    kGather,
    kFused,
    kMasked,
    kShare,
    kShareRows,
    kWriteOne,
    kMixAlone,
    kRace,
    kHandOver,
    kStopAt,
    kOldStack,
    kFollow,
    kPost,
    kMailbox,
    kProduct,
    kTakeTurns,
    kSum,
    kCopyRows,
    kPublish,
    kPauses,
    kKernels,
};

// What the items of kShare do with work-group memory, or with memory of all groups.
enum Sharing : unsigned long long {
    kNeighbour,         // write their word, read the next one's
    kNeighbourBarrier,  // with a barrier in between
    kRounds,            // the same twice, without a barrier before the second write
    kOneWord,           // all write one word
    kCount,             // all add to one word, atomically
    kCountAndRead,      // and the last reads it as it is
    kMessage,           // item 0 releases a flag behind a word, all others acquire it and read the word
    kMessageRelaxed,    // the same without release
    kTicket,            // take tickets and pass a word on in their order
    kTicketRelaxed,
    kBytes,         // each writes its byte
    kHalves,        // each writes two bytes, at the place of its byte
    kNoSum,         // read what nobody writes
    kFences,        // kTicketRelaxed with fences around it
    kOutsideLocal,  // write behind local_bytes
    kBelowStack,
    kFreshStack,  // read their stack before they write there
};

inline constexpr unsigned long long kImageBase = 0x40000000;

}  // namespace orrery::emu::test
