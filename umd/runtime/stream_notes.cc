// What a stream remembers of its packets for those who are told what cards do.
#include <orrery/hw/engine.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include "umd/prof/ranges.h"
#include "umd/runtime/context.h"
#include "umd/runtime/signal_log.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {

void Stream::note_work(std::uint64_t index, const orr_packet& packet, OpNote note) noexcept {
    const bool signals = packet.header.opcode == ORR_PKT_SIGNAL;
    if (signals || use_ == Use::kRelay) note_signal(index, std::bit_cast<orr_packet_semaphore>(packet));
    WorkLog& log = context_.work_log();
    if (signals && use_ != Use::kRelay && prof_has(orrProfWantSignals) && log.want()) {
        const auto signal = std::bit_cast<orr_packet_semaphore>(packet);
        trail_.add_signal(index, signal.semaphore, signal.value, SignalLog::get().identify(signal.semaphore),
                          context_.memory().place_of(signal.semaphore), log.life());
        return;
    }
    WorkNote work;
    switch (note.op) {
        case Op::kCopy:
            work = {.operation = orrProfOperationCopy, .name = copy_name(packet.header.opcode)};
            work.reduces = packet.header.opcode == ORR_PKT_REDUCE;
            break;
        case Op::kFill:
            work = {.operation = orrProfOperationFill, .name = "fill"};
            break;
        case Op::kKernel:
            work = {.operation = orrProfOperationKernel, .name = note.name};
            break;
        case Op::kWait:
            work = {.operation = orrProfOperationWait, .name = "wait"};
            break;
        case Op::kSignal:
        case Op::kNone:
            break;
    }
    if (use_ != Use::kWork || work.name == nullptr) return;
    if (!log.want()) {
        if (work.operation != orrProfOperationWait) miss_in_ranges();
        return;
    }
    note_sides(packet, work);
    trail_.add(index, work, log.life());
}

void Stream::note_steps(std::uint64_t index, std::span<const StepNote> steps) noexcept {
    if (steps.empty() || use_ != Use::kWork || !prof_has(orrProfWantWork)) return;
    // Where nothing is recorded nobody would ever take them.
    WorkLog& log = context_.work_log();
    if (!log.want()) return;
    for (const StepNote& step : steps)
        trail_.add_step(index, step, log.life());
}

void Stream::mark(const char* domain, const char* text) {
    if (use_ != Use::kWork || !prof_has(orrProfWantRanges) || !prof_has(orrProfWantWork)) return;
    WorkLog& log = context_.work_log();
    if (!log.want()) return;
    // Without mutex_, which whoever waits for room in the ring has: this call waits for nobody.
    StreamMarkNote note;
    note.index = submitted();
    note.domain = domain;
    note.text = text;
    note.stream_name = label();
    note.life = log.life();
    trail_.add_mark(std::move(note));
}

void Stream::note_signal(std::uint64_t index, const orr_packet_semaphore& packet) noexcept {
    SignalLog& log = SignalLog::get();
    if (packet.header.opcode == ORR_PKT_WAIT) {
        relayed_ = log.find(packet.semaphore, log.generation(packet.semaphore), packet.value, trail_.number(),
                            index);
        if (relayed_.from == orrProfFromOutside && SignalLog::missed()) relayed_ = {};
    } else if (packet.header.opcode == ORR_PKT_SIGNAL) {
        const SignalLog::Source source = use_ == Use::kRelay ? relayed_
                                         : use_ == Use::kWork
                                             ? SignalLog::Source{orrProfFromStream, trail_.number(), index}
                                             : SignalLog::Source{orrProfFromHost};
        log.note(packet.semaphore, packet.value, source);
    }
}

// What it moves, and between whose memories; how large a kernel is; what a wait waits for.
void Stream::note_sides(const orr_packet& packet, WorkNote& work) const {
    const auto copies = [&](std::uint64_t source, std::uint64_t destination, std::uint64_t bytes) {
        work.bytes = bytes;
        std::tie(work.source, work.destination) = context_.memory().places_of(source, destination);
    };
    // Of a list or a descriptor that stands with the arguments of kernels; null: it is not there.
    const auto in_args = [&](std::uint64_t va, std::uint64_t bytes) -> const std::byte* {
        const std::uint64_t at = va - reinterpret_cast<std::uintptr_t>(args_.data());
        return at > args_.size() || bytes > args_.size() - at ? nullptr : args_.data() + at;
    };
    switch (packet.header.opcode) {
        case ORR_PKT_COPY: {
            if ((packet.header.flags & ORR_PKT_F_LONG) != 0) {
                const auto* const raw = in_args(packet.word[kBoxCopyWord], sizeof(orr_desc_box));
                if (raw == nullptr) break;
                orr_desc_box box;
                std::memcpy(&box, raw, sizeof box);
                std::uint64_t bytes = box.row_bytes;
                for (unsigned i = 0; i < std::min<unsigned>(box.dimensions, ORR_BOX_DIMENSIONS); ++i)
                    bytes *= box.count[i];
                copies(box.src, box.dst, bytes);
                break;
            }
            const auto copy = std::bit_cast<orr_packet_copy>(packet);
            copies(copy.src, copy.dst, copy.row_bytes * copy.rows * std::max(copy.planes, 1u));
            break;
        }
        case ORR_PKT_REDUCE: {
            const auto reduce = std::bit_cast<orr_packet_reduce>(packet);
            copies(reduce.src, reduce.dst, reduce.row_bytes * reduce.rows);
            break;
        }
        case ORR_PKT_COPIES: {
            const auto list = std::bit_cast<orr_packet_copies>(packet);
            work.bytes = list.bytes;
            const auto* raw = in_args(list.list, std::uint64_t{list.entries} * sizeof(orr_copy_entry));
            for (std::uint32_t i = 0; raw != nullptr && i < list.entries;
                 ++i, raw += sizeof(orr_copy_entry)) {
                orr_copy_entry entry;
                std::memcpy(&entry, raw, sizeof entry);
                const int before[] = {work.source, work.destination};
                copies(entry.src, entry.dst, list.bytes);
                if (i == 0 || (before[0] == work.source && before[1] == work.destination)) continue;
                work.source = work.destination = orrProfPlaceUnknown;
                break;
            }
            break;
        }
        case ORR_PKT_FILL: {
            const auto fill = std::bit_cast<orr_packet_fill>(packet);
            work.bytes = fill.row_bytes * fill.rows;
            work.destination = context_.memory().place_of(fill.dst);
            break;
        }
        case ORR_PKT_DISPATCH: {
            const auto dispatch = std::bit_cast<orr_packet_dispatch>(packet);
            work.groups = std::uint64_t{dispatch.grid_x} * dispatch.grid_y * dispatch.grid_z;
            work.items = std::uint32_t{dispatch.block_x} * dispatch.block_y * dispatch.block_z;
            break;
        }
        case ORR_PKT_WAIT: {
            const auto wait = std::bit_cast<orr_packet_semaphore>(packet);
            work.semaphore = wait.semaphore;
            work.generation = SignalLog::get().identify(wait.semaphore);
            work.value = wait.value;
            break;
        }
        default:
            break;
    }
}

}  // namespace orrery::umd
