#include "umd/runtime/staging.h"

#include <algorithm>
#include <cstring>

#include "umd/runtime/context.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {

Status Staging::prepare(Stream& stream) {
    if (!buffer_.empty()) return {};
    ORR_TRY(buffer, PinnedBuffer::create(stream.context().memory(), stream.context().device(), 2 * kHalf));
    buffer_ = std::move(*buffer);
    return {};
}

Status Staging::to_device(Stream& stream, std::uint64_t dst, std::span<const std::byte> src,
                          std::span<Context* const> peers) {
    const std::lock_guard lock(mutex_);
    ORR_TRY(ready, prepare(stream));
    bool ordered = true;  // only the first piece waits for earlier work; the pieces are independent
    for (unsigned half = 0; !src.empty(); half ^= 1) {
        ORR_TRY(free, stream.wait(last_use_[half]));
        const std::uint64_t bytes = std::min<std::uint64_t>(src.size(), kHalf);
        std::memcpy(buffer_.data() + half * kHalf, src.data(), bytes);
        const orr_packet packet = make_copy(dst, buffer_.va() + half * kHalf, bytes, ordered);
        ORR_TRY(index, stream.submit({&packet, 1}, {Op::kCopy, nullptr}, peers));
        last_use_[half] = *index;
        dst += bytes;
        src = src.subspan(bytes);
        ordered = false;
    }
    return {};
}

Status Staging::from_device(Stream& stream, std::span<std::byte> dst, std::uint64_t src) {
    const std::lock_guard lock(mutex_);
    ORR_TRY(ready, prepare(stream));
    // `dst` is what is still to be received, asked: how much of it has been asked for.
    std::uint64_t asked = 0;
    bool ordered = true;
    std::array<std::uint64_t, 2> size{};
    const auto ask = [&](unsigned half) -> Status {
        const std::uint64_t bytes = std::min<std::uint64_t>(dst.size() - asked, kHalf);
        size[half] = bytes;
        if (bytes == 0) return {};
        ORR_TRY(free, stream.wait(last_use_[half]));
        const orr_packet packet = make_copy(buffer_.va() + half * kHalf, src + asked, bytes, ordered);
        ORR_TRY(index, stream.submit({&packet, 1}, {Op::kCopy, nullptr}));
        last_use_[half] = *index;
        asked += bytes;
        ordered = false;
        return {};
    };
    for (unsigned half = 0; half < 2; ++half) {
        ORR_TRY(asked_for, ask(half));
    }
    for (unsigned half = 0; size[half] != 0; half ^= 1) {
        ORR_TRY(arrived, stream.wait(last_use_[half]));
        const std::uint64_t bytes = size[half];
        std::memcpy(dst.data(), buffer_.data() + half * kHalf, bytes);
        dst = dst.subspan(bytes);
        src += bytes;
        asked -= bytes;
        ORR_TRY(next, ask(half));
    }
    return {};
}

}  // namespace orrery::umd
