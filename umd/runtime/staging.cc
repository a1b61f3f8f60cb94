#include "umd/runtime/staging.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "umd/runtime/context.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

// Parts of a box that is not empty, each of which fits a half.
class Parts {
  public:
    explicit Parts(const orr_desc_box& box) : box_(box) {
        extent_[0] = box.row_bytes;
        dst_stride_[0] = src_stride_[0] = 1;
        for (unsigned i = 0; i < ORR_BOX_DIMENSIONS; ++i) {
            extent_[i + 1] = i < box.dimensions ? box.count[i] : 1;
            dst_stride_[i + 1] = box.dst_stride[i];
            src_stride_[i + 1] = box.src_stride[i];
        }
        for (; cut_ < kAll - 1 && extent_[cut_] <= Staging::kHalf / whole_; ++cut_)
            whole_ *= extent_[cut_];
    }
    // row_bytes 0: there is none.
    orr_desc_box next() {
        orr_desc_box part{};
        if (over_) return part;
        part = box_;
        for (unsigned i = 0; i < kAll; ++i) {
            part.dst += at_[i] * dst_stride_[i];
            part.src += at_[i] * src_stride_[i];
        }
        const std::uint64_t taken = std::min(extent_[cut_] - at_[cut_], Staging::kHalf / whole_);
        if (cut_ == 0) part.row_bytes = taken;
        for (unsigned i = 0; i < part.dimensions; ++i) {
            if (i + 1 == cut_) part.count[i] = static_cast<std::uint32_t>(taken);
            if (i + 1 > cut_) part.count[i] = 1;
        }
        at_[cut_] += taken;
        for (unsigned i = cut_; !over_ && at_[i] == extent_[i]; ++i) {
            at_[i] = 0;
            over_ = i + 1 == kAll;
            if (!over_) ++at_[i + 1];
        }
        return part;
    }

  private:
    static constexpr unsigned kAll = 1 + ORR_BOX_DIMENSIONS;  // with the bytes of a row
    using Each = std::array<std::uint64_t, kAll>;

    const orr_desc_box box_;
    Each extent_{}, dst_stride_{}, src_stride_{}, at_{};
    unsigned cut_ = 0;         // some of this one, all of those before it, one of those behind it
    std::uint64_t whole_ = 1;  // bytes of those before it
    bool over_ = false;
};

// A half at `va` has the rows of a part one behind the other.
void pack(const orr_desc_box& part, std::uint64_t (&stride)[ORR_BOX_DIMENSIONS]) {
    std::uint64_t bytes = part.row_bytes;
    for (unsigned i = 0; i < part.dimensions; bytes *= part.count[i++])
        stride[i] = bytes;
}
orr_desc_box into_half(orr_desc_box part, std::uint64_t va) {
    part.dst = va;
    pack(part, part.dst_stride);
    return part;
}
orr_desc_box out_of_half(orr_desc_box part, std::uint64_t va) {
    part.src = va;
    pack(part, part.src_stride);
    return part;
}

// By the CPU; of rows and planes.
void copy_box(const orr_desc_box& box) {
    const std::uint32_t planes = box.dimensions > 1 ? box.count[1] : 1;
    for (std::uint64_t plane = 0; plane < planes; ++plane) {
        for (std::uint64_t row = 0; row < box.count[0]; ++row) {
            const std::uint64_t to = box.dst + plane * box.dst_stride[1] + row * box.dst_stride[0];
            const std::uint64_t from = box.src + plane * box.src_stride[1] + row * box.src_stride[0];
            std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), box.row_bytes);
        }
    }
}

// Rows and planes need no descriptor, and the firmware's trace has their size.
std::optional<CopyShape> shape_of(const orr_desc_box& box) {
    const auto is_1 = [](auto n) { return n == 1; };
    if (!std::all_of(box.count + std::min<unsigned>(box.dimensions, 2), box.count + box.dimensions, is_1))
        return {};
    CopyShape shape{.row_bytes = box.row_bytes,
                    .rows = box.count[0],
                    .src_pitch = box.src_stride[0],
                    .dst_pitch = box.dst_stride[0]};
    if (box.dimensions < 2 || box.count[1] == 1) return shape;
    // Planes are whole rows apart.
    const auto height = [&](const std::uint64_t(&stride)[ORR_BOX_DIMENSIONS]) -> std::uint32_t {
        if (stride[0] < box.row_bytes || stride[1] % stride[0] != 0) return 0;
        const std::uint64_t rows = stride[1] / stride[0];
        return rows >= box.count[0] && rows <= UINT32_MAX ? static_cast<std::uint32_t>(rows) : 0;
    };
    shape.planes = box.count[1];
    shape.src_height = height(box.src_stride);
    shape.dst_height = height(box.dst_stride);
    if (shape.src_height == 0 || shape.dst_height == 0) return {};
    return shape;
}

