#include "emulator/core/hart.h"

namespace orrery::emu {

const char* to_string(StopReason reason) {
    switch (reason) {
        case StopReason::kBudget:
            return "budget used up";
        case StopReason::kWfi:
            return "waiting for an interrupt";
        case StopReason::kTrap:
            return "exception";
        case StopReason::kExit:
            return "exit address reached";
        case StopReason::kEbreak:
            return "ebreak";
        case StopReason::kBreakpoint:
            return "breakpoint";
        case StopReason::kHeld:
            return "held";
        case StopReason::kRequested:
            return "stop requested";
    }
    return "unknown stop reason";
}

const char* to_string(Cause cause) {
    switch (cause) {
        case Cause::kFetchAccess:
            return "instruction access fault";
        case Cause::kIllegal:
            return "illegal instruction";
        case Cause::kBreakpoint:
            return "breakpoint";
        case Cause::kLoadMisaligned:
            return "load address misaligned";
        case Cause::kLoadAccess:
            return "load access fault";
        case Cause::kStoreMisaligned:
            return "store address misaligned";
        case Cause::kStoreAccess:
            return "store access fault";
        case Cause::kEcall:
            return "environment call";
    }
    return "unknown exception";
}

}  // namespace orrery::emu
