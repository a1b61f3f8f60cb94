#include "umd/scheduler/calibration.h"

#include <algorithm>
#include <array>

#include "umd/runtime/packets.h"
#include "umd/runtime/pinned_buffer.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

constexpr std::uint64_t kSmall = kCalibrationBytes / 16, kLarge = kCalibrationBytes;
constexpr std::uint32_t kEntries = 64;

// Two durations of what is a set-up and so much a byte.
std::optional<Channel> fit(Ps small, Ps large) {
    if (small <= 0 || large <= small) return std::nullopt;
    const double each = static_cast<double>(large - small) / static_cast<double>(kLarge - kSmall);
    const Ps moved = static_cast<Ps>(each * static_cast<double>(kSmall));
    return Channel{std::max<Ps>(small - moved, 0), each, true};
}

}  // namespace

Result<std::vector<std::optional<Channel>>> measure(Runtime& runtime, Context& card,
                                                    std::span<const Way> ways) {
    ORR_TRY(stamps, PinnedBuffer::create(runtime.memory(), card.device(), 4096));
    QueueOptions options;
    options.name = "tasks: calibration";
    ORR_TRY(stream, Stream::create(card, kEntries, 0, std::move(options)));
    std::vector<std::optional<Channel>> channels;
    Status done;
    for (const Way& way : ways) {
        const auto stamp = [&](unsigned number) { return make_timestamp(stamps->va() + 8 * number); };
        // The first one finds the pages.
        const std::array packets = {make_copy(way.dst, way.src, kSmall, true), stamp(0),
                                    make_copy(way.dst, way.src, kSmall, true), stamp(1),
                                    make_copy(way.dst, way.src, kLarge, true), stamp(2)};
        const std::array peers = {way.peer};
        const auto index = (*stream)->submit(packets, OpNote{Op::kCopy, nullptr},
                                             std::span(peers).first(way.peer == nullptr ? 0 : 1));
        done = index ? (*stream)->wait(*index) : Status(std::unexpected(index.error()));
        if (!done) break;
        std::array<Ps, 3> at{};
        for (unsigned i = 0; i < at.size(); ++i)
            at[i] = static_cast<Ps>(reinterpret_cast<const std::uint64_t*>(stamps->data())[i]);
        channels.push_back(fit(at[1] - at[0], at[2] - at[1]));
    }
    (*stream)->close();
    if (!done) return std::unexpected(done.error());
    return channels;
}

}  // namespace orrery::umd
