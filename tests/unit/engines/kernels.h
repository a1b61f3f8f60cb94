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
    kKernels,
};

inline constexpr unsigned long long kImageBase = 0x40000000;

}  // namespace orrery::emu::test
