#include "tests/unit/riscv/model/execute.h"

namespace orrery::riscv::model {
namespace {

// The first of so many bytes that is not there; their end if all are.
u64 first_missing(u64 address, unsigned bytes) {
    for (u64 at = address; at != address + bytes; ++at)
        if (at < kWindow || at - kWindow >= kWindowBytes) return at;
    return address + bytes;
}

}  // namespace

Result do_memory(Execution& e, const Access& access) {
    State& state = e.state;
    const Group& data = e.shape.vd;
    const unsigned width = data.kind == Group::kMask ? 8 : data.eew, bytes = width / 8;
    u64 count = e.old.vl;
    unsigned segment = data.fields;
    if (access.kind == Memory::kMaskBits) count = (e.old.vl + 7) / 8;
    if (access.kind == Memory::kWhole) {
        count = u64{e.fields.nf} * state.vlenb / bytes;
        segment = 1;
    }
    const u64 base = e.old.x[e.fields.vs1];
    for (u64 i = e.old.vstart; i < count; ++i) {
        if (!e.active(i)) continue;
        u64 address = base + i * segment * bytes;
        if (access.kind == Memory::kStrided) address = base + i * e.old.x[e.fields.vs2];
        if (access.kind == Memory::kIndexed) address = base + e.get(e.shape.vs2, i);
        for (unsigned field = 0; field < segment; ++field) {
            const u64 at = address + field * bytes;
            const unsigned first = data.first + field * (data.registers() / data.fields);
            if (const u64 missing = first_missing(at, bytes); missing != at + bytes) {
                if (access.kind == Memory::kFaultFirst && i > 0) {
                    state.vl = i;
                    return {};
                }
                state.vstart = i;
                return {access.store ? Outcome::kStoreFault : Outcome::kLoadFault, missing};
            }
            if (access.store) {
                const u64 value = e.old.element(first, i, width);
                for (unsigned byte = 0; byte < bytes; ++byte)
                    state.memory.at(at - kWindow + byte) = static_cast<u8>(value >> (8 * byte));
            } else {
                u64 value = 0;
                for (unsigned byte = 0; byte < bytes; ++byte)
                    value |= u64{state.memory.at(at - kWindow + byte)} << (8 * byte);
                state.set_element(first, i, width, value);
            }
        }
    }
    return {};
}

}  // namespace orrery::riscv::model
