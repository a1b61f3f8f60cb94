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

// Threads: one copy of a stream at a time; others wait.
class Staging {
  public:
    // Returns when src was read; the copy itself is ordered in the stream.
    // peers: see Stream::submit().
    Status to_device(Stream& stream, std::uint64_t dst, const std::byte* src, const CopyShape& shape,
                     std::span<Context* const> peers);
    // Returns when dst is written.
    Status from_device(Stream& stream, std::byte* dst, std::uint64_t src, const CopyShape& shape);
    // Between memory of the stream's card and of another one. pushes: the stream's card has the source. It
    // is ordered in the stream, and returns when dst is written, or when nothing of it runs any more; then
    // the stream has stopped if the other card failed.
    Status between(Stream& stream, Context& other, bool pushes, std::uint64_t dst, std::uint64_t src,
                   const CopyShape& shape);

    // Of a stream that has stopped: nothing of it runs on another card, either.
    void stop(const Error& cause);

    static constexpr std::uint64_t kHalf = 512 << 10;

  private:
    Status prepare(Stream& stream);
    // Fails if the stream has stopped.
    Status begin_help(Stream& helper);
    Status between_with(Stream& stream, Stream& helper, bool pushes, std::uint64_t dst, std::uint64_t src,
                        const CopyShape& shape);

    std::mutex mutex_;
    PinnedBuffer buffer_;
    std::array<std::uint64_t, 2> last_use_{};  // stream index after which a half is free
    std::mutex helper_mutex_;                  // of the next two, after mutex_
    Stream* helper_ = nullptr;                 // that does the other card's half now
    std::optional<Error> stopped_;
};

}  // namespace orrery::umd
