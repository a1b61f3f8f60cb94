#include "emulator/card/kernel_target.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <orrery/hw/engine.h>
#include <orrery/hw/kernel_abi.h>
#include <orrery/hw/mmu.h>

#include "emulator/gdb/vector_registers.h"

namespace orrery::emu {

namespace {

constexpr std::size_t kMaxModules = 64;
constexpr std::uint32_t kFflags = 1, kFrm = 2, kVcsr = 15, kVlenb = 0xc22;

std::string three(const std::uint64_t (&numbers)[3]) {
    return fmt::format("({},{},{})", numbers[0], numbers[1], numbers[2]);
}

}  // namespace

KernelTarget::KernelTarget(KernelDebugger& debugger, std::function<void(const std::string& text)> note)
    : debugger_(debugger), note_(std::move(note)), description_(gdb::vector_description(debugger.vlen())) {}

std::vector<gdb::Target::Thread> KernelTarget::threads() {
    std::vector<Thread> threads;
    for (std::uint32_t core = 0; core < debugger_.cores(); ++core) {
        if (const auto place = debugger_.place(core))
            threads.push_back({core + 1ull, fmt::format("core {}, group {} item {}", core,
                                                        three(place->group), three(place->item))});
    }
    if (threads.empty()) threads.push_back({1, "core 0, idle: no kernel runs"});
    return threads;
}

bool KernelTarget::select(std::uint64_t thread) {
    if (thread == 0 || thread > debugger_.cores()) return false;
    core_ = static_cast<std::uint32_t>(thread - 1);
    return true;
}

std::uint64_t KernelTarget::constant(std::uint32_t csr) const {
    const VectorState vectors = debugger_.vectors(core_);
    switch (csr) {
        case kFflags:
            return debugger_.state(core_).fcsr & 31;
        case kFrm:
            return debugger_.state(core_).fcsr >> 5;
        case kVcsr:
            return std::uint64_t{vectors.vxrm} << 1 | vectors.vxsat;
        case kVlenb:
            return debugger_.vlen() / 8;
        default:
            return debugger_.csr(core_, csr);
    }
}

std::vector<std::uint8_t> KernelTarget::read_register(std::uint64_t number) {
    gdb::VectorHart hart;
    if (gdb::is_vector_register(number))
        hart.vectors = debugger_.vectors(core_);
    else
        hart.state = debugger_.state(core_);
    const auto bytes = gdb::register_bytes(hart, number, debugger_.vlen());
    if (!bytes.empty()) return {bytes.begin(), bytes.end()};
    const std::uint32_t csr = gdb::csr_number(number);
    const bool of_card = csr >= ORR_CSR_GROUP_X && csr <= ORR_CSR_CORE;
    if (!of_card && csr != kFflags && csr != kFrm && csr != kVcsr && csr != kVlenb) return {};
    const std::uint64_t value = constant(csr);
    std::vector<std::uint8_t> out(csr == kFflags || csr == kFrm ? 4 : 8);
    std::memcpy(out.data(), &value, out.size());
    return out;
}

gdb::Written KernelTarget::write_register(std::uint64_t number, std::span<const std::uint8_t> bytes) {
    gdb::VectorHart hart;
    const bool vector = gdb::is_vector_register(number);
    if (vector)
        hart.vectors = debugger_.vectors(core_);
    else
        hart.state = debugger_.state(core_);
    const auto place = gdb::register_bytes(hart, number, debugger_.vlen());
    if (place.empty())
        return read_register(number).empty() ? gdb::Written::kNoSuchRegister : gdb::Written::kNotAllowed;
    if (place.size() != bytes.size()) return gdb::Written::kWrongSize;
    std::ranges::copy(bytes, place.begin());
    const bool done =
        vector ? debugger_.set_vectors(core_, hart.vectors) : debugger_.set_state(core_, hart.state);
    return done ? gdb::Written::kDone : gdb::Written::kNotAllowed;
}

bool KernelTarget::read(std::uint64_t address, std::span<std::uint8_t> out) {
    return debugger_.read(core_, address, out);
}

bool KernelTarget::write(std::uint64_t address, std::span<const std::uint8_t> in) {
    return debugger_.write(core_, address, in);
}

bool KernelTarget::insert_breakpoint(std::uint64_t address) {
    if (std::ranges::find(breakpoints_, address) != breakpoints_.end()) return true;
    if (breakpoints_.size() == Hart::kMaxBreakpoints) return false;
    breakpoints_.push_back(address);
    return debugger_.set_breakpoints(breakpoints_);
}

bool KernelTarget::remove_breakpoint(std::uint64_t address) {
    std::erase(breakpoints_, address);
    return debugger_.set_breakpoints(breakpoints_);
}

bool KernelTarget::insert_watchpoint(std::uint64_t address, std::uint64_t bytes, gdb::Watch kind) {
    if (debugger_.checked()) {
        note_("no watchpoint of gdb: a card that was started with --check has none, start it without");
        return false;
    }
    if (watches_.size() == gdb::kMaxWatches || !debugger_.place(core_)) return false;
    watches_.push_back({gdb::range_of(address, bytes, kind), debugger_.owner(core_, address)});
    debugger_.set_watches(watches_);
    return true;
}

bool KernelTarget::remove_watchpoint(std::uint64_t address, std::uint64_t bytes, gdb::Watch kind) {
    const WatchRange range = gdb::range_of(address, bytes, kind);
    const auto at = std::ranges::find(watches_, range, &KernelWatch::range);
    if (at == watches_.end()) return true;
    watches_.erase(at);
    debugger_.set_watches(watches_);
    return true;
}

bool KernelTarget::learn(std::uint32_t core) {
    const auto place = debugger_.place(core);
    if (!place) return false;
    const auto read = [&](std::uint64_t va, std::span<std::uint8_t> out) {
        return debugger_.read(core, va, out);
    };
    auto module = find_module(place->entry, read);
    if (!module || std::ranges::find(modules_, *module) != modules_.end()) return false;
    // What was there before is gone.
    std::erase_if(modules_, [&](const KernelModule& old) { return old.base == module->base; });
    if (modules_.size() == kMaxModules) modules_.erase(modules_.begin());
    modules_.push_back(*std::move(module));
    return true;
}

std::string KernelTarget::libraries() {
    std::string out = "<library-list version=\"1.0\">\n";
    for (const KernelModule& each : modules_)
        out += fmt::format("<library name=\"{}\"><segment address=\"{:#x}\"/></library>\n", each.name,
                           each.base + each.first);
    return out + "</library-list>\n";
}

std::string KernelTarget::monitor(const std::string& command) {
    if (command != "modules") return "modules\n";
    std::string out;
    for (const KernelModule& each : modules_)
        out += fmt::format("add-symbol-file {} -o {:#x}\n", each.name, each.base);
    return out.empty() ? "no module has run since this debugger came\n" : out;
}

void KernelTarget::resume(gdb::Resume how) {
    interrupted_ = false;
    if (how == gdb::Resume::kStep)
        debugger_.step(core_);
    else
        debugger_.resume();
}

bool KernelTarget::trap(gdb::Stop& stop, const KernelStop& why) const {
    constexpr std::uint64_t kIllegal = 2, kBreakpoint = 3;
    stop.kind = gdb::Stop::Kind::kSignal;
    if (why.status == ORR_DONE_FAULT)
        stop.signal = why.fault == ORR_FAULT_MISALIGNED ? gdb::kSignalBus : gdb::kSignalSegment;
    else if (why.fault == kIllegal)
        stop.signal = gdb::kSignalIllegal;
    else
        stop.signal = why.fault == kBreakpoint ? gdb::kSignalTrap : gdb::kSignalAbort;
    return true;
}

bool KernelTarget::poll(gdb::Stop& stop) {
    if (!debugger_.stopped()) return false;
    const KernelStop& why = debugger_.stop();
    stop = {.thread = why.core + 1ull};
    switch (why.kind) {
        case KernelStop::Kind::kAsked:
            stop.kind = interrupted_ ? gdb::Stop::Kind::kInterrupt : gdb::Stop::Kind::kStep;
            stop.thread = threads().front().id;
            return true;
        case KernelStop::Kind::kStep:
            stop.kind = gdb::Stop::Kind::kStep;
            return true;
        case KernelStop::Kind::kBreakpoint:
            stop.kind = gdb::Stop::Kind::kBreakpoint;
            return true;
        case KernelStop::Kind::kWatchpoint:
            stop.kind = gdb::Stop::Kind::kWatchpoint;
            stop.address = why.address;
            stop.watch = why.read ? gdb::Watch::kRead : gdb::Watch::kWrite;
            for (const KernelWatch& each : watches_) {
                const WatchRange& range = each.range;
                if (why.address + 8 > range.address && why.address < range.address + range.bytes &&
                    range.on_read && range.on_write)
                    stop.watch = gdb::Watch::kAccess;
            }
            return true;
        case KernelStop::Kind::kTrap:
            return trap(stop, why);
        case KernelStop::Kind::kLaunch:
            stop.kind = gdb::Stop::Kind::kLibraries;
            if (learn(why.core)) return true;
            debugger_.resume();
            return false;
    }
    return true;
}

void KernelTarget::interrupt() {
    interrupted_ = true;
    debugger_.stop_now();
}

void KernelTarget::attach() {
    note_("gdb is at the kernels: the card's model time stands still");
    debugger_.attach();
    for (std::uint32_t core = 0; core < debugger_.cores(); ++core)
        learn(core);
    select(threads().front().id);
}

void KernelTarget::detach() {
    breakpoints_.clear();
    watches_.clear();
    modules_.clear();
    debugger_.detach();
    note_("gdb has left the kernels: they run on");
}

}  // namespace orrery::emu
