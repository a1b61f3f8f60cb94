#include "emulator/check/side_by_side.h"

#include <utility>

namespace orrery::emu {

const Clock* Released::at(std::uint64_t granule) const {
    const auto clock = clocks_.find(granule);
    if (clock != clocks_.end()) return &clock->second;
    return others_.empty() ? nullptr : &others_;
}

Clock& Released::to(std::uint64_t granule) {
    if (clocks_.size() < kMost) return clocks_[granule];
    const auto clock = clocks_.find(granule);
    return clock != clocks_.end() ? clock->second : others_;
}

std::uint64_t Released::bytes() const {
    std::uint64_t bytes = others_.bytes() + clocks_.size() * (sizeof(Clock) + 64);
    for (const auto& [granule, clock] : clocks_)
        bytes += clock.bytes();
    return bytes;
}

std::uint64_t SideBySide::begin() {
    launches_.push_back({.begin = ++now_});
    return launches_.size() - 1;
}

void SideBySide::end(std::uint64_t launch) {
    if (launches_[launch].end == kRuns) launches_[launch].end = ++now_;
}

bool SideBySide::takes_more() const {
    return !gave_up_ && launches_.size() < kMostLaunches && segments.next() < Segments::kMost / 2 &&
           (room_ == nullptr || bytes() < room_->limit / 4);
}

unsigned SideBySide::place_of(std::uint64_t pc) {
    const auto [at, made] = places_.try_emplace(pc, static_cast<unsigned>(pcs_.size()));
    if (!made) return at->second;
    // The first stands for all that there is no room for.
    if (pcs_.size() >= 1u << Cell::kPlaceBits) return at->second = 0;
    pcs_.push_back(pc);
    return at->second;
}

std::uint64_t SideBySide::bytes() const {
    return memory.bytes() + segments.bytes() + released.bytes() + places_.size() * 72;
}

void SideBySide::take(std::uint64_t bytes) {
    if (room_ == nullptr) return;
    room_->used -= std::exchange(taken_, bytes);
    room_->used += taken_;
}

void SideBySide::give_up() {
    gave_up_ = true;
    memory = {};
    segments.forget();
    released = {};
    places_.clear();
    take(0);
}

}  // namespace orrery::emu
