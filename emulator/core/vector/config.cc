// vtype and vl: vset{i}vl{i}, and the CSRs.
#include <bit>
#include <cstring>

#include "emulator/core/vector/counting.h"
#include "emulator/core/vector/execute.h"

namespace orrery::emu {

bool VectorFile::set_vtype(std::uint64_t value) {
    constexpr std::uint64_t kKnown = 0xff;  // vma, vta, vsew, vlmul
    constexpr int kElenLog2 = 6;
    const int lmul = static_cast<int>(value & 7) - ((value & 4) != 0 ? 8 : 0);
    const int sew = 3 + static_cast<int>(value >> 3 & 7);
    // SEW of more than LMUL * ELEN is what an implementation need not have.
    if ((value & ~kKnown) != 0 || lmul == -4 || sew > kElenLog2 || sew > kElenLog2 + lmul) {
        vtype = kVill;
        vlmax = 0;
        return false;
    }
    vtype = value;
    sew_log2 = sew;
    lmul_log2 = lmul;
    vlmax = std::uint64_t{vlen_bytes} * 8 * 8 >> (sew - lmul + 3);
    return true;
}

void VectorFile::clear() {
    if (!touched) return;
    std::memset(v, 0, std::size_t{kVectorRegisters} * vlen_bytes);
    vl = vstart = 0;
    vxrm = vxsat = 0;
    set_vtype(kVill);
    touched = false;
}

namespace {

enum : std::uint32_t {
    kVstart = 0x008,
    kVxsat = 0x009,
    kVxrm = 0x00a,
    kVcsr = 0x00f,
    kVl = 0xc20,
    kVtype = 0xc21,
    kVlenb = 0xc22,
};

std::uint64_t vtype_of(const Core* core, const Op* op) {
    return op->aux == kVsetvl ? core->x[op->rs2] : static_cast<std::uint64_t>(op->imm);
}
std::uint64_t wanted_vl(const Core* core, const Op* op) {
    if (op->aux == kVsetivli) return op->rs1;
    if (op->rs1 != 0) return core->x[op->rs1];
    return op->rd == 0 ? core->vector->vl : core->vector->vlmax;
}

Next op_vector_config(Core* core, Op* op, Left left) {
    core->publish(op, left);
    if (!vector_on(core)) {
        raise_illegal(core, op);
        ORR_STOP();
    }
    VectorFile& file = *core->vector;
    const std::uint64_t old_vl = file.vl, old_vtype = file.vtype;
    const bool legal = file.set_vtype(vtype_of(core, op));
    file.vl = legal ? std::min(wanted_vl(core, op), file.vlmax) : 0;
    file.vstart = 0;
    if (file.vl != old_vl || file.vtype != old_vtype) compute_products(core);
    if (op->rd != 0) core->x[op->rd] = file.vl;
    vector_written(core);
    ++file.work.instructions[static_cast<std::size_t>(VectorClass::kConfig)];
    op += 2;
    ORR_NEXT_SLOW(core, op, left);
}

}  // namespace

bool keeps_vl(Core* core, const Op* op) {
    VectorFile& file = *core->vector;
    if (!vector_on(core) || file.vtype == kVill || vtype_of(core, op) != file.vtype || file.vstart != 0 ||
        std::min(wanted_vl(core, op), file.vlmax) != file.vl)
        return false;
    if (op->rd != 0) core->x[op->rd] = file.vl;
    vector_written(core);
    return true;
}

bool read_vector_csr(Core* core, std::uint32_t number, std::uint64_t& value) {
    if (core->vector == nullptr || !vector_on(core)) return false;
    const VectorFile& file = *core->vector;
    switch (number) {
        case kVstart:
            value = file.vstart;
            return true;
        case kVxsat:
            value = file.vxsat;
            return true;
        case kVxrm:
            value = file.vxrm;
            return true;
        case kVcsr:
            value = static_cast<std::uint64_t>(file.vxrm << 1 | file.vxsat);
            return true;
        case kVl:
            value = file.vl;
            return true;
        case kVtype:
            value = file.vtype;
            return true;
        case kVlenb:
            value = file.vlen_bytes;
            return true;
        default:
            return false;
    }
}

bool write_vector_csr(Core* core, std::uint32_t number, std::uint64_t value) {
    if (core->vector == nullptr || !vector_on(core)) return false;
    VectorFile& file = *core->vector;
    switch (number) {
        case kVstart:
            // As many bits as the largest index needs: VLEN elements of eight bits at LMUL 8.
            file.vstart = value & (file.vlen_bytes * 8 - 1);
            break;
        case kVxsat:
            file.vxsat = value & 1;
            break;
        case kVxrm:
            file.vxrm = value & 3;
            break;
        case kVcsr:
            file.vxsat = value & 1;
            file.vxrm = value >> 1 & 3;
            break;
        default:
            return false;
    }
    vector_written(core);
    return true;
}

void add_config_handlers(HandlerTable& table) {
    table.set(OpCode::kVectorConfig, nullptr, op_vector_config);
}

}  // namespace orrery::emu
