#include "emulator/engines/kernel_debugger.h"

#include <algorithm>
#include <utility>

#include "emulator/engines/vector_core.h"

namespace orrery::emu {

KernelDebugger::KernelDebugger(std::vector<VectorCore*> cores, std::function<bool(std::uint32_t core)> works,
                               std::function<void()> attaches)
    : cores_(std::move(cores)), works_(std::move(works)), attaches_(std::move(attaches)) {}

void KernelDebugger::attach() {
    attaches_();
    attached_ = true;
    for (VectorCore* core : cores_)
        core->debug(this);
    stop_now();
}

void KernelDebugger::detach() {
    set_breakpoints({});
    set_watches({});
    for (VectorCore* core : cores_)
        core->debug(nullptr);
    launches_.clear();
    attached_ = stopped_ = false;
}

void KernelDebugger::stop_now() {
    if (stopped_ && stop_.kind == KernelStop::Kind::kLaunch)
        launches_.erase(cores_[stop_.core]->debug_launch());
    else if (stopped_)
        return;
    stand({});
}

bool KernelDebugger::new_launch(std::uint64_t serial) {
    if (!launches_.insert(serial).second) return false;
    // Each core has one at most.
    if (launches_.size() > 4 * cores_.size()) {
        launches_.clear();
        for (const VectorCore* core : cores_)
            launches_.insert(core->debug_launch());
    }
    return true;
}

void KernelDebugger::stand(const KernelStop& stop) {
    stopped_ = true;
    stop_ = stop;
}

void KernelDebugger::resume() {
    const bool told = stop_.kind != KernelStop::Kind::kAsked && stop_.kind != KernelStop::Kind::kLaunch;
    for (std::uint32_t core = 0; core < cores_.size(); ++core)
        cores_[core]->debug_resume(told && stop_.core == core);
    stopped_ = false;
}

void KernelDebugger::step(std::uint32_t core) {
    stopped_ = false;
    if (works_(core)) cores_[core]->debug_step();
    if (!stopped_) stand({.kind = KernelStop::Kind::kStep, .core = core});
}

std::uint32_t KernelDebugger::vlen() const {
    return cores_.front()->debug_vlen();
}

bool KernelDebugger::checked() const {
    return cores_.front()->debug_checked();
}

std::optional<KernelPlace> KernelDebugger::place(std::uint32_t core) const {
    if (!works_(core)) return std::nullopt;
    return cores_[core]->debug_place();
}

HartState KernelDebugger::state(std::uint32_t core) const {
    return works_(core) ? cores_[core]->debug_state() : HartState{};
}

VectorState KernelDebugger::vectors(std::uint32_t core) const {
    return works_(core) ? cores_[core]->debug_vectors() : VectorState{};
}

std::uint64_t KernelDebugger::csr(std::uint32_t core, std::uint32_t number) const {
    return works_(core) ? cores_[core]->debug_csr(number) : 0;
}

bool KernelDebugger::set_state(std::uint32_t core, const HartState& state) {
    return works_(core) && cores_[core]->set_debug_state(state);
}

bool KernelDebugger::set_vectors(std::uint32_t core, const VectorState& state) {
    return works_(core) && cores_[core]->set_debug_vectors(state);
}

bool KernelDebugger::read(std::uint32_t core, std::uint64_t va, std::span<std::uint8_t> out) const {
    return works_(core) &&
           cores_[core]->debug_memory(
               va, out.size(), Access::kLoad, [&](std::uint8_t* host, std::size_t at, std::size_t bytes) {
                   std::copy_n(host, bytes, out.begin() + static_cast<std::ptrdiff_t>(at));
               });
}

bool KernelDebugger::write(std::uint32_t core, std::uint64_t va, std::span<const std::uint8_t> in) {
    return works_(core) &&
           cores_[core]->debug_memory(
               va, in.size(), Access::kStore, [&](std::uint8_t* host, std::size_t at, std::size_t bytes) {
                   std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(at), bytes, host);
               });
}

bool KernelDebugger::set_breakpoints(std::span<const std::uint64_t> addresses) {
    breakpoints_.assign(addresses.begin(), addresses.end());
    bool all = true;
    for (VectorCore* core : cores_)
        all &= core->debug_breakpoints(breakpoints_);
    return all;
}

bool KernelDebugger::at_breakpoint(std::uint64_t pc) const {
    return std::ranges::find(breakpoints_, pc) != breakpoints_.end();
}

void KernelDebugger::set_watches(std::span<const KernelWatch> watches) {
    if (watches.empty() && watches_.empty()) return;
    watches_.assign(watches.begin(), watches.end());
    for (VectorCore* core : cores_)
        core->debug_watch();
}

std::uint32_t KernelDebugger::owner(std::uint32_t core, std::uint64_t va) const {
    return cores_[core]->debug_owner(va);
}

}  // namespace orrery::emu
