#include "emulator/model/resource.h"

#include <algorithm>

namespace orrery::emu {

__extension__ using Wide = unsigned __int128;

Resource::Moment Resource::after(Moment begin, std::uint64_t bytes) const {
    // Nearly always: fits 64 bits.
    constexpr std::uint64_t kFew = std::uint64_t{1} << 23, kSlow = std::uint64_t{1} << 62;
    if (bytes <= kFew && rate_ <= kSlow && begin.time < kNever / 2) {
        const std::uint64_t work = bytes * kPsPerSecond + begin.rest;
        return {begin.time + work / rate_, work % rate_};
    }
    const Wide work = Wide{bytes} * kPsPerSecond + begin.rest;
    const Wide ps = work / rate_;
    if (ps >= Wide{kNever - begin.time}) return {kNever - 1, 0};
    return {begin.time + static_cast<ModelTime>(ps), static_cast<std::uint64_t>(work % rate_)};
}

ModelTime Resource::reserve(ModelTime now, std::uint64_t bytes, ModelTime least) {
    const ModelTime free = bulk_.rounded();
    count(bytes, free > now ? free - now : 0);
    if (rate_ == 0 && least == 0) return now;
    // Who comes back when its last request is through goes on without a gap.
    if (now > free) bulk_ = {now, 0};
    const ModelTime soonest = later(bulk_.rounded(), least);
    // What takes less than that by a picosecond or more ends then, whatever a picosecond has left; to know it
    // takes no division.
    if (least != 0 && Wide{bytes} * kPsPerSecond <= Wide{least - 1} * rate_) {
        bulk_ = {soonest, 0};
        return soonest;
    }
    if (rate_ != 0) bulk_ = after(bulk_, bytes);
    if (bulk_.rounded() < soonest) bulk_ = {soonest, 0};
    return bulk_.rounded();
}

ModelTime Resource::slip_in(ModelTime now, std::uint64_t bytes) {
    if (rate_ == 0) {
        count(bytes, 0);
        return now;
    }
    ModelTime begin = now;
    const bool busy = bulk_.rounded() > now;
    if (busy) {
        const ModelTime turn = std::max(after({now, 0}, kBurst).rounded(), turn_);
        begin = std::min(bulk_.rounded(), turn);
    }
    if (begin > small_.rounded()) small_ = {begin, 0};
    count(bytes, small_.rounded() - now);
    small_ = after(small_, bytes);
    if (busy) {
        bulk_ = after(bulk_, bytes);
        turn_ = after(small_, bytes).rounded();
    } else {
        bulk_ = small_;
    }
    return small_.rounded();
}

void Resource::hold(ModelTime time) {
    bulk_ = {later(bulk_.rounded(), time), 0};
}

void Resource::set_rate(std::uint64_t bytes_per_second) {
    bulk_ = {bulk_.rounded(), 0};
    small_ = {small_.rounded(), 0};
    rate_ = bytes_per_second;
    piece_ = piece_of(bytes_per_second);
}

std::uint64_t Resource::piece_of(std::uint64_t rate) {
    constexpr std::uint64_t kLine = 64;
    if (rate == 0) return kMostPiece;
    const Wide bytes = Wide{kPiecePs} * rate / kPsPerSecond / kLine * kLine;
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::min<Wide>(bytes, kMostPiece)), kLine,
                                     kMostPiece);
}

}  // namespace orrery::emu
