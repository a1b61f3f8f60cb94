#include <fmt/format.h>
#include <orrery/hw/link.h>

#include <map>

#include "tools/step/session/session.h"

namespace orrery::step {
namespace {

class ReplaySession final : public Session {
  public:
    ReplaySession(const std::string& file, emu::Replayer& replayer, std::unique_ptr<emu::Replayer> owned)
        : owned_(std::move(owned)), replayer_(&replayer) {
        const emu::TraceInfo& info = replayer_->info();
        about_.file = file;
        about_.program = info.program;
        about_.sku = info.sku_name;
        about_.hw_version = info.hw_version;
        about_.uid = info.uid;
        about_.seed = info.seed;
        about_.fault_plan = info.plan_text;
        about_.cycle_ps = info.cycle_ps;
        about_.start = info.start_ps;
        about_.crashed = info.crashed;
        about_.resumed = info.resumed;
        look();
        if (!replayer_->images().empty()) {
            const emu::TraceImage& image = replayer_->images().front();
            about_.build_id = image.build_id;
            about_.firmware_hash = image.sha256;
            about_.elf = image.elf;
            about_.symbols = image.symbols;
        }
        take_speech();
    }

    const About& about() const override { return about_; }
    const std::vector<Record>& records() const override { return records_; }
    const std::vector<ClockJump>& jumps() const override { return jumps_; }
    const std::vector<CoreStop>& stops() const override { return stops_; }
    const std::vector<LinkBurst>& bursts() const override { return bursts_; }
    std::uint64_t end() const override { return replayer_->end(); }
    Time end_time() const override { return replayer_->end_time(); }
    std::uint64_t position() const override { return replayer_->step(); }
    Time time() const override { return replayer_->time(); }
    bool running() const override { return replayer_->running(); }
    bool sleeping() const override { return replayer_->sleeping(); }
    emu::HartState registers() const override { return replayer_->state(); }
    Sram sram() const override { return replayer_->sram(); }
    bool read(std::uint64_t address, std::span<std::uint8_t> out) const override {
        return replayer_->read(address, out);
    }
    bool verify(const std::function<bool(double)>& progress) override {
        const bool done = replayer_->verify(progress);
        look();
        return done;
    }
    bool take_divergence() override {
        look();
        if (divergence_ == taken_) return false;
        take_speech();
        return true;
    }
    emu::ReplayStopInfo seek(std::uint64_t position) override { return moved(replayer_->seek(position)); }
    emu::ReplayStopInfo seek_time(Time time) override { return moved(replayer_->seek_time(time)); }
    emu::ReplayStopInfo run(std::uint64_t target, const emu::ReplayLimits& limits) override {
        return moved(replayer_->run_until(target, limits));
    }
    emu::ReplayStopInfo run_back(std::uint64_t target, const emu::ReplayLimits& limits) override {
        return moved(replayer_->run_back_until(target, limits));
    }

  private:
    emu::ReplayStopInfo moved(emu::ReplayStopInfo info) {
        look();
        return info;
    }
    void take_speech() {
        taken_ = divergence_;
        records_.clear();
        records_.reserve(replayer_->record_count());
        for (std::size_t i = 0; i < replayer_->record_count(); ++i) {
            const emu::PortRecord record = replayer_->record(i);
            records_.push_back(make_record(record.step, record.time_ps, record.header, record.words));
        }
        jumps_.clear();
        const emu::TraceInfo& info = replayer_->info();
        if (info.skipped_ps != 0) jumps_.push_back({info.start_ps, info.skipped_ps});
        stops_.clear();
        bursts_.clear();
        std::map<unsigned, LinkBurst> links;  // by port: what is known of its peer
        for (const emu::TraceNote& note : replayer_->notes()) {
            take_link_note(note, links);
            if (note.kind == ORR_OTRACE_NOTE_JUMP) jumps_.push_back({note.time_ps, note.field[0]});
            if (note.kind == ORR_OTRACE_NOTE_HALT || note.kind == ORR_OTRACE_NOTE_RESTART)
                stops_.push_back({note.kind == ORR_OTRACE_NOTE_HALT, note.time_ps, note.step});
        }
    }
    void take_link_note(const emu::TraceNote& note, std::map<unsigned, LinkBurst>& links) {
        const bool sent = note.kind == ORR_OTRACE_NOTE_LINK_SENT;
        if (note.kind == ORR_OTRACE_NOTE_LINK_STATE) {
            if ((note.field[0] >> 8 & 0xff) < ORR_LINK_UP) return;
            LinkBurst& link = links[note.field[0] & 0xff];
            link.peer_port = note.field[0] >> 16 & 0xff;
            link.peer_is_switch = (note.field[0] >> 24 & 1) != 0;
            link.peer = note.field[1];
            link.latency = note.field[2];
        } else if (sent || note.kind == ORR_OTRACE_NOTE_LINK_TAKEN) {
            if (note.field[5] > kNever - note.field[4]) return;  // of a damaged file
            LinkBurst burst = links[note.field[0] & 0xff];
            burst.sent = sent;
            burst.port = note.field[0] & 0xff;
            burst.operation = note.field[0] >> 8 & 0xff;
            burst.channel = note.field[0] >> 16 & 0xff;
            burst.source = note.field[0] >> 32 & 0xffff;
            burst.destination = note.field[0] >> 48;
            burst.first = note.field[1];
            burst.messages = note.field[2];
            burst.bytes = note.field[3];
            burst.head = note.field[4];
            burst.end = note.field[4] + note.field[5];
            bursts_.push_back(burst);
        }
    }
    // What is known of the recording's exactness by now.
    void look() {
        about_.hashes_checked = replayer_->hashes_checked();
        about_.verified = replayer_->verified();
        if (const auto& divergence = replayer_->divergence(); divergence && divergence_ != divergence) {
            divergence_ = divergence;
            about_.divergence = fmt::format("{} (before step {}, block at offset {:#x} of the file)",
                                            divergence->reason, divergence->step, divergence->offset);
        }
    }

    std::unique_ptr<emu::Replayer> owned_;  // may be null
    emu::Replayer* replayer_;
    About about_;
    std::optional<emu::Replayer::Divergence> divergence_;
    std::optional<emu::Replayer::Divergence> taken_;  // as records_ and jumps_ are
    std::vector<Record> records_;
    std::vector<ClockJump> jumps_;
    std::vector<CoreStop> stops_;
    std::vector<LinkBurst> bursts_;
};

}  // namespace

Result<std::unique_ptr<Session>> open_session(const std::string& file,
                                              const emu::Replayer::Progress& progress, emu::Opening opening) {
    auto replayer = emu::Replayer::open(file, progress, opening);
    if (!replayer) return fail("{}", replayer.error());
    emu::Replayer& opened = **replayer;
    return std::make_unique<ReplaySession>(file, opened, std::move(*replayer));
}

Result<std::unique_ptr<Session>> open_session(std::vector<std::uint8_t> bytes, const std::string& name,
                                              const emu::Replayer::Progress& progress) {
    auto reader = emu::TraceReader::parse(std::move(bytes), name);
    if (!reader) return fail("{}", reader.error());
    auto replayer = emu::Replayer::open(*std::move(reader), progress);
    if (!replayer) return fail("{}", replayer.error());
    emu::Replayer& opened = **replayer;
    return std::make_unique<ReplaySession>(name, opened, std::move(*replayer));
}

std::unique_ptr<Session> share_session(const std::string& file, emu::Replayer& replayer) {
    return std::make_unique<ReplaySession>(file, replayer, nullptr);
}

}  // namespace orrery::step
