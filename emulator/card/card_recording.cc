// A card's recording, as the card sees it.
#include <utility>

#include "emulator/card/card.h"

namespace orrery::emu {

std::expected<void, std::string> Card::build_recorder() {
    const bool flight = config_.record.empty() && config_.flight_segment != 0;
    if (config_.record.empty() && !flight) return {};
    auto made = Recorder::create(flight ? config_.flight_file : config_.record,
                                 {.program = config_.program,
                                  .sku_name = config_.sku.name,
                                  .sku_text = config_.sku.text,
                                  .uid = config_.uid,
                                  .seed = config_.faults ? config_.faults->seed : 0,
                                  .plan_text = config_.faults ? config_.faults->text : "",
                                  .cycle_ps = config_.sku.cycle_ps,
                                  .start_ps = events_.now(),
                                  .vram_bytes = vram_.size(),
                                  .hw_version = ORR_HW_VERSION,
                                  .symbols = std::move(config_.symbols),
                                  .write = config_.record_write,
                                  .flight_segment = flight ? config_.flight_segment : 0,
                                  .keyframe_cost = config_.record_keyframe_cost});
    if (!made) return std::unexpected(made.error());
    recorder_ = *std::move(made);
    core_->record(recorder_.get());
    recorder_->writer().on_room([this] { wake(); });
    recorder_->on_segment([this] {
        for (const auto& link : links_)
            if (link != nullptr) link_log_.say(*link);
    });
    doorbells_->on_ring([this](std::uint32_t tag, std::uint64_t value, unsigned page, unsigned slot) {
        core_->note(ORR_OTRACE_NOTE_DOORBELL, {tag, value, page, slot});
    });
    return {};
}

void Card::finish_recording() {
    link_log_.finish();
    core_->finish_recording();
}

void Card::flush_recording() {
    core_->flush_recording();
    // On its own thread the card has somebody to serve.
    if (recorder_ != nullptr && !running()) recorder_->writer().drain();
    report_recording();
}

void Card::store_recording() {
    if (recorder_ == nullptr) return;
    core_->flush_recording();
    recorder_->writer().drain();
    report_recording();
}

bool Card::recording_waits() {
    if (recorder_ == nullptr) return false;
    RecordWriter& writer = recorder_->writer();
    const bool waits = !writer.room() && !writer.failed();
    if (waits && !running()) {
        writer.wait_for_room();
        return false;
    }
    if (waits != recording_waits_) {
        errors_.note("recording to {}: {}", recorder_->name(),
                     !waits ? "it keeps up again"
                     : recorder_->is_flight()
                         ? "the host does not keep up, and the card's model time waits for it"
                         : "its disk does not keep up, and the card's model time waits for it");
        recording_waits_ = waits;
    }
    return waits;
}

void Card::report_recording() {
    if (recorder_ == nullptr || !recorder_->failed() || recording_failed_) return;
    recording_failed_ = true;
    errors_.report(ErrorKind::kHostError, "{}", recorder_->error());
}

}  // namespace orrery::emu
