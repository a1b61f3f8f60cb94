#include "umd/runtime/clock_offset.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/pinned_buffer.h"

namespace orrery::umd {
namespace {

constexpr std::uint32_t kEntries = 64;
constexpr std::uint64_t kStampBytes = 4096;
constexpr std::int64_t kSpinNs = 100'000;
constexpr std::chrono::microseconds kNap{50};
static_assert(4 * kClockRounds <= kEntries && 2 * kClockRounds * sizeof(std::uint64_t) <= kStampBytes);

// A card's part. Of its streams nobody waits who frees or synchronizes: it touches nothing of the user's.
struct Side {
    PinnedBuffer stamps;
    std::shared_ptr<SemaphoreSlot> heard;  // on this card; the other one signals it
    std::shared_ptr<Stream> stream;

    static Result<Side> create(Context& card, Context& other) {
        Side side;
        ORR_TRY(stamps, PinnedBuffer::create(card.memory(), card.device(), kStampBytes));
        side.stamps = std::move(*stamps);
        ORR_TRY(slot, card.semaphores().take(true));
        side.heard = std::move(*slot);
        ORR_TRY(shared, card.memory().share_block(*side.heard->block, other.device()));
        QueueOptions options;
        options.name = fmt::format("clock of device {}", other.device());
        ORR_TRY(stream, Stream::create(card, kEntries, 0, std::move(options), Stream::Use::kRelay));
        side.stream = std::move(*stream);
        return side;
    }

    std::uint64_t stamp(unsigned number) const {
        return reinterpret_cast<const std::uint64_t*>(stamps.data())[number];
    }
    orr_packet write_stamp(unsigned number) const {
        return make_timestamp(stamps.va() + number * sizeof(std::uint64_t));
    }
    orr_packet wait(unsigned round) const { return make_wait(heard->va, round + 1, 0); }
};

struct Plan {
    std::vector<orr_packet> packets;
    std::vector<Crossing> crossings;

    void signal(const Side& to, unsigned round) {
        packets.push_back(make_semaphore(ORR_PKT_SIGNAL, to.heard->va, round + 1));
        crossings.push_back({packets.size(), to.heard, round + 1});
    }
    Result<std::uint64_t> submit(const Side& side, const Side& to) const {
        to.heard->promise(kClockRounds);  // it is not given out again if they do not all come
        return side.stream->submit(packets, {Op::kSignal, nullptr}, {}, crossings);
    }
};

// No wait on a card has a limit, as one would slow down a card that has nothing else to do; a link or card
// that fails is told to the streams.
Status finish(Stream& stream, std::uint64_t index, std::int64_t start, std::int64_t limit_ns) {
    while (!stream.done(index)) {
        if (auto stopped = stream.failed(index)) return std::unexpected(*stopped);
        const std::int64_t waited = now_ns() - start;
        if (waited > limit_ns) {
            return fail(orrErrorTimeout,
                        "{} has come to packet {} of {} after {} ms of the host's time: one of the cards is "
                        "held (orrery-smi), or has no time for it",
                        stream.label(), stream.executed(), index, waited / 1'000'000);
        }
        if (waited > kSpinNs) std::this_thread::sleep_for(kNap);
    }
    return {};
}

Status exchange(const Side& reference, const Side& device, std::int64_t limit_ns) {
    Plan asks, answers;
    for (unsigned round = 0; round < kClockRounds; ++round) {
        asks.packets.push_back(reference.write_stamp(2 * round));
        asks.signal(device, round);
        asks.packets.push_back(reference.wait(round));
        asks.packets.push_back(reference.write_stamp(2 * round + 1));
        answers.packets.push_back(device.wait(round));
        answers.packets.push_back(device.write_stamp(round));
        answers.signal(reference, round);
    }
    const std::int64_t start = now_ns();
    // Who answers is there first.
    ORR_TRY(answered, answers.submit(device, reference));
    ORR_TRY(asked, asks.submit(reference, device));
    ORR_TRY(heard, finish(*reference.stream, *asked, start, limit_ns));
    return finish(*device.stream, *answered, start, limit_ns);
}

// The link between them may have gone as a card has.
Error first_cause(Context& device, Context& reference, Error error) {
    if (error.code != orrErrorPeerAccess) return error;
    return loss_of_either(device, reference).value_or(std::move(error));
}

}  // namespace

Result<ClockOffset> clock_offset(std::span<const ClockRound> rounds) {
    ClockOffset best;
    best.error_ps = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t before_reference = 0, before_device = 0;
    for (const ClockRound& round : rounds) {
        if (round.sent_ps < before_reference || round.answered_ps < round.sent_ps ||
            round.device_ps < before_device) {
            return fail(
                orrErrorInternal,
                "a clock went back while it was measured: {} to {} ps after {} ps, and {} ps after {} ps",
                round.sent_ps, round.answered_ps, before_reference, round.device_ps, before_device);
        }
        before_reference = round.answered_ps;
        before_device = round.device_ps;
        const std::uint64_t took = round.answered_ps - round.sent_ps;
        const std::uint64_t error = took - took / 2;
        best.worst_ps = std::max(best.worst_ps, error);
        if (error > best.error_ps) continue;
        best.offset_ps = static_cast<std::int64_t>(round.device_ps - (round.sent_ps + took / 2));
        best.error_ps = error;
        best.device_ps = round.device_ps;
    }
    return best;
}

Result<ClockOffset> measure_clock_offset(Context& device, Context& reference, std::int64_t limit_ns) {
    auto asks = Side::create(reference, device);
    if (!asks) return std::unexpected(first_cause(device, reference, asks.error()));
    auto answers = Side::create(device, reference);
    if (!answers) {
        asks->stream->close();
        return std::unexpected(first_cause(device, reference, answers.error()));
    }
    auto done = exchange(*asks, *answers, limit_ns);
    if (!done) {
        const Error cause = first_cause(device, reference, done.error());
        // Both, with this cause, before their memory goes.
        (void)asks->stream->stop(cause);
        (void)answers->stream->stop(cause);
        done = std::unexpected(cause);
    }
    asks->stream->close();
    answers->stream->close();
    if (!done) return std::unexpected(done.error());
    std::array<ClockRound, kClockRounds> rounds;
    for (unsigned round = 0; round < kClockRounds; ++round)
        rounds[round] = {asks->stamp(2 * round), answers->stamp(round), asks->stamp(2 * round + 1)};
    return clock_offset(rounds);
}

}  // namespace orrery::umd
