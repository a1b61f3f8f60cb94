#include "tools/records/records.h"

#include <orrery/fw/boot_block.h>
#include <orrery/fw/mailbox.h>
#include <orrery/fw/packet.h>
#include <orrery/fw/trace.h>

#include <algorithm>
#include <cstring>

#include "tools/records/names.h"

namespace orrery::records {
namespace {

std::string text_of(const Record& record) {
    char text[sizeof(std::uint64_t) * 3 + 1] = {};
    std::memcpy(text, record.word.data(), sizeof text - 1);
    return text;
}

std::string decision_text(const Record& r, const Labels& labels) {
    const std::uint32_t rule = r.b & 0xff, resource = r.b >> 8 & 0xff, candidates = r.b >> 16;
    const std::string of =
        fmt::format("{} of {} candidate{}", rule_name(rule), candidates, candidates == 1 ? "" : "s");
    if (r.a == ORR_TRACE_NONE)
        return fmt::format("{}: nobody may have it ({})", resource_phrase(resource), of);
    return fmt::format("{} goes to {}, packet {} ({})", resource_phrase(resource), labels.queue(r.a, r.time),
                       r.word[0], of);
}

std::string counted(std::uint64_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace

Record make_record(std::uint64_t step, Time time, std::uint64_t header,
                   std::span<const std::uint64_t> words) {
    Record record;
    record.type = static_cast<std::uint8_t>(ORR_TRACE_TYPE(header));
    record.a = static_cast<std::uint16_t>(ORR_TRACE_A(header));
    record.b = ORR_TRACE_B(header);
    record.step = step;
    record.time = time;
    std::copy_n(words.begin(), std::min(words.size(), record.word.size()), record.word.begin());
    return record;
}

std::uint32_t queue_of(const Record& record) {
    switch (record.type) {
        case ORR_TRACE_START:
            return (record.word[1] >> 32) < 0xffff ? static_cast<std::uint32_t>(record.word[1] >> 32)
                                                   : ORR_TRACE_NONE;
        case ORR_TRACE_MAIL:
        case ORR_TRACE_CONTEXT:
        case ORR_TRACE_POKE:
        case ORR_TRACE_QUOTA:
            return ORR_TRACE_NONE;
        case ORR_TRACE_NAME:
            return record.b == ORR_NAME_QUEUE ? record.a : ORR_TRACE_NONE;
        default:
            return record.a;
    }
}

std::string describe(const Record& r, const Labels& labels) {
    const auto q = [&] { return labels.queue(r.a, r.time); };
    const std::uint32_t port = r.b & 0xff;
    switch (r.type) {
        case ORR_TRACE_START:
            return fmt::format("the firmware starts, ABI {}.{}", r.b >> 16, r.b & 0xffff);
        case ORR_TRACE_MAIL:
            return fmt::format("command {} (sequence {}): {}", mail_name(r.a), r.b,
                               mail_status_name(r.word[0]));
        case ORR_TRACE_CONTEXT:
            return fmt::format("context {} {}", r.a, r.b == 1 ? "created" : "destroyed");
        case ORR_TRACE_QUEUE:
            if (r.b == 0xffffffffu) return fmt::format("{} destroyed", q());
            return fmt::format("{} in context {}: class {}, weight {}, slice {}", q(), r.b,
                               class_name(r.word[0] & 0xffff), r.word[0] >> 16 & 0xffff,
                               r.word[0] >> 32 == 0 ? "by default" : fmt::format("{} us", r.word[0] >> 32));
        case ORR_TRACE_DOORBELL:
            return fmt::format("doorbell of {}: {} written", q(), counted(r.word[0], "packet"));
        case ORR_TRACE_STATE:
            return fmt::format("{} {}", q(), state_phrase(r.b));
        case ORR_TRACE_DECISION:
            return decision_text(r, labels);
        case ORR_TRACE_START_JOB:
            return fmt::format(
                "{} starts packet {} ({}, {}) on port {}", q(), r.word[0], packet_name(r.b >> 16),
                counted(r.word[1], r.b >> 16 == ORR_PKT_DISPATCH ? "group" : "byte"), r.b & 0xffff);
        case ORR_TRACE_END_JOB:
            return fmt::format("port {} ends packet {} of {}: {}, {} on the engine", r.b & 0xffff, r.word[0],
                               q(), done_name(r.b >> 16), duration(r.word[3]));
        case ORR_TRACE_PREEMPT:
            // For itself: what it was asked for before takes too long. For none: its context is over its
            // quota.
            return fmt::format("{} is preempted on port {}{}, {}", q(), port,
                               r.b >> 16 == r.a || r.b >> 16 == ORR_TRACE_NONE
                                   ? ""
                                   : " for " + labels.queue(r.b >> 16, r.time),
                               preempt_name(r.b >> 8 & 0xff));
        case ORR_TRACE_RESUME:
            return fmt::format("{} goes on with packet {} on port {}", q(), r.word[0], r.b);
        case ORR_TRACE_WAIT:
            return fmt::format("{} waits for {} >= {}, packet {}", q(), labels.memory(r.word[0]), r.word[1],
                               r.word[3]);
        case ORR_TRACE_WAKE:
            return fmt::format("{} wakes by {}: {} is {}", q(), wake_name(r.b), labels.memory(r.word[0]),
                               r.word[1]);
        case ORR_TRACE_SIGNAL:
            return fmt::format("{} signals {} = {}, {} woken", q(), labels.memory(r.word[0]), r.word[1], r.b);
        case ORR_TRACE_POKE:
            return fmt::format("a linked card signals {}, {} woken", labels.memory(r.word[0]), r.b);
        case ORR_TRACE_RETIRE:
            return fmt::format("{} has finished {}", q(), counted(r.word[0], "packet"));
        case ORR_TRACE_ERROR:
            return fmt::format("{} stops: {} at packet {} (address {:#x}, detail {:#x})", q(),
                               queue_error_name(r.b), r.word[0], r.word[1], r.word[2]);
        case ORR_TRACE_DEADLOCK:
            return fmt::format("edge {} of {}: {} waits for {} >= {} (now {}), whose signal {} holds",
                               (r.b >> 16 & 0xff) + 1, r.b >> 24, q(), labels.memory(r.word[0]), r.word[1],
                               r.word[2], labels.queue(r.b & 0xffff, r.time));
        case ORR_TRACE_QUOTA:
            return fmt::format("context {} is {} its quota, {} used in this period", r.a,
                               r.b == 1 ? "over" : "again within", duration(r.word[0]));
        case ORR_TRACE_GANG:
            return fmt::format("gang of {}: {}, round {}", q(), gang_name(r.b), r.word[0]);
        case ORR_TRACE_SLOT: {
            const std::uint32_t loser = r.b >> 16;
            return fmt::format("{} gets ring slot {}{}", q(), r.b & 0xffff,
                               loser == ORR_TRACE_NONE ? "" : " of " + labels.queue(loser, r.time));
        }
        case ORR_TRACE_NAME:
            return fmt::format("{} {} is called \"{}\"", r.b == ORR_NAME_QUEUE ? "queue" : "context", r.a,
                               text_of(r));
        default:
            return fmt::format("{}: a {:#x}, b {:#x}", record_name(r.type), r.a, r.b);
    }
}

}  // namespace orrery::records
