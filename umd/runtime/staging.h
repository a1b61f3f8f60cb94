// Copies that a card cannot do alone, through two pinned halves. Of ordinary host memory: the CPU fills one
// while the card reads the other. Between two cards that no way of links joins: one card does.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "umd/runtime/packets.h"
#include "umd/runtime/pinned_buffer.h"

namespace orrery::umd {

class Context;
class Stream;

// Between memory of a stream's card and of another one; not empty.
struct StagedCopy {
    bool pushes = false;  // the stream's card has the source
    orr_desc_box box{};
    // Not 0: what comes, bytes in a row, is combined with what is there.
    std::uint16_t type = 0, function = 0;
};

// Threads: one copy of a stream at a time; others wait.
class Staging {
  public:
    // Returns when src was read; the copy itself is ordered in the stream.
    // peers: see Stream::submit().
    Status to_device(Stream& stream, std::uint64_t dst, const std::byte* src, const CopyShape& shape,
                     std::span<Context* const> peers);
    // Returns when dst is written.
    Status from_device(Stream& stream, std::byte* dst, std::uint64_t src, const CopyShape& shape);
    // Ordered in the stream; returns when the destination is written, or when nothing of it runs any more;
    // then the stream has stopped if the other card failed.
    Status between(Stream& stream, Context& other, const StagedCopy& copy);

    // Of a stream that has stopped: nothing of it runs on another card, either.
    void stop(const Error& cause);

    static constexpr std::uint64_t kHalf = 512 << 10;  // whole elements, of any type

  private:
    Status prepare(Stream& stream);
    // Fails if the stream has stopped.
    Status begin_help(Stream& helper);
    Status between_with(Stream& stream, Stream& helper, const StagedCopy& copy);

    std::mutex mutex_;
    PinnedBuffer buffer_;
    std::array<std::uint64_t, 2> last_use_{};  // stream index after which a half is free
    std::mutex helper_mutex_;                  // of the next two, after mutex_
    Stream* helper_ = nullptr;                 // that does the other card's half now
    std::optional<Error> stopped_;
};

}  // namespace orrery::umd
