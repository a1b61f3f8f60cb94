#include "emulator/check/clock.h"

#include <algorithm>

namespace orrery::emu {

std::optional<std::uint32_t> Segments::take(std::uint32_t count) {
    if (next_ > kMost - count) return std::nullopt;
    const std::uint32_t first = next_;
    next_ += count;
    return first;
}

std::optional<std::uint32_t> Segments::add_group(std::uint64_t group, std::uint32_t items,
                                                 std::uint32_t phase) {
    const auto first = take(items);
    if (!first) return std::nullopt;
    const Run* const last = runs_.empty() ? nullptr : &runs_.back();
    const bool follows = last != nullptr && last->item == kAll && last->phase == phase &&
                         last->items == items && last->group + (*first - last->first) / items == group;
    if (!follows) runs_.push_back({group, *first, phase, kAll, items});
    return first;
}

std::optional<std::uint32_t> Segments::add_item(std::uint64_t group, std::uint32_t item,
                                                std::uint32_t phase) {
    const auto first = take(1);
    if (!first) return std::nullopt;
    const Run* const last = runs_.empty() ? nullptr : &runs_.back();
    const bool follows =
        last != nullptr && last->item == item && last->group == group && last->phase == phase;
    if (!follows) runs_.push_back({group, *first, phase, item, 1});
    return first;
}

Moment Segments::of(std::uint32_t segment) const {
    const auto holds = [&](std::size_t i) {
        return runs_[i].first <= segment && (i + 1 == runs_.size() || segment < runs_[i + 1].first);
    };
    if (last_ >= runs_.size() || !holds(last_)) {
        const auto after = std::ranges::upper_bound(runs_, segment, {}, &Run::first);
        last_ = static_cast<std::size_t>(after - runs_.begin()) - 1;
    }
    const Run& run = runs_[last_];
    const std::uint32_t at = segment - run.first;
    if (run.item != kAll) return {run.group, run.item, run.phase, segment};
    return {run.group + at / run.items, at % run.items, run.phase, segment};
}

bool Clock::knows(const Moment& past) const {
    if (past.segment < floor_) return true;
    const auto group = groups_.find(past.group);
    if (group != groups_.end() && past.phase < group->second) return true;
    const auto item = items_.find(past.group << kItemBits | past.item);
    return item != items_.end() && past.segment <= item->second;
}

void Clock::learn(const Clock& other, const Segments& segments) {
    floor_ = std::max(floor_, other.floor_);
    const auto join = [](auto& mine, const auto& theirs) {
        for (const auto& [who, when] : theirs) {
            auto& known = mine[who];
            known = std::max(known, when);
        }
    };
    join(items_, other.items_);
    join(groups_, other.groups_);
    bound(segments);
}

void Clock::learn(const Moment& now, const Segments& segments) {
    auto& own = items_[now.group << kItemBits | now.item];
    own = std::max(own, now.segment);
    if (now.phase != 0) {
        auto& group = groups_[now.group];
        group = std::max(group, now.phase);
    }
    bound(segments);
}

void Clock::bound(const Segments& segments) {
    if (entries() > kMost) learn_all(segments);
}

void Clock::learn_all(const Segments& segments) {
    floor_ = segments.next();
    items_.clear();
    groups_.clear();
}

}  // namespace orrery::emu