Result<std::uint64_t> submit_box(Stream& stream, const orr_desc_box& box, bool ordered,
                                 std::span<Context* const> peers = {}) {
    if (const auto shape = shape_of(box)) {
        const orr_packet packet = make_copy(box.dst, box.src, *shape, ordered);
        return stream.submit({&packet, 1}, {Op::kCopy, nullptr}, peers);
    }
    return stream.submit_with(make_box_copy(ordered), kBoxCopyWord, std::as_bytes(std::span(&box, 1)),
                              {Op::kCopy, nullptr}, peers);
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
    bool ordered = true;  // only the first part waits for earlier work; the parts are independent
    Parts parts(make_box(dst, reinterpret_cast<std::uintptr_t>(src), shape));
    unsigned half = 0;
    for (orr_desc_box part = parts.next(); part.row_bytes != 0; part = parts.next(), half ^= 1) {
        ORR_TRY(free, stream.wait(last_use_[half]));
        const std::uint64_t va = buffer_.va() + half * kHalf;
        copy_box(into_half(part, va));
        ORR_TRY(index, submit_box(stream, out_of_half(part, va), ordered, peers));
        last_use_[half] = *index;
        ordered = false;
    }
    return {};
}

Status Staging::from_device(Stream& stream, std::byte* dst, std::uint64_t src, const CopyShape& shape) {
    const std::lock_guard lock(mutex_);
    ORR_TRY(ready, prepare(stream));
    bool ordered = true;
    Parts parts(make_box(reinterpret_cast<std::uintptr_t>(dst), src, shape));
    std::array<orr_desc_box, 2> asked{};  // what is on its way to each half
    const auto ask = [&](unsigned half) -> Status {
        asked[half] = parts.next();
        if (asked[half].row_bytes == 0) return {};
        ORR_TRY(free, stream.wait(last_use_[half]));
        ORR_TRY(index, submit_box(stream, into_half(asked[half], buffer_.va() + half * kHalf), ordered));
        last_use_[half] = *index;
        ordered = false;
        return {};
    };
    for (unsigned half = 0; half < 2; ++half) {
        ORR_TRY(asked_for, ask(half));
    }
    for (unsigned half = 0; asked[half].row_bytes != 0; half ^= 1) {
        ORR_TRY(arrived, stream.wait(last_use_[half]));
        copy_box(out_of_half(asked[half], buffer_.va() + half * kHalf));
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

Status Staging::between(Stream& stream, Context& other, const StagedCopy& copy) {
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
        return between_with(stream, *helper, copy);
    };
    Status done = copied();
    // One that is not kept ends, and what a tool does when it is told of that may need this lock.
    if (helper != nullptr) other.give_copy_stream(std::move(helper));
    return done;
}

Status Staging::between_with(Stream& stream, Stream& helper, const StagedCopy& copy) {
    // The other card knows nothing of the stream's order. If it is the one that writes, it does so when this
    // one has read, which the first part orders.
    if (!copy.pushes) {
        ORR_TRY(before, stream.synchronize());
    }
    Stream& reader = copy.pushes ? stream : helper;
    Stream& writer = copy.pushes ? helper : stream;
    std::uint64_t last = 0;  // of the helper
    const auto note = [&](const Stream& by, std::uint64_t index, unsigned half) {
        (&by == &stream ? last_use_[half] : last) = index;
    };
    const auto write = [&](const orr_desc_box& part, std::uint64_t va) {
        if (copy.type == 0) return submit_box(writer, out_of_half(part, va), false);
        const orr_packet packet = make_reduce(part.dst, va, part.row_bytes, copy.type, copy.function);
        return writer.submit({&packet, 1}, {Op::kCopy, nullptr});
    };
    bool ordered = true;
    Parts parts(copy.box);
    std::array<orr_desc_box, 2> asked{};
    std::array<std::uint64_t, 2> read{};
    const auto ask = [&](unsigned half) -> Status {
        asked[half] = parts.next();
        if (asked[half].row_bytes == 0) return {};
        ORR_TRY(free, stream.wait(last_use_[half]));
        const std::uint64_t va = buffer_.va() + half * kHalf;
        ORR_TRY(index, submit_box(reader, into_half(asked[half], va), ordered));
        note(reader, read[half] = *index, half);
        ordered = false;
        return {};
    };
    const auto all = [&]() -> Status {
        for (unsigned half = 0; half < 2; ++half) {
            ORR_TRY(asked_for, ask(half));
        }
        for (unsigned half = 0; asked[half].row_bytes != 0; half ^= 1) {
            ORR_TRY(arrived, reader.wait(read[half]));
            ORR_TRY(index, write(asked[half], buffer_.va() + half * kHalf));
            note(writer, *index, half);
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
