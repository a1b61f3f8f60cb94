#include "tools/prof/profile.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "tools/text/files.h"
#include "tools/text/progress.h"

namespace orrery::prof {
namespace {

using text::fail;
using text::Result;

template <typename Struct>
bool take(std::string_view& bytes, Struct& value) {
    if (bytes.size() < sizeof value) return false;
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return true;
}

// Who puts parts together says where one was cut; no process does.
enum class Cuts : std::uint8_t { kAtTheEnd, kNone };

// Of the records of a process. `offset` in the file is what problems name.
class Records {
  public:
    Records(Process& process, std::uint64_t offset, Cuts cuts)
        : process_(process), offset_(offset), cuts_(cuts) {}

    // `step` is called now and then, with the bytes of it that are left. With `more` to come, it leaves what
    // may be the beginning of a record.
    Result<void> read(std::string_view bytes, bool more, const std::function<void(std::size_t)>& step) {
        for (std::uint64_t count = 1; bytes.size() > (more ? kLongestRecord : 0); ++count) {
            if (count % 4096 == 0) step(bytes.size());
            RecordHead head{};
            if (bytes.size() < sizeof head) return wrong("is cut within a record");
            std::memcpy(&head, bytes.data(), sizeof head);
            const auto type = static_cast<Type>(head.type);
            if (type == Type::kEnd) {
                at_end_ = true;
                return {};
            }
            if (head.bytes < sizeof head || head.bytes % 8 != 0 || head.bytes > bytes.size())
                return wrong(fmt::format("has a record of {} bytes, which cannot be", head.bytes));
            if (process_.cut) return wrong("goes on behind the word of what was cut");
            auto good = read(type, head, bytes.substr(0, head.bytes));
            if (!good) return good;
            bytes.remove_prefix(head.bytes);
            offset_ += head.bytes;
        }
        return {};
    }
    // Where what is good ends, and whether that is because a record says so.
    std::uint64_t offset() const { return offset_; }
    bool is_at_end() const { return at_end_; }

  private:
    std::unexpected<text::Error> wrong(std::string_view what) const {
        return fail("at byte {} it {}", offset_, what);
    }
    bool knows(std::uint32_t text) const { return text < process_.texts.size(); }

