// How a Replayer comes to know what there is in a recording: from the file, or by replaying all of it.
#include <algorithm>
#include <iterator>
#include <utility>

#include "emulator/trace/recorder.h"
#include "emulator/trace/replayer_impl.h"
#include "emulator/trace/start.h"

namespace orrery::emu {

namespace {

constexpr std::uint64_t kSnapshotBytes = std::uint64_t{1} << 30;
// To replay so many steps takes about half a second: what is shorter is checked as it is opened.
constexpr std::uint64_t kShort = 400 << 20;

}  // namespace

std::expected<void, std::string> Replayer::Impl::open(const Progress& progress, Opening opening) {
    end = reader.last_step();
    end_time = reader.last_ps();
    core.settle();
    add_snapshot(core.save(), core.time(), false);
    const bool whole = !reader.indexed() || observer != nullptr || opening == Opening::kWhole ||
                       (opening == Opening::kUsual && end <= kShort);
    if (const auto done = whole ? replay_all(progress) : load_keyframes(progress); !done) return done;
    if (!whole && core.divergence()) {
        divergence = core.divergence();
        end_at_divergence();
    }
    restore(snapshots.front());
    core.settle();
    if (progress) progress(1);
    return {};
}

// --- from the file ---

namespace {

// Whether the core, which runs before the block `first`, is stopped in `last` or in a log before it since
// when it made no step. What cannot be read is found by who replays it.
bool stops_in(const TraceReader& reader, std::size_t first, std::size_t last) {
    std::vector<std::uint8_t> room;
    Log log;
    for (std::size_t i = last + 1; i-- > first;) {
        const orr_otrace_block& block = reader.blocks()[i].header;
        if (block.kind != ORR_OTRACE_LOG) continue;
        const std::uint64_t steps = block.last_step - block.first_step;
        const auto payload = reader.payload(reader.blocks()[i], room);
        if (payload && decode_log(*payload, steps, log) && log.stops) return true;
        if (steps != 0) break;
    }
    return false;
}

}  // namespace

std::expected<void, std::string> Replayer::Impl::load_keyframes(const Progress& progress) {
    // Reading takes about as long as what follows.
    auto speech = read_speech(reader, [&](double done) { return !progress || progress(done / 2); });
    if (!speech) return std::unexpected(speech.error());
    take_speech(*std::move(speech));
    Pace pace;
    std::vector<std::uint8_t> room;
    auto next = reader.keyframes().begin();
    std::uint64_t started = 0;
    std::optional<std::size_t> runs;  // the core does, before this block
    for (std::size_t i = 0; i < reader.blocks().size() && next != reader.keyframes().end(); ++i) {
        const TraceBlock& block = reader.blocks()[i];
        if (begins_core(block.header.kind)) {
            const auto begun = core.load_start(i);
            if (!begun) return std::unexpected(reader.error_at(block.offset, begun.error()));
            started = block.header.last_step - begun->state.steps;
            runs = i + 1;
        }
        if (next->log != i) continue;
        const std::uint64_t at = next->at.offset;
        const auto payload = reader.payload(next->at, room);
        if (!payload) return std::unexpected(payload.error());
        if (!runs || stops_in(reader, *runs, i))
            return std::unexpected(reader.error_at(at, "a keyframe of a core that does not run"));
        runs = i + 1;
        const auto keyframe = apply_keyframe(*payload, core.recorded_sram());
        if (!keyframe) return std::unexpected(reader.error_at(at, keyframe.error()));
        if (keyframe->state.steps != block.header.last_step - started ||
            keyframe->rest_ps >= reader.info().cycle_ps)
            return std::unexpected(reader.error_at(at, "a keyframe of another place than its own"));
        if (trace_hash(keyframe->state, core.recorded_sram()) != block.header.state_hash)
            return std::unexpected(reader.error_at(at, "a keyframe's state is not the recorded one"));
        add_snapshot(core.position_of(i, *keyframe), block.header.last_ps, true);
        ++next;
        if (progress && pace.due() &&
            !progress(0.5 + static_cast<double>(block.header.last_step) / static_cast<double>(end + 1) / 2))
            return std::unexpected(reader.name() + ": cancelled");
    }
    return {};
}

void Replayer::Impl::take_speech(RecordedSpeech speech) {
    port = std::move(speech.port);
    notes = std::move(speech.notes);
    halts.clear();
    for (const TraceNote& note : notes) {
        if (note.kind == ORR_OTRACE_NOTE_HALT) halts.push_back(note.step);
    }
}

// --- by replaying ---

// From the begin. false: cancelled.
bool Replayer::Impl::listen_to_all(const Progress& progress) {
    Pace pace;
    heard = {};
    clear_limits();
    restore(snapshots.front());
    core.set_listener(this);
    core.restore(begin);  // with the notes of the first block
    ReplayCore::Why why = ReplayCore::Why::kSteps;
    const double all = static_cast<double>(std::max<std::uint64_t>(1, reader.last_step()));
    bool first = true, cancelled = false;
    while (!cancelled && heard.fits(reader)) {
        why = run(core.step() + kSlice);
        // What has been found is not thrown away because nobody wants to wait for more.
        if (why == ReplayCore::Why::kEnd || why == ReplayCore::Why::kDiverged) break;
        if (!progress || !(pace.due() || first)) continue;
        cancelled = !progress(static_cast<double>(core.step()) / all);
        first = false;
    }
    core.set_listener(nullptr);
    heard.port.drop_partial();
    return !cancelled;
}

std::expected<void, std::string> Replayer::Impl::replay_all(const Progress& progress) {
    if (!listen_to_all(progress)) return std::unexpected(reader.name() + ": cancelled");
    if (!core.error().empty()) return std::unexpected(core.error());
    if (!heard.fits(reader)) {
        const auto block = std::ranges::lower_bound(
            reader.blocks(), core.step(), {}, [](const TraceBlock& each) { return each.header.last_step; });
        return std::unexpected(too_much_speech(reader, *block));
    }
    if (reader.indexed() && !divergence) {
        const auto file = read_speech(reader, [&](double) { return !progress || progress(1); });
        if (!file) return std::unexpected(file.error());
        compare_with_file(*file);
    }
    take_speech(std::exchange(heard, {}));
    if (divergence) end_at_divergence();
    verified = true;
    return {};
}

void Replayer::Impl::compare_with_file(const RecordedSpeech& file) {
    if (divergence) return;
    const auto blocks = reader.blocks();
    const auto differ = [&](std::uint64_t step, auto block, const char* reason) {
        if (divergence && divergence->step <= step) return;
        divergence = Divergence{step, block != blocks.end() ? block->offset : 0, reason};
    };
    if (const auto bad = heard.port.first_difference(file.port)) {
        differ(*bad,
               std::ranges::upper_bound(blocks, *bad, {},
                                        [](const TraceBlock& each) { return each.header.last_step; }),
               "the firmware said something else than the file says");
    }
    const auto [own, filed] = std::ranges::mismatch(heard.notes, file.notes);
    if (own != heard.notes.end() || filed != file.notes.end()) {
        // Those of the file are some of its logs' own, and so the first that it leaves out is one of these.
        const TraceNote& note = own != heard.notes.end() ? *own : *filed;
        auto log = std::ranges::upper_bound(
            blocks, std::pair(note.step, note.time_ps), {},
            [](const TraceBlock& each) { return std::pair(each.header.first_step, each.header.first_ps); });
        while (log != blocks.begin() && std::prev(log)->header.kind != ORR_OTRACE_LOG)
            --log;
        differ(note.step, log != blocks.begin() ? std::prev(log) : log,
               "the file's PORT blocks tell of other notes than its logs");
    }
}

bool Replayer::verify(const Progress& progress) {
    Impl& impl = *impl_;
    if (impl.verified) return true;
    const std::uint64_t here = step();
    impl.verified = impl.listen_to_all(progress);
    if (impl.verified) {
        impl.compare_with_file({std::exchange(impl.port, {}), std::exchange(impl.notes, {})});
        impl.take_speech(std::exchange(impl.heard, {}));
        if (impl.divergence) impl.end_at_divergence();
    }
    impl.heard = {};
    seek(here);
    return impl.verified;
}

// What comes after the last good block cannot be trusted.
void Replayer::Impl::end_at_divergence() {
    const auto blocks = reader.blocks();
    const auto bad = std::ranges::find(blocks, divergence->offset, &TraceBlock::offset);
    if (bad == blocks.end() || bad->header.first_step > end) return;
    end = bad->header.first_step;
    end_time = bad->header.first_ps;
    while (snapshots.size() > 1 && snapshots.back().step > end) {
        history.forget(*snapshots.back().memory);
        snapshots.pop_back();
    }
    port.end_at(end);
    std::erase_if(notes, [&](const TraceNote& each) { return each.step > end; });
    std::erase_if(halts, [&](std::uint64_t each) { return each > end; });
}

// --- snapshots ---

// With the memory as the core has it.
void Replayer::Impl::add_snapshot(ReplayCore::Position position, std::uint64_t time_ps, bool from_keyframe) {
    const auto behind = std::ranges::upper_bound(snapshots, position.step, {}, &Snapshot::step);
    const std::uint64_t step = position.step;
    snapshots.insert(behind, {step, time_ps, std::make_unique<ReplayCore::Position>(std::move(position)),
                              history.save(core.sram()), from_keyframe});
    if (snapshot_bytes() > kSnapshotBytes) thin_out();
}

// What only the file tells is not exact, though all it says be so: a hash that fits proves little of a state
// that was made for it, and nothing of what is not in it (rest_ps).
void Replayer::Impl::drop_told(std::uint64_t from) {
    const auto first = std::ranges::lower_bound(snapshots, from, {}, &Snapshot::step);
    const auto last = std::ranges::upper_bound(snapshots, core.step(), {}, &Snapshot::step);
    const auto left = std::remove_if(first, last, [this](const Snapshot& each) {
        if (each.told) history.forget(*each.memory);
        return each.told;
    });
    snapshots.erase(left, last);
}

// Every second one goes, and from now on they are made half as often.
void Replayer::Impl::thin_out() {
    std::vector<Snapshot> kept;
    for (std::size_t i = 0; i < snapshots.size(); ++i) {
        if (i % 2 == 0) {
            kept.push_back(std::move(snapshots[i]));
        } else {
            history.forget(*snapshots[i].memory);
        }
    }
    snapshots = std::move(kept);
    snapshot_cost *= 2;
}

ReplayCore::Why Replayer::Impl::run(std::uint64_t target) {
    const std::uint64_t from = core.step();
    const ReplayCore::Why why = core.run(target);
    if (core.listening()) drop_told(from);
    if (why == ReplayCore::Why::kDiverged) {
        const std::optional<Divergence>& found = core.divergence();
        // What is due at the end belongs to a block that is known to be bad.
        if (divergence && divergence == found && core.step() == end && !core.listening())
            return ReplayCore::Why::kEnd;
        if (found && (!divergence || found->step < divergence->step)) divergence = found;
        if (core.listening()) return why;
        end_at_divergence();
        clear_limits();
        restore(snapshots[snapshot_before(end)]);
        core.run(end);
    }
    if (why != ReplayCore::Why::kSteps) return why;
    const std::uint64_t near = snapshots[snapshot_before(core.step())].step;
    if (near != passed_step) {
        passed_step = near;
        passed_accesses = core.accesses();
    }
    const std::uint64_t cost = core.step() - near + kAccessCost * (core.accesses() - passed_accesses);
    if (cost >= snapshot_cost) add_snapshot(core.save(), core.time(), told);
    return why;
}

}  // namespace orrery::emu
