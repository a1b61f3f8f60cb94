#include "umd/runtime/staging.h"

#include <algorithm>
#include <cstring>

#include "umd/runtime/context.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

// Rows of one plane, or bytes of one row, that fit a half, where they lie without gaps.
struct Piece {
    std::uint64_t row_bytes = 0;  // 0: there is none
    std::uint32_t rows = 0;
    std::uint64_t dst = 0, src = 0;  // offsets of the first byte
};

class Pieces {
  public:
    explicit Pieces(const CopyShape& shape) : shape_(shape) {}
    Piece next() {
        if (plane_ == shape_.planes || shape_.row_bytes == 0) return {};
        Piece piece;
        piece.dst = (plane_ * shape_.dst_height + row_) * shape_.dst_pitch + column_;
        piece.src = (plane_ * shape_.src_height + row_) * shape_.src_pitch + column_;
        piece.row_bytes = std::min(shape_.row_bytes - column_, Staging::kHalf);
        piece.rows = 1;
        if (piece.row_bytes == shape_.row_bytes) {
            const std::uint64_t fit = Staging::kHalf / shape_.row_bytes;
            piece.rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(shape_.rows - row_, fit));
        }
        column_ += piece.row_bytes;
        if (column_ == shape_.row_bytes) {
            column_ = 0;
            row_ += piece.rows;
        }
        if (row_ == shape_.rows) {
            row_ = 0;
            ++plane_;
        }
        return piece;
    }

  private:
    const CopyShape shape_;
    std::uint64_t plane_ = 0, row_ = 0, column_ = 0;
};

// A half has the rows of a piece one behind the other.
CopyShape into_half(const Piece& piece, const CopyShape& shape) {
    return {.row_bytes = piece.row_bytes,
            .rows = piece.rows,
            .src_pitch = shape.src_pitch,
            .dst_pitch = piece.row_bytes};
}
CopyShape out_of_half(const Piece& piece, const CopyShape& shape) {
    return {.row_bytes = piece.row_bytes,
            .rows = piece.rows,
            .src_pitch = piece.row_bytes,
            .dst_pitch = shape.dst_pitch};
}

}  // namespace

Status Staging::prepare(Stream& stream) {
    if (!buffer_.empty()) return {};
    ORR_TRY(buffer, PinnedBuffer::create(stream.context().memory(), stream.context().device(), 2 * kHalf));
    buffer_ = std::move(*buffer);
    return {};
}

Status Staging::to_device(Stream& stream, std::uint64_t dst, const std::byte* src, const CopyShape& shape,
                          std::span<Context* const> peers) {
    const std::lock_guard lock(mutex_);
    ORR_TRY(ready, prepare(stream));
    bool ordered = true;  // only the first piece waits for earlier work; the pieces are independent
    Pieces pieces(shape);
    unsigned half = 0;
    for (Piece piece = pieces.next(); piece.row_bytes != 0; piece = pieces.next(), half ^= 1) {
        ORR_TRY(free, stream.wait(last_use_[half]));
        std::byte* const packed = buffer_.data() + half * kHalf;
        for (std::uint64_t row = 0; row < piece.rows; ++row)
            std::memcpy(packed + row * piece.row_bytes, src + piece.src + row * shape.src_pitch,
                        piece.row_bytes);
        const CopyShape part = out_of_half(piece, shape);
        const orr_packet packet = make_copy(dst + piece.dst, buffer_.va() + half * kHalf, part, ordered);
        ORR_TRY(index, stream.submit({&packet, 1}, {Op::kCopy, nullptr}, peers));
        last_use_[half] = *index;
        ordered = false;
    }
    return {};
}

Status Staging::from_device(Stream& stream, std::byte* dst, std::uint64_t src, const CopyShape& shape) {
    const std::lock_guard lock(mutex_);
    ORR_TRY(ready, prepare(stream));
    bool ordered = true;
    Pieces pieces(shape);
    std::array<Piece, 2> asked{};  // what is on its way to each half
    const auto ask = [&](unsigned half) -> Status {
        const Piece piece = asked[half] = pieces.next();
        if (piece.row_bytes == 0) return {};
        ORR_TRY(free, stream.wait(last_use_[half]));
        const CopyShape part = into_half(piece, shape);
        const orr_packet packet = make_copy(buffer_.va() + half * kHalf, src + piece.src, part, ordered);
        ORR_TRY(index, stream.submit({&packet, 1}, {Op::kCopy, nullptr}));
        last_use_[half] = *index;
        ordered = false;
        return {};
    };
    for (unsigned half = 0; half < 2; ++half) {
        ORR_TRY(asked_for, ask(half));
    }
    for (unsigned half = 0; asked[half].row_bytes != 0; half ^= 1) {
        ORR_TRY(arrived, stream.wait(last_use_[half]));
        const Piece& piece = asked[half];
        const std::byte* const packed = buffer_.data() + half * kHalf;
        for (std::uint64_t row = 0; row < piece.rows; ++row)
            std::memcpy(dst + piece.dst + row * shape.dst_pitch, packed + row * piece.row_bytes,
                        piece.row_bytes);
        ORR_TRY(next, ask(half));
    }
    return {};
}