    Result<void> read(Type type, const RecordHead& head, std::string_view record) {
        if (type == Type::kText) return add_text(head, record.substr(sizeof head));
        if (type == Type::kCall) return add_call(record);
        if (type == Type::kRangeBegin || type == Type::kRangeEnd || type == Type::kMark)
            return add_range(type, record);
        if (type == Type::kWork) return add_work(record);
        if (type == Type::kWorkLost) {
            WorkLostRecord lost{};
            if (!take(record, lost)) return wrong("has a word of lost work that is too short");
            process_.lost_work[lost.device] += lost.count;
        }
        if (type == Type::kWorkCounters) return add_counters(record);
        if (type == Type::kSampleSet) return add_sample_set(record);
        if (type == Type::kSample) return add_sample(record);
        if (type == Type::kPcSample) return add_pc_sample(record, process_.pc_samples);
        if (type == Type::kInstruction) return add_pc_sample(record, process_.instructions);
        if (type == Type::kStep) return add_step(record);
        if (type == Type::kSignal) return add_signal(record);
        if (type == Type::kStreamMark) return add_stream_mark(record);
        if (type == Type::kSamplesLost) return add_samples_lost(record);
        if (type == Type::kCard) return add_card(record);
        if (type == Type::kSku) return add_plain(record, process_.sku, "a number of a SKU");
        if (type == Type::kLink) return add_plain(record, process_.links, "a link");
        if (type == Type::kMemory) return add_memory(record);
        if (type == Type::kClock) return add_clock(record);
        if (type == Type::kCut) return add_cut(record);
        return {};
    }
    Result<void> add_work(std::string_view bytes) {
        WorkRecord work{};
        // Of an older version: what it does not have is 0.
        if (bytes.size() < kWorkBytes) return wrong("has work that is too short");
        std::memcpy(&work, bytes.data(), std::min(bytes.size(), sizeof work));
        if (!knows(work.head.text) || !knows(work.stream_name) || !knows(work.from_name))
            return wrong("names a text that is not there");
        if (work.end_ps < work.begin_ps) return wrong("has work that ends before it begins");
        // Before 1.6 its name alone said so.
        if (bytes.size() <= offsetof(WorkRecord, reduces))
            work.reduces = process_.text(work.head.text) == "reduction" ? 1 : 0;
        process_.work.push_back(work);
        return {};
    }
    Result<void> add_signal(std::string_view bytes) {
        SignalRecord signal{};
        if (!take(bytes, signal)) return wrong("has a signal that is too short");
        if (!knows(signal.head.text) || !knows(signal.stream_name))
            return wrong("names a text that is not there");
        process_.signals.push_back(signal);
        return {};
    }
    Result<void> add_stream_mark(std::string_view bytes) {
        StreamMarkRecord mark{};
        if (!take(bytes, mark)) return wrong("has a mark of a stream that is too short");
        if (!knows(mark.head.text) || !knows(mark.stream_name) || !knows(mark.domain))
            return wrong("names a text that is not there");
        process_.stream_marks.push_back(mark);
        return {};
    }
    Result<void> add_counters(std::string_view bytes) {
        WorkCountersRecord counters{};
        if (bytes.size() < offsetof(WorkCountersRecord, busy_ps))
            return wrong("has counters of work that are too short");
        std::memcpy(&counters, bytes.data(), std::min(bytes.size(), sizeof counters));
        process_.counters.push_back(counters);
        return {};
    }
    // What is behind the head of a record and belongs to it.
    template <typename Struct>
    Result<void> take_all(std::string_view bytes, std::uint32_t count, std::vector<Struct>& to) {
        if (bytes.size() / sizeof(Struct) < count) return wrong("has samples that are too short");
        for (std::uint32_t i = 0; i < count; ++i) {
            Struct value{};
            (void)take(bytes, value);
            to.push_back(value);
        }
        return {};
    }
    Result<void> add_sample_set(std::string_view bytes) {
        SampleSetRecord head{};
        if (!take(bytes, head)) return wrong("has samples that are too short");
        Process::SampleSet set{head.device, head.period_ps, {}};
        if (auto good = take_all(bytes, head.count, set.counters); !good) return good;
        for (const SampledCounter& counter : set.counters) {
            if (!knows(counter.name) || !knows(counter.unit)) return wrong("names a text that is not there");
        }
        sets_[head.device] = static_cast<std::uint32_t>(process_.sample_sets.size());
        process_.sample_sets.push_back(std::move(set));
        return {};
    }
    Result<void> add_sample(std::string_view bytes) {
        SampleRecord head{};
        if (!take(bytes, head)) return wrong("has samples that are too short");
        const auto set = sets_.find(head.device);
        if (set == sets_.end() || process_.sample_sets[set->second].counters.size() != head.count) {
            if (process_.lost > 0) return {};  // so may be what says which counters these are
            return wrong("has a sample of counters that nothing names");
        }
        process_.samples.push_back({set->second, head.time_ps, process_.sample_values.size()});
        return take_all(bytes, head.count, process_.sample_values);
    }
    Result<void> add_pc_sample(std::string_view bytes, std::vector<PcSampleRecord>& to) {
        PcSampleRecord sample{};
        if (!take(bytes, sample)) return wrong("has samples that are too short");
        if (!knows(sample.head.text) || !knows(sample.function) || !knows(sample.source))
            return wrong("names a text that is not there");
        to.push_back(sample);
        return {};
    }
    Result<void> add_step(std::string_view bytes) {
        StepRecord step{};
        if (!take(bytes, step)) return wrong("has a step of a call that is too short");
        if (!knows(step.head.text)) return wrong("names a text that is not there");
        if (step.end_ps < step.begin_ps || step.end_ns < step.begin_ns)
            return wrong("has a step of a call that ends before it begins");
        process_.steps.push_back(step);
        return {};
    }
    Result<void> add_samples_lost(std::string_view bytes) {
        SamplesLostRecord lost{};
        if (!take(bytes, lost)) return wrong("has a word of lost samples that is too short");
        auto& sum = process_.lost_samples[lost.device];
        std::uint64_t& all = static_cast<Type>(lost.type) == Type::kPcSample ? sum.pcs : sum.counters;
        all += std::min(lost.count, ~all);  // what a file says is anybody's
        return {};
    }
    Result<void> add_card(std::string_view bytes) {
        CardRecord card{};
        if (!take(bytes, card)) return wrong("has a card that is too short");
        if (!knows(card.head.text) || !knows(card.pci)) return wrong("names a text that is not there");
        if (!cards_.insert(card.device).second)
            return wrong(fmt::format("has device {} for a second time", card.device));
        process_.cards.push_back(card);
        return {};
    }
    Result<void> add_memory(std::string_view bytes) {
        MemoryRecord memory{};
        if (!take(bytes, memory)) return wrong("has memory that is too short");
        const auto bytes_more = static_cast<std::uint64_t>(memory.bytes);
        if (memory.bytes > 0 && memory.in_use < bytes_more)
            return wrong("has less memory in use than was just taken");
        process_.memory.push_back(memory);
        return {};
    }
    Result<void> add_clock(std::string_view bytes) {
        ClockRecord clock{};
        if (!take(bytes, clock)) return wrong("has a time of a clock that is too short");
        if (clock.after_ns < clock.before_ns)
            return wrong("has a time of a clock that ends before it begins");
        process_.clocks.push_back(clock);
        return {};
    }
    Result<void> add_cut(std::string_view bytes) {
        if (cuts_ == Cuts::kNone) return wrong("has a word of what was cut, which no process writes");
        CutRecord cut{};
        if (!take(bytes, cut)) return wrong("has a word of what was cut that is too short");
        process_.cut = cut;
        return {};
    }
    template <typename Record>
    Result<void> add_plain(std::string_view bytes, std::vector<Record>& to, const char* what) {
        Record record{};
        if (!take(bytes, record)) return wrong(fmt::format("has {} that is too short", what));
        if (!knows(record.head.text)) return wrong("names a text that is not there");
        to.push_back(record);
        return {};
    }
    Result<void> add_text(const RecordHead& head, std::string_view text) {
        if (head.text != process_.texts.size() || head.text > kMaxTexts)
            return wrong(fmt::format("has text {} where {} comes", head.text, process_.texts.size()));
        const auto end = text.find('\0');
        if (end == std::string_view::npos) return wrong("has a text without an end");
        process_.texts.emplace_back(text.substr(0, end));
        return {};
    }
    Result<void> add_call(std::string_view bytes) {
        CallRecord call{};
        if (!take(bytes, call)) return wrong("has a call that is too short");
        if (!knows(call.head.text)) return wrong("names a text that is not there");
        if (call.end_ns < call.begin_ns) return wrong("has a call that ends before it begins");
        process_.calls.push_back(call);
        return {};
    }
    Result<void> add_range(Type type, std::string_view bytes) {
        RangeRecord range{};
        if (!take(bytes, range)) return wrong("has a range that is too short");
        if (!knows(range.head.text) || !knows(range.domain)) return wrong("names a text that is not there");
        process_.ranges.push_back({type, range});
        return {};
    }

