#include "emulator/api/replayer.h"

#include <algorithm>
#include <utility>

#include "emulator/trace/replayer_impl.h"

namespace orrery::emu {

const char* to_string(ReplayStop stop) {
    switch (stop) {
        case ReplayStop::kTarget:
            return "target";
        case ReplayStop::kBreakpoint:
            return "breakpoint";
        case ReplayStop::kWatchpoint:
            return "watchpoint";
        case ReplayStop::kCondition:
            return "condition";
        case ReplayStop::kEnd:
            return "end";
        case ReplayStop::kBegin:
            return "begin";
        case ReplayStop::kDiverged:
            return "diverged";
        case ReplayStop::kCancelled:
            return "cancelled";
    }
    return "unknown";
}

// --- moving ---

ReplayStop Replayer::Impl::go(std::uint64_t step) {
    const std::uint64_t target = std::min(step, end);
    const Snapshot& near = snapshots[snapshot_before(target)];
    // A short way is gone, over keyframes too: so what they say is checked.
    const bool far = target - core.step() > kSlice && near.step > core.step();
    if (target < core.step() || far) restore(near);
    do {
        const ReplayCore::Why why = run(std::min(target, core.step() + kSlice));
        if (why == ReplayCore::Why::kDiverged) return ReplayStop::kDiverged;
        if (why == ReplayCore::Why::kEnd) break;
    } while (core.step() < target);
    return step > end ? ReplayStop::kEnd : ReplayStop::kTarget;
}

void Replayer::Impl::set_limits(const ReplayLimits& limits) {
    std::vector<std::uint64_t> sorted = limits.breakpoints;
    std::ranges::sort(sorted);
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    core.set_breakpoints(sorted);
    core.set_watchpoints(limits.watchpoints);
}

ReplayStopInfo Replayer::Impl::stop_info(ReplayStop stop) const {
    ReplayStopInfo info;
    info.stop = stop;
    if (stop == ReplayStop::kBreakpoint) info.breakpoint = core.pc();
    if (stop == ReplayStop::kWatchpoint) {
        info.watch_address = core.watched().address;
        info.watch_pc = core.watched().pc;
        info.watch_read = core.watched().read;
    }
    return info;
}

ReplayStopInfo Replayer::Impl::forward(std::uint64_t target, const ReplayLimits& limits) {
    Pace pace;
    const bool each_step = limits.condition && !limits.condition_at_records;
    const std::uint64_t last = std::min(target, end);
    while (core.step() < last) {
        const std::uint64_t upto = each_step ? core.step() + 1 : std::min(last, core.step() + kSlice);
        const ReplayCore::Why why = run(upto);
        if (why == ReplayCore::Why::kDiverged) return stop_info(ReplayStop::kDiverged);
        if (why == ReplayCore::Why::kWatchpoint) return stop_info(ReplayStop::kWatchpoint);
        if (why == ReplayCore::Why::kBreakpoint || (core.step() < last && core.at_breakpoint()))
            return stop_info(ReplayStop::kBreakpoint);
        if (each_step && limits.condition()) return stop_info(ReplayStop::kCondition);
        if (limits.progress && pace.due() && !limits.progress(core.step()))
            return stop_info(ReplayStop::kCancelled);
    }
    return stop_info(target > end ? ReplayStop::kEnd : ReplayStop::kTarget);
}

ReplayStopInfo Replayer::Impl::records_forward(std::uint64_t target, const ReplayLimits& limits,
                                               const Replayer& self) {
    for (;;) {
        const std::size_t next = self.record_at(core.step() + 1);
        const auto& records = port.entries();
        const std::uint64_t upto = next < records.size() ? std::min(target, records[next].step) : target;
        const ReplayStopInfo info = forward(upto, limits);
        if (info.stop != ReplayStop::kTarget) return info;
        if (next < records.size() && core.step() == records[next].step && limits.condition())
            return stop_info(ReplayStop::kCondition);
        if (core.step() >= target) return info;
    }
}

// The last position in [low, upper) at which a forward run would have stopped.
std::optional<std::pair<std::uint64_t, ReplayStopInfo>> Replayer::Impl::last_stop_in(
    std::uint64_t low, std::uint64_t upper, const ReplayLimits& limits) {
    std::optional<std::pair<std::uint64_t, ReplayStopInfo>> found;
    clear_limits();
    go(low);
    set_limits(limits);
    const bool each_step = limits.condition && !limits.condition_at_records;
    const auto look = [&] {
        if (core.at_breakpoint()) found = {core.step(), stop_info(ReplayStop::kBreakpoint)};
        if (each_step && limits.condition()) found = {core.step(), stop_info(ReplayStop::kCondition)};
    };
    look();
    while (core.step() < upper) {
        const ReplayCore::Why why = run(each_step ? core.step() + 1 : upper);
        // Backward the access is about to be done.
        if (why == ReplayCore::Why::kWatchpoint)
            found = {core.step() - 1, stop_info(ReplayStop::kWatchpoint)};
        if (why == ReplayCore::Why::kDiverged || why == ReplayCore::Why::kEnd) break;
        if (core.step() < upper) look();
    }
    clear_limits();
    return found;
}

bool Replayer::Impl::halted() const {
    const auto after = std::ranges::upper_bound(halts, core.step());
    if (after == halts.begin()) return false;
    // Unless it has been started again since.
    const auto halt = static_cast<std::int64_t>(*std::prev(after));
    return core.started_at() <= halt;
}

// --- the interface ---

Replayer::Replayer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Replayer::~Replayer() = default;

std::expected<std::unique_ptr<Replayer>, std::string> Replayer::open(const std::filesystem::path& file,
                                                                     const Progress& progress,
                                                                     Opening opening) {
    auto reader = TraceReader::open(file);
    if (!reader) return std::unexpected(reader.error());
    return open(*std::move(reader), progress, opening);
}

std::expected<std::unique_ptr<Replayer>, std::string> Replayer::open(TraceReader reader,
                                                                     const Progress& progress,
                                                                     Opening opening,
                                                                     AccessObserver observer) {
    auto impl = std::make_unique<Impl>(std::move(reader));
    impl->observer = std::move(observer);
    if (const auto done = impl->open(progress, opening); !done) return std::unexpected(done.error());
    return std::unique_ptr<Replayer>(new Replayer(std::move(impl)));
}

const TraceInfo& Replayer::info() const {
    return impl_->reader.info();
}
const TraceReader& Replayer::reader() const {
    return impl_->reader;
}
std::span<const TraceImage> Replayer::images() const {
    return impl_->reader.images();
}
const TraceImage* Replayer::image() const {
    const std::size_t number = impl_->core.image();
    return number != 0 ? &images()[number - 1] : nullptr;
}
std::uint64_t Replayer::end() const {
    return impl_->end;
}
std::uint64_t Replayer::end_time() const {
    return impl_->end_time;
}
std::uint64_t Replayer::hashes_checked() const {
    return impl_->core.hashes_checked();
}
bool Replayer::verified() const {
    return impl_->verified;
}
const std::optional<Replayer::Divergence>& Replayer::divergence() const {
    return impl_->divergence;
}

std::size_t Replayer::record_count() const {
    return impl_->port.entries().size();
}
PortRecord Replayer::record(std::size_t index) const {
    return impl_->port.record(index);
}
std::span<const TraceNote> Replayer::notes() const {
    return impl_->notes;
}
std::size_t Replayer::record_at(std::uint64_t step) const {
    const auto& entries = impl_->port.entries();
    const auto at = std::ranges::lower_bound(entries, step, {}, &PortLog::Entry::step);
    return static_cast<std::size_t>(at - entries.begin());
}

std::uint64_t Replayer::step() const {
    return impl_->core.step();
}
std::uint64_t Replayer::time() const {
    return impl_->core.time();
}
HartState Replayer::state() const {
    return impl_->core.state();
}
std::span<const std::uint8_t> Replayer::sram() const {
    return std::as_const(impl_->core).sram();
}
std::uint64_t Replayer::sram_base() const {
    return ORR_SRAM_BASE;
}
bool Replayer::read(std::uint64_t address, std::span<std::uint8_t> out) const {
    return impl_->core.read(address, out);
}
bool Replayer::read64(std::uint64_t address, std::uint64_t& value) const {
    std::uint8_t bytes[sizeof value];
    if (!read(address, bytes)) return false;
    value = 0;
    for (unsigned i = sizeof value; i-- != 0;)
        value = value << 8 | bytes[i];
    return true;
}
bool Replayer::running() const {
    return impl_->core.running() && !impl_->halted();
}
bool Replayer::sleeping() const {
    return running() && impl_->core.state().waiting != 0;
}

ReplayStopInfo Replayer::seek(std::uint64_t step) {
    return impl_->stop_info(impl_->go(step));
}
ReplayStopInfo Replayer::step_forward(std::uint64_t count) {
    const std::uint64_t here = step();
    return seek(count > ~std::uint64_t{0} - here ? ~std::uint64_t{0} : here + count);
}
ReplayStopInfo Replayer::step_back(std::uint64_t count) {
    const std::uint64_t here = step();
    ReplayStopInfo info = seek(here - std::min(here, count));
    if (count > here) info.stop = ReplayStop::kBegin;
    return info;
}

ReplayStopInfo Replayer::seek_time(std::uint64_t time_ps) {
    Impl& impl = *impl_;
    if (time_ps >= impl.end_time) return seek(impl.end);
    const auto after = std::ranges::upper_bound(impl.snapshots, time_ps, {}, &Impl::Snapshot::time_ps);
    if (after == impl.snapshots.begin()) {
        ReplayStopInfo info = seek(0);
        info.stop = ReplayStop::kBegin;
        return info;
    }
    impl.restore(*std::prev(after));
    impl.core.set_time_limit(time_ps);
    ReplayCore::Why why = ReplayCore::Why::kSteps;
    do {
        why = impl.run(std::min(impl.end, impl.core.step() + kSlice));
    } while (why == ReplayCore::Why::kSteps && impl.core.step() < impl.end);
    impl.core.set_time_limit(~std::uint64_t{0});
    if (why == ReplayCore::Why::kDiverged) return impl.stop_info(ReplayStop::kDiverged);
    if (why == ReplayCore::Why::kTime) return step_back();
    return impl.stop_info(ReplayStop::kTarget);
}

ReplayStopInfo Replayer::next_record() {
    const std::size_t next = record_at(step() + 1);
    if (next < record_count()) return seek(record(next).step);
    ReplayStopInfo info = seek(end());
    if (info.stop != ReplayStop::kDiverged) info.stop = ReplayStop::kEnd;
    return info;
}
ReplayStopInfo Replayer::previous_record() {
    const std::size_t at = record_at(step());
    if (at != 0) return seek(record(at - 1).step);
    ReplayStopInfo info = seek(0);
    info.stop = ReplayStop::kBegin;
    return info;
}

ReplayStopInfo Replayer::run_until(std::uint64_t target, const ReplayLimits& limits) {
    impl_->set_limits(limits);
    const ReplayStopInfo info = limits.condition && limits.condition_at_records
                                    ? impl_->records_forward(target, limits, *this)
                                    : impl_->forward(target, limits);
    impl_->clear_limits();
    return info;
}

ReplayStopInfo Replayer::run_back_until(std::uint64_t target, const ReplayLimits& limits) {
    Impl& impl = *impl_;
    Pace pace;
    const std::optional<Divergence> known = impl.divergence;
    std::uint64_t upper = impl.core.step();
    while (upper > target) {
        const std::uint64_t low = std::max(target, impl.snapshots[impl.snapshot_before(upper - 1)].step);
        auto found = impl.last_stop_in(low, upper, limits);
        if (impl.divergence != known) return impl.stop_info(ReplayStop::kDiverged);
        if (limits.condition && limits.condition_at_records) {
            const std::uint64_t least = found ? found->first + 1 : low;
            for (std::size_t i = record_at(upper); i != 0 && record(i - 1).step >= least; --i) {
                impl.go(record(i - 1).step);
                if (!limits.condition()) continue;
                return impl.stop_info(ReplayStop::kCondition);
            }
        }
        if (found) {
            impl.go(found->first);
            return found->second;
        }
        upper = low;
        if (limits.progress && pace.due() && !limits.progress(upper)) {
            impl.go(upper);
            return impl.stop_info(ReplayStop::kCancelled);
        }
    }
    if (impl.go(target) == ReplayStop::kDiverged) return impl.stop_info(ReplayStop::kDiverged);
    return impl.stop_info(target == 0 ? ReplayStop::kBegin : ReplayStop::kTarget);
}

std::uint64_t Replayer::time_of(std::uint64_t position) {
    const std::uint64_t here = step();
    seek(position);
    const std::uint64_t then = time();
    seek(here);
    return then;
}

std::uint64_t Replayer::snapshot_bytes() const {
    return impl_->snapshot_bytes();
}
std::size_t Replayer::snapshots() const {
    return impl_->snapshots.size();
}

}  // namespace orrery::emu
