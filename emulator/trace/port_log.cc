#include "emulator/trace/port_log.h"

#include <algorithm>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "emulator/trace/log.h"
#include "emulator/trace/port_words.h"
#include "emulator/trace/replayer_impl.h"
#include "emulator/trace/start.h"

namespace orrery::emu {

void PortLog::drop_partial() {
    if (wanted_ == 0) return;
    words_.resize(entries_.back().first_word);
    entries_.pop_back();
    wanted_ = 0;
}

void PortLog::end_at(std::uint64_t step) {
    const auto behind = std::ranges::upper_bound(entries_, step, {}, &Entry::step);
    entries_.erase(behind, entries_.end());
}

PortRecord PortLog::record(std::size_t index) const {
    const Entry& at = entries_[index];
    const std::uint64_t header = words_[at.first_word];
    return {at.step, at.time_ps, header,
            std::span(words_).subspan(at.first_word + 1, ORR_OTRACE_PORT_WORDS(header))};
}

std::optional<std::uint64_t> PortLog::first_difference(const PortLog& other) const {
    const std::size_t both = std::min(entries_.size(), other.entries_.size());
    for (std::size_t i = 0; i < both; ++i) {
        const PortRecord a = record(i), b = other.record(i);
        if (entries_[i] != other.entries_[i] || a.header != b.header || !std::ranges::equal(a.words, b.words))
            return std::min(a.step, b.step);
    }
    if (entries_.size() > both) return entries_[both].step;
    if (other.entries_.size() > both) return other.entries_[both].step;
    return std::nullopt;
}

namespace {

class SpeechReader {
  public:
    explicit SpeechReader(const TraceReader& reader) : reader_(reader) {}

    std::expected<RecordedSpeech, std::string> read(const Replayer::Progress& progress) {
        auto port = reader_.ports().begin();
        Pace pace;
        const double all = static_cast<double>(reader_.info().file_bytes);
        for (std::size_t i = 0; i < reader_.blocks().size(); ++i) {
            if (begins_core(reader_.blocks()[i].header.kind)) {
                const auto begun = begin_core(reader_.blocks()[i]);
                if (!begun) return std::unexpected(begun.error());
            }
            if (port == reader_.ports().end() || port->log != i) continue;
            const bool first = port == reader_.ports().begin();  // who has cancelled need not wait
            if ((first || pace.due()) && !progress(static_cast<double>(port->at.offset) / all))
                return std::unexpected(reader_.name() + ": cancelled");
            if (auto good = read_port(port->at, reader_.blocks()[i]); !good)
                return std::unexpected(good.error());
            if (!speech_.fits(reader_)) return std::unexpected(too_much_speech(reader_, port->at));
            ++port;
        }
        speech_.port.drop_partial();
        return std::move(speech_);
    }

  private:
    using Done = std::expected<void, std::string>;

    Done read_port(const TraceBlock& at, const TraceBlock& log) {
        const auto payload = reader_.payload(at, room_);
        if (!payload) return std::unexpected(payload.error());
        const auto refuse = [&](const LogError& error) {
            return std::unexpected(reader_.error_at(at.offset, describe(error)));
        };
        const orr_otrace_block& of = log.header;
        PortDecoder decoder(*payload, of.last_step - of.first_step, of.last_ps - of.first_ps);
        const auto head = decoder.head();
        if (!head) return refuse(head.error());
        while (!decoder.done()) {
            const auto word = decoder.next(speech_.port.header_next());
            if (!word) return refuse(word.error());
            speech_.port.word(of.first_step + word->step, of.first_ps + word->ps, word->value);
        }
        return head->notes == 0 ? Done{} : read_notes(log);
    }

    Done begin_core(const TraceBlock& at) {
        std::uint32_t rest = 0;
        if (at.header.kind == ORR_OTRACE_RESUME) {
            const auto payload = reader_.payload(at, room_);
            if (!payload) return std::unexpected(payload.error());
            orr_otrace_resume resume{};
            std::memcpy(&resume, payload->data(), sizeof resume);
            rest = resume.port_words;
        }
        speech_.port.start(rest);
        return {};
    }

    Done read_notes(const TraceBlock& log) {
        const auto payload = reader_.payload(log, room_);
        if (!payload) return std::unexpected(payload.error());
        const auto decoded = decode_log(*payload, log.header.last_step - log.header.first_step, log_);
        if (!decoded) return std::unexpected(reader_.error_at(log.offset, describe(decoded.error())));
        for (const LoggedNote& note : log_.notes)
            speech_.notes.push_back(trace_note(log.header, note));
        return {};
    }

    const TraceReader& reader_;
    RecordedSpeech speech_;
    std::vector<std::uint8_t> room_;
    Log log_;
};

}  // namespace

std::string too_much_speech(const TraceReader& reader, const TraceBlock& block) {
    return reader.error_at(
        block.offset,
        fmt::format(
            "up to here the firmware says more than is kept of a recording of this "
            "length ({} MiB): its records cannot be shown; the file is damaged, or "
            "the firmware repeats itself without end: record less of it",
            (RecordedSpeech::kMostBytes + RecordedSpeech::kBytesOfFile * reader.info().file_bytes) >> 20));
}

std::expected<RecordedSpeech, std::string> read_speech(const TraceReader& reader,
                                                       const Replayer::Progress& progress) {
    return SpeechReader(reader).read(progress);
}

}  // namespace orrery::emu