    Process& process_;
    std::uint64_t offset_;
    const Cuts cuts_;
    bool at_end_ = false;
    std::map<std::uint32_t, std::uint32_t> sets_;  // of samples, by device
    std::set<std::uint32_t> cards_;
};

void find_begin(Profile& profile) {
    std::uint64_t first = ~std::uint64_t{0};
    for (const Process& process : profile.processes) {
        first = std::min(first, process.begin_ns);
        for (const CallRecord& call : process.calls)
            first = std::min(first, call.begin_ns);
        for (const WorkRecord& work : process.work)
            first = std::min(first, work.submitted_ns);
        for (const SignalRecord& signal : process.signals)
            first = std::min(first, signal.submitted_ns);
        for (const StreamMarkRecord& mark : process.stream_marks)
            first = std::min(first, mark.submitted_ns);
        for (const auto& range : process.ranges)
            first = std::min(first, range.record.ns);
        for (const StepRecord& step : process.steps) {
            if (step.device < 0) first = std::min(first, step.begin_ns);
        }
    }
    profile.begin_ns = profile.processes.empty() ? 0 : first;
}

}  // namespace

struct PartCheck::Reader {
    Reader(const PartHead& head, std::uint64_t offset) : records(process, offset, Cuts::kNone) {
        process.lost = head.lost;
    }
    Process process;
    Records records;
};

PartCheck::PartCheck(const PartHead& head, std::uint64_t offset)
    : reader_(std::make_unique<Reader>(head, offset)) {}
PartCheck::~PartCheck() = default;

std::size_t PartCheck::look(std::string_view bytes, bool more) {
    const std::uint64_t begin = reader_->records.offset();
    const auto good = reader_->records.read(bytes, more, [](std::size_t) {});
    const std::uint64_t done = reader_->records.offset() - begin;
    if (!good) fault_ = good.error().text;
    // A process that is killed while it writes leaves one record without a type, and nothing behind it.
    at_end_ = reader_->records.is_at_end();
    // What is to come names texts and sets of samples, and of cards it is known which there are: the rest of
    // what was read is not kept.
    Process& process = reader_->process;
    Process known;
    known.lost = process.lost;
    known.texts = std::move(process.texts);
    known.sample_sets = std::move(process.sample_sets);
    process = std::move(known);
    return done;
}

Result<Profile> parse_profile(std::string_view bytes, const std::function<void(double)>& read_so_far) {
    const std::size_t all = bytes.size();
    FileHead head{};
    if (!take(bytes, head) || std::memcmp(head.magic, kMagic, sizeof kMagic) != 0)
        return fail("it is not a profile of orrery-prof");
    if (head.major != kFormatMajor) {
        return fail("it is of format {}.{}, and this orrery-prof reads format {}", head.major, head.minor,
                    kFormatMajor);
    }
    Profile profile;
    while (!bytes.empty()) {
        const std::size_t at = all - bytes.size();
        PartHead part{};
        if (!take(bytes, part)) return fail("it is cut at byte {}, within the head of a process", all);
        if (part.magic != kPartMagic) return fail("at byte {} no process begins: it is damaged", at);
        if (part.bytes > bytes.size()) {
            return fail("it is cut at byte {}: process {} has {} bytes more", all, part.pid,
                        part.bytes - bytes.size());
        }
        Process process;
        process.pid = part.pid;
        process.parent = part.parent;
        process.begin_ns = part.begin_ns;
        process.machine = part.machine;
        process.lost = part.lost;
        process.ended = part.ended != 0;
        process.command.assign(part.command, ::strnlen(part.command, sizeof part.command));
        auto read = Records(process, at + sizeof part, Cuts::kAtTheEnd)
                        .read(bytes.substr(0, part.bytes), false, [&](std::size_t left) {
                            if (!read_so_far) return;
                            const std::size_t done = at + sizeof part + part.bytes - left;
                            read_so_far(static_cast<double>(done) / static_cast<double>(all));
                        });
        if (!read) return std::unexpected(read.error());
        bytes.remove_prefix(part.bytes);
        profile.processes.push_back(std::move(process));
    }
    align_machines(profile);
    find_begin(profile);
    return profile;
}

Result<Profile> read_profile(const std::string& file) {
    auto bytes = text::read_file(file);
    if (!bytes) return std::unexpected(bytes.error());
    text::Progress progress(fmt::format("reading {}", file));
    auto profile = parse_profile({reinterpret_cast<const char*>(bytes->data()), bytes->size()},
                                 [&](double done) { progress.at(done); });
    if (!profile) return fail("{}: {}", file, profile.error().text);
    return profile;
}

}  // namespace orrery::prof
