#include "umd/prof/ranges.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "umd/prof/profiler.h"
#include "umd/prof/thread_object.h"
#include "umd/prof/tools.h"
#include "umd/runtime/clock.h"
#include "umd/runtime/handle_table.h"

namespace orrery::umd {
namespace {

constexpr std::size_t kMaxDomains = 1024;  // with the program's own
constexpr std::size_t kMaxName = 255;
constexpr std::size_t kMaxExternal = 1024;  // a thread

// Names stay where they are, so who reads one takes no lock. Domain 0 is the program's own, without a name.
struct Domains {
    std::mutex mutex;
    std::atomic<std::size_t> count{1};
    std::array<std::unique_ptr<const std::string>, kMaxDomains> names;
};
Domains& domains() {
    static auto* const all = std::make_unique<Domains>().release();
    return *all;
}

// A thread's ranges of a domain that are open.
struct Track {
    std::uint64_t depth = 0;         // how many
    std::vector<RangeSums*> wanted;  // those of which somebody wants to know what cards do, innermost last
};

// Of a thread.
struct Open {
    std::vector<Track> ranges;            // by domain
    std::vector<std::uint64_t> external;  // innermost last
    HeldRanges around;                    // as it is now; null: nobody has asked since, or none is wanted

    Open() = default;
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open() {
        for (Track& track : ranges) {
            for (; !track.wanted.empty(); track.wanted.pop_back())
                end_range(track.wanted.back(), static_cast<std::uint64_t>(now_ns()), false);
        }
    }
};
Result<Open*> open_here() {
    if (auto* const open = thread_object<Open>()) return open;
    return fail(orrErrorNotSupported, "this thread has ended: ranges and numbers of its are no more");
}

Result<std::size_t> number_of(orrProfDomain_t domain) {
    if (domain == nullptr) return 0;
    const auto handle = reinterpret_cast<std::uintptr_t>(domain);
    const std::size_t number = handle & kHandleBits;
    const bool kind = (handle & ~kHandleBits) == handle_mark(HandleKind::kProfDomain);
    if (kind && number != 0 && number < domains().count.load(std::memory_order_acquire)) return number;
    return fail(orrErrorInvalidHandle, "{} is not a domain: make one with orrProfDomainCreate",
                fmt::ptr(domain));
}

// Somebody wants this: a range may come before any call.
bool wants(std::uint32_t kind) {
    if (!prof_wants(kind)) return false;
    start_tools();
    return prof_wants(kind);
}

orrProfRecord record_of(orrProfKind kind, std::size_t domain, const char* text, std::uint64_t depth) {
    orrProfRecord record{};
    record.kind = kind;
    record.name = text;
    record.depth = depth;
    if (domain != 0) record.domain = domains().names[domain]->c_str();
    return record;
}

constexpr std::uint32_t kRanges = orrProfWantRanges | orrProfWantRangeWork;

Status no_text() {
    return fail(orrErrorInvalidValue, "the text is null");
}

}  // namespace

Result<orrProfDomain_t> create_domain(const char* name) {
    if (name == nullptr) return fail(orrErrorInvalidValue, "the domain's name is null");
    const std::string_view text(name);
    if (text.empty() || text.size() > kMaxName) {
        return fail(orrErrorInvalidValue, "the domain's name has {} bytes: give 1 to {}", text.size(),
                    kMaxName);
    }
    Domains& all = domains();
    const std::lock_guard lock(all.mutex);
    const std::size_t count = all.count.load(std::memory_order_relaxed);
    std::size_t number = 1;
    while (number < count && *all.names[number] != text)
        ++number;
    if (number == kMaxDomains)
        return fail(orrErrorOutOfMemory, "there are {} domains already, which is all there can be", count);
    if (number == count) {
        all.names[number] = std::make_unique<const std::string>(text);
        all.count.store(count + 1, std::memory_order_release);
    }
    return reinterpret_cast<orrProfDomain_t>(handle_mark(HandleKind::kProfDomain) | number);
}

Status push_range(orrProfDomain_t domain, const char* text) {
    if (text == nullptr) return no_text();
    ORR_TRY(number, number_of(domain));
    ORR_TRY(open, open_here());
    auto& ranges = (*open)->ranges;
    if (ranges.size() <= *number) ranges.resize(*number + 1);
    if (!wants(kRanges)) {
        ++ranges[*number].depth;
        return {};
    }
    Track& track = ranges[*number];
    orrProfRecord record = record_of(orrProfRangeBegin, *number, text, track.depth);
    record.host_ns = static_cast<std::uint64_t>(now_ns());
    if (range_work_wanted()) {
        track.wanted.push_back(nullptr);
        RangeSums* const around = track.wanted.size() < 2 ? nullptr : track.wanted.end()[-2];
        track.wanted.back() = begin_range({text, record.domain, record.depth, record.host_ns, around});
        record.range = range_number(track.wanted.back());
        if (track.wanted.back() == nullptr) track.wanted.pop_back();
        (*open)->around.reset();
    }
    ++track.depth;
    // Whoever is told may push and pop as well.
    Profiler::get().tell(record, orrProfWantRanges);
    return {};
}

Status pop_range(orrProfDomain_t domain) {
    ORR_TRY(number, number_of(domain));
    ORR_TRY(open, open_here());
    auto& ranges = (*open)->ranges;
    if (ranges.size() <= *number || ranges[*number].depth == 0) {
        return fail(orrErrorInvalidValue, "this thread has no range of that domain open: push one first");
    }
    Track& track = ranges[*number];
    const std::uint64_t depth = --track.depth;
    RangeSums* ended = nullptr;
    if (!track.wanted.empty() && range_depth(*track.wanted.back()) == track.depth) {
        ended = track.wanted.back();
        track.wanted.pop_back();
        (*open)->around.reset();
    }
    if (ended == nullptr && !wants(kRanges)) return {};
    // A tool that starts only now may have made room for domains of its own: `track` is no more.
    orrProfRecord record = record_of(orrProfRangeEnd, *number, nullptr, depth);
    record.host_ns = static_cast<std::uint64_t>(now_ns());
    record.range = range_number(ended);
    Profiler::get().tell(record, orrProfWantRanges);
    if (ended == nullptr) return {};
    end_range(ended, record.host_ns, true);
    (void)tell_ranges_done(false);
    return {};
}

HeldRanges ranges_around() noexcept {
    if (!prof_has(orrProfWantRangeWork)) return {};
    auto* const open = thread_object<Open>();
    if (open == nullptr || open->around != nullptr) return open == nullptr ? nullptr : open->around;
    try {
        std::vector<RangeSums*> innermost;
        for (const Track& track : open->ranges) {
            if (!track.wanted.empty()) innermost.push_back(track.wanted.back());
        }
        if (!innermost.empty()) open->around = std::make_shared<const RangesAround>(std::move(innermost));
    } catch (const std::bad_alloc&) {
        // It is in no range's sums.
    }
    return open->around;
}

void miss_in_ranges() noexcept {
    if (const HeldRanges around = ranges_around()) around->miss();
}

Status mark(orrProfDomain_t domain, const char* text) {
    if (text == nullptr) return no_text();
    ORR_TRY(number, number_of(domain));
    const auto* const open = thread_object<Open>();
    const bool inside = open != nullptr && open->ranges.size() > *number;
    if (!wants(orrProfWantRanges)) return {};
    orrProfRecord record = record_of(orrProfMarker, *number, text, inside ? open->ranges[*number].depth : 0);
    Profiler::get().tell(record, orrProfWantRanges);
    return {};
}

Result<const char*> domain_name(orrProfDomain_t domain) {
    ORR_TRY(number, number_of(domain));
    return *number == 0 ? nullptr : domains().names[*number]->c_str();
}

Status push_external(std::uint64_t id) {
    if (id == 0) return fail(orrErrorInvalidValue, "the number is 0, which stands for none");
    ORR_TRY(open, open_here());
    auto& external = (*open)->external;
    if (external.size() >= kMaxExternal) {
        return fail(orrErrorOutOfMemory, "this thread has {} numbers pushed: pop some (orrProfExternalPop)",
                    external.size());
    }
    external.push_back(id);
    thread_marks().external = id;
    return {};
}

Result<std::uint64_t> pop_external() {
    ORR_TRY(open, open_here());
    auto& external = (*open)->external;
    if (external.empty())
        return fail(orrErrorInvalidValue,
                    "this thread has no number pushed: orrProfExternalPush comes first");
    const std::uint64_t id = external.back();
    external.pop_back();
    thread_marks().external = external.empty() ? 0 : external.back();
    return id;
}

}  // namespace orrery::umd
