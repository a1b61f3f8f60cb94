#include "emulator/core/snapshot.h"

#include <algorithm>
#include <iterator>

#include "emulator/core/core.h"
#include "emulator/core/hart_impl.h"

namespace orrery::emu {

struct Hart::Snapshot::Parts {
    std::uint64_t x[33], f[32];
    std::uint64_t mstatus;
    std::uint8_t frm, fflags;
    bool f_unsure;
    std::uint64_t steps, counted_steps, extra_cycles, minstret_delta, mcycle_delta;
    std::uint64_t pc, mie, mip, mtvec, mscratch, mepc, mcause, mtval;
    std::uint64_t reservation_address, reservation_value;
    std::uint8_t reservation_size;
    bool waiting;
    std::uint64_t memory_wait;
    Meter meter;
    WorkCounts work_counts;

    // Of the vector file.
    std::uint8_t v[kVectorRegisters * kMaxVlenBytes];
    bool touched;
    std::uint64_t vl, vtype, vstart;
    std::uint8_t vxrm, vxsat;
    int sew_log2, lmul_log2;
    std::uint64_t vlmax;
    std::uint64_t arithmetic_until, memory_until;
    std::uint64_t began[VectorFile::kAhead];
    std::size_t oldest;
    WorkCounts work;
    std::uint64_t plain[VectorFile::kPlainKinds];
    VectorFile::Common common;
};

Hart::Snapshot::Snapshot() : parts_(std::make_unique<Parts>()) {}
Hart::Snapshot::~Snapshot() = default;

namespace {

// The same fields in both directions.
template <class To, class From>
void copy_scalars(To& to, const From& from) {
    std::copy_n(from.x, std::size(from.x), to.x);
    std::copy_n(from.f, std::size(from.f), to.f);
    to.mstatus = from.mstatus;
    to.frm = from.frm;
    to.fflags = from.fflags;
    to.f_unsure = from.f_unsure;
    to.counted_steps = from.counted_steps;
    to.extra_cycles = from.extra_cycles;
    to.minstret_delta = from.minstret_delta;
    to.mcycle_delta = from.mcycle_delta;
    to.pc = from.pc;
    to.mie = from.mie;
    to.mip = from.mip;
    to.mtvec = from.mtvec;
    to.mscratch = from.mscratch;
    to.mepc = from.mepc;
    to.mcause = from.mcause;
    to.mtval = from.mtval;
    to.reservation_address = from.reservation_address;
    to.reservation_value = from.reservation_value;
    to.reservation_size = from.reservation_size;
    to.waiting = from.waiting;
    to.memory_wait = from.memory_wait;
    to.meter = from.meter;
    to.work_counts = from.work_counts;
}

template <class To, class From>
void copy_vectors(To& to, const From& from, std::size_t bytes) {
    std::copy_n(from.v, bytes, to.v);
    to.touched = from.touched;
    to.vl = from.vl;
    to.vtype = from.vtype;
    to.vstart = from.vstart;
    to.vxrm = from.vxrm;
    to.vxsat = from.vxsat;
    to.sew_log2 = from.sew_log2;
    to.lmul_log2 = from.lmul_log2;
    to.vlmax = from.vlmax;
    to.arithmetic_until = from.arithmetic_until;
    to.memory_until = from.memory_until;
    std::copy_n(from.began, VectorFile::kAhead, to.began);
    to.oldest = from.oldest;
    to.work = from.work;
    std::copy_n(from.plain, VectorFile::kPlainKinds, to.plain);
    to.common = from.common;
}

}  // namespace

void Hart::take_snapshot(Snapshot& snapshot) const {
    const Core& core = impl_->core;
    Snapshot::Parts& parts = *snapshot.parts_;
    copy_scalars(parts, core);
    parts.steps = core.steps();
    if (core.vector != nullptr)
        copy_vectors(parts, *core.vector, std::size_t{kVectorRegisters} * core.vector->vlen_bytes);
}

void Hart::go_back(const Snapshot& snapshot) {
    Core& core = impl_->core;
    const Snapshot::Parts& parts = *snapshot.parts_;
    copy_scalars(core, parts);
    core.steps_end = parts.steps;
    core.left = 0;
    core.has_trap = core.has_stop = core.stop_requested = core.held = core.gathers = false;
    if (core.vector != nullptr)
        copy_vectors(*core.vector, parts, std::size_t{kVectorRegisters} * core.vector->vlen_bytes);
}

void Hart::set_overlay(Overlay* overlay) {
    impl_->core.overlay = overlay;
    if (overlay != nullptr) impl_->core.meter.come_by_again();
}

bool Hart::knows_overlay() const {
    return impl_->core.pages_of == impl_->core.overlay;
}

void Hart::forget_pages() {
    drop_pages(&impl_->core);
}

void Hart::forget_page(std::uint64_t va) {
    drop_page(&impl_->core, va);
}

void Hart::hold() {
    Core& core = impl_->core;
    if (core.running) core.held = core.attention = true;
}

}  // namespace orrery::emu
