// The CSRs that a hart has itself.
#include "emulator/core/core.h"
#include "emulator/core/host_fp.h"
#include "emulator/core/vector/execute.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kMisaBase =
    2ull << 62 | 1u << ('I' - 'A') | 1u << ('M' - 'A') | 1u << 0 | 1u << ('C' - 'A');
constexpr std::uint64_t kMisaVector = 1u << ('V' - 'A');
constexpr std::uint64_t kMisaFp = 1u << ('F' - 'A') | 1u << ('D' - 'A');

enum : std::uint32_t {
    kFflags = 0x001,
    kFrm = 0x002,
    kFcsr = 0x003,
    kVstart = 0x008,
    kVxsat = 0x009,
    kVxrm = 0x00a,
    kVcsr = 0x00f,
    kMstatus = 0x300,
    kMisa = 0x301,
    kMie = 0x304,
    kMtvec = 0x305,
    kMcountinhibit = 0x320,
    kMscratch = 0x340,
    kMepc = 0x341,
    kMcause = 0x342,
    kMtval = 0x343,
    kMip = 0x344,
    kMcycle = 0xb00,
    kMinstret = 0xb02,
    kCycle = 0xc00,
    kInstret = 0xc02,
    kVl = 0xc20,
    kVtype = 0xc21,
    kVlenb = 0xc22,
    kMvendorid = 0xf11,
    kMarchid = 0xf12,
    kMimpid = 0xf13,
    kMhartid = 0xf14,
    kMconfigptr = 0xf15,
};

// Counters and events 3 to 31: there are none, they read as zero.
bool is_hpm(std::uint32_t number) {
    return (number >= 0xb03 && number <= 0xb1f) || (number >= 0x323 && number <= 0x33f) ||
           (number >= 0xc03 && number <= 0xc1f);
}

bool fp_usable(const Core* core) {
    return core->config.fp && (core->mstatus & kMstatusFs) != 0;
}

bool access_fp(Core* core, std::uint32_t number, std::uint64_t& value) {
    if (!fp_usable(core)) return false;
    if (core->vector != nullptr) compute_products(core);
    const std::uint64_t flags = collect_fflags(core);
    const std::uint64_t mode = core->frm;
    value = number == kFflags ? flags : number == kFrm ? mode : mode << 5 | flags;
    return true;
}

bool write_fp(Core* core, std::uint32_t number, std::uint64_t value) {
    if (!fp_usable(core)) return false;
    if (core->vector != nullptr) compute_products(core);
    if (number != kFrm) set_fflags(core, value);
    if (number == kFrm) core->frm = value & 7;
    if (number == kFcsr) core->frm = value >> 5 & 7;
    core->mstatus |= kMstatusFs;
    return true;
}

}  // namespace

std::uint64_t legal_mstatus(const Config& config, std::uint64_t value) {
    const std::uint64_t writable =
        kMstatusMie | kMstatusMpie | (config.fp ? kMstatusFs : 0) | (config.vlen != 0 ? kMstatusVs : 0);
    return (value & writable) | kMstatusMpp;
}

// Direct or vectored; the other modes are reserved.
std::uint64_t legal_mtvec(std::uint64_t value) {
    return value & ~std::uint64_t{2};
}

bool read_csr(Core* core, std::uint32_t number, std::uint64_t& value) {
    value = 0;
    switch (number) {
        case kFflags:
        case kFrm:
        case kFcsr:
            return access_fp(core, number, value);
        case kVstart:
        case kVxsat:
        case kVxrm:
        case kVcsr:
        case kVl:
        case kVtype:
        case kVlenb:
            return read_vector_csr(core, number, value);
        case kMstatus:
            value = core->mstatus;
            if ((value & kMstatusFs) == kMstatusFs || (value & kMstatusVs) == kMstatusVs) value |= kMstatusSd;
            return true;
        case kMisa:
            value = kMisaBase | (core->config.fp ? kMisaFp : 0) | (core->config.vlen != 0 ? kMisaVector : 0);
            return true;
        case kMie:
            value = core->mie;
            return true;
        case kMtvec:
            value = core->mtvec;
            return true;
        case kMcountinhibit:
        case kMconfigptr:
            return true;
        case kMscratch:
            value = core->mscratch;
            return true;
        case kMepc:
            value = core->mepc;
            return true;
        case kMcause:
            value = core->mcause;
            return true;
        case kMtval:
            value = core->mtval;
            return true;
        case kMip:
            value = core->mip;
            return true;
        case kMcycle:
        case kCycle:
            value = core->steps() + core->mcycle_delta;
            return true;
        case kMinstret:
        case kInstret:
            value = core->steps() + core->minstret_delta;
            return true;
        case kMvendorid:
            value = core->config.vendor_id;
            return true;
        case kMarchid:
            value = core->config.arch_id;
            return true;
        case kMimpid:
            value = core->config.impl_id;
            return true;
        case kMhartid:
            value = core->config.hart_id;
            return true;
        default:
            break;
    }
    if (is_hpm(number)) return true;
    return core->bus->read_csr(number, value);
}

bool write_csr(Core* core, std::uint32_t number, std::uint64_t value) {
    switch (number) {
        case kFflags:
        case kFrm:
        case kFcsr:
            return write_fp(core, number, value);
        case kVstart:
        case kVxsat:
        case kVxrm:
        case kVcsr:
            return write_vector_csr(core, number, value);
        case kMstatus:
            core->f_unsure = true;
            core->mstatus = legal_mstatus(core->config, value);
            core->attention = true;
            return true;
        case kMie:
            core->mie = value & kIrqMask;
            core->attention = true;
            return true;
        case kMisa:
        case kMip:
        case kMcountinhibit:
            return true;
        case kMtvec:
            core->mtvec = legal_mtvec(value);
            return true;
        case kMscratch:
            core->mscratch = value;
            return true;
        case kMepc:
            core->mepc = value & ~std::uint64_t{1};
            return true;
        case kMcause:
            core->mcause = value;
            return true;
        case kMtval:
            core->mtval = value;
            return true;
        // This instruction still counts itself, and must not: what is read next is what was written.
        case kMcycle:
            core->mcycle_delta = value - (core->steps() + 1);
            return true;
        case kMinstret:
            core->minstret_delta = value - (core->steps() + 1);
            return true;
        default:
            break;
    }
    if (is_hpm(number)) return true;
    const HostFpPause pause(core);
    return core->bus->write_csr(number, value);
}

}  // namespace orrery::emu