void Staging::stop(const Error& cause) {
    const std::lock_guard lock(helper_mutex_);
    if (!stopped_) stopped_ = cause;
    if (helper_ != nullptr) helper_->stop(cause);
}

Status Staging::begin_help(Stream& helper) {
    const std::lock_guard lock(helper_mutex_);
    if (stopped_) return std::unexpected(*stopped_);
    helper_ = &helper;
    return {};
}

Status Staging::between(Stream& stream, Context& other, bool pushes, std::uint64_t dst, std::uint64_t src,
                        const CopyShape& shape) {
    std::vector<std::shared_ptr<Stream>> ended;
    std::shared_ptr<Stream> helper;
    const auto copied = [&]() -> Status {
        const std::lock_guard lock(mutex_);
        ORR_TRY(ready, prepare(stream));
        ORR_TRY(shared, buffer_.share(other.device()));
        ORR_TRY(taken, other.take_copy_stream(ended));
        helper = *std::move(taken);
        ORR_TRY(helps, begin_help(*helper));
        // Also if the copy ends by an exception nobody stops a helper that is gone.
        struct End {
            Staging& staging;
            ~End() {
                const std::lock_guard helper_lock(staging.helper_mutex_);
                staging.helper_ = nullptr;
            }
        };
        const End end{*this};
        return between_with(stream, *helper, pushes, dst, src, shape);
    };
    Status done = copied();
    // One that is not kept ends, and what a tool does when it is told of that may need this lock.
    if (helper != nullptr) other.give_copy_stream(std::move(helper));
    return done;
}

Status Staging::between_with(Stream& stream, Stream& helper, bool pushes, std::uint64_t dst,
                             std::uint64_t src, const CopyShape& shape) {
    // The other card knows nothing of the stream's order. If it is the one that writes, it does so when this
    // one has read, which the first piece orders.
    if (!pushes) {
        ORR_TRY(before, stream.synchronize());
    }
    Stream& reader = pushes ? stream : helper;
    Stream& writer = pushes ? helper : stream;
    std::uint64_t last = 0;  // of the helper
    bool ordered = true;
    const auto copy = [&](Stream& by, std::uint64_t to, std::uint64_t from, const CopyShape& part,
                          unsigned half) -> Result<std::uint64_t> {
        const orr_packet packet = make_copy(to, from, part, ordered);
        ORR_TRY(index, by.submit({&packet, 1}, {Op::kCopy, nullptr}));
        (&by == &stream ? last_use_[half] : last) = *index;
        return index;
    };
    Pieces pieces(shape);
    std::array<Piece, 2> asked{};
    std::array<std::uint64_t, 2> read{};
    const auto ask = [&](unsigned half) -> Status {
        const Piece piece = asked[half] = pieces.next();
        if (piece.row_bytes == 0) return {};
        ORR_TRY(free, stream.wait(last_use_[half]));
        const CopyShape part = into_half(piece, shape);
        ORR_TRY(index, copy(reader, buffer_.va() + half * kHalf, src + piece.src, part, half));
        read[half] = *index;
        ordered = false;
        return {};
    };
    const auto all = [&]() -> Status {
        for (unsigned half = 0; half < 2; ++half) {
            ORR_TRY(asked_for, ask(half));
        }
        for (unsigned half = 0; asked[half].row_bytes != 0; half ^= 1) {
            ORR_TRY(arrived, reader.wait(read[half]));
            const Piece& piece = asked[half];
            const CopyShape part = out_of_half(piece, shape);
            ORR_TRY(index, copy(writer, dst + piece.dst, buffer_.va() + half * kHalf, part, half));
            ORR_TRY(written, writer.wait(*index));
            ORR_TRY(next, ask(half));
        }
        return {};
    };
    auto done = all();
    if (done) return {};
    // The halves, and the user's memory, are nobody's any more when this returns.
    if (auto over = helper.wait(last); !over && !helper.over(last)) helper.stop(over.error());
    if (auto cause = helper.error()) {
        return std::unexpected(
            stream.stop({cause->code,
                         fmt::format("device {}, which does its half of a copy through the host's memory: {}",
                                     helper.context().device(), cause->text)}));
    }
    return done;
}

}  // namespace orrery::umd
