#include "tools/prof/profile.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/text/files.h"

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

// Of the records of a process. `offset` in the file is what problems name.
class Records {
  public:
    Records(Process& process, std::uint64_t offset) : process_(process), offset_(offset) {}

    Result<void> read(std::string_view bytes) {
        while (!bytes.empty()) {
            RecordHead head{};
            if (bytes.size() < sizeof head) return wrong("is cut within a record");
            std::memcpy(&head, bytes.data(), sizeof head);
            const auto type = static_cast<Type>(head.type);
            if (type == Type::kEnd) return {};
            if (head.bytes < sizeof head || head.bytes % 8 != 0 || head.bytes > bytes.size())
                return wrong(fmt::format("has a record of {} bytes, which cannot be", head.bytes));
            auto good = read(type, head, bytes.substr(0, head.bytes));
            if (!good) return good;
            bytes.remove_prefix(head.bytes);
            offset_ += head.bytes;
        }
        return {};
    }

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
            process_.lost_work.insert(lost.device);
        }
        return {};
    }
    Result<void> add_work(std::string_view bytes) {
        WorkRecord work{};
        if (!take(bytes, work)) return wrong("has work that is too short");
        if (!knows(work.head.text) || !knows(work.stream_name))
            return wrong("names a text that is not there");
        if (work.end_ps < work.begin_ps) return wrong("has work that ends before it begins");
        process_.work.push_back(work);
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
};

void find_begin(Profile& profile) {
    std::uint64_t first = ~std::uint64_t{0};
    for (const Process& process : profile.processes) {
        first = std::min(first, process.begin_ns);
        for (const CallRecord& call : process.calls)
            first = std::min(first, call.begin_ns);
        for (const WorkRecord& work : process.work)
            first = std::min(first, work.submitted_ns);
        for (const auto& range : process.ranges)
            first = std::min(first, range.record.ns);
    }
    profile.begin_ns = profile.processes.empty() ? 0 : first;
}

}  // namespace

Result<Profile> parse_profile(std::string_view bytes) {
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
        process.lost = part.lost;
        process.ended = part.ended != 0;
        process.command.assign(part.command, ::strnlen(part.command, sizeof part.command));
        auto read = Records(process, at + sizeof part).read(bytes.substr(0, part.bytes));
        if (!read) return std::unexpected(read.error());
        bytes.remove_prefix(part.bytes);
        profile.processes.push_back(std::move(process));
    }
    std::ranges::sort(profile.processes, {},
                      [](const Process& process) { return std::pair(process.begin_ns, process.pid); });
    find_begin(profile);
    return profile;
}

Result<Profile> read_profile(const std::string& file) {
    auto bytes = text::read_file(file);
    if (!bytes) return std::unexpected(bytes.error());
    auto profile = parse_profile({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    if (!profile) return fail("{}: {}", file, profile.error().text);
    return profile;
}

}  // namespace orrery::prof
