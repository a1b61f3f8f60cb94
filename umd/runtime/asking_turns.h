// Of all who wait in a process one asks the driver for cycles at a time, and not often: it reads the rings of
// the whole machine for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace orrery::umd {

// Whose turn it is, by the host's clock in ns. Not thread-safe.
class AskingTurns {
  public:
    // A stream, or a semaphore with the value that is waited for.
    using Who = std::pair<const void*, std::uint64_t>;

    static constexpr std::int64_t kBetweenNs = 20'000'000;
    // Who has not tried for so long, while nobody asked, waits no more, and keeps nobody from asking.
    static constexpr std::int64_t kGoneNs = 10 * kBetweenNs;

    // Whether it is the turn of `who`, who wants to ask now: of those who do it goes to whoever asked longest
    // ago.
    bool begin(const Who& who, std::int64_t now) {
        std::erase_if(askers_, [&](const auto& one) { return now - one.second.seen > kGoneNs; });
        // A new one is behind all who wait, but for who has just asked.
        Asker& own = askers_.try_emplace(who, Asker{.turn = turns_ - 1}).first->second;
        own.seen = now;
        if (asked_ && now - last_ < kBetweenNs) return false;
        began_ = now;
        return std::ranges::all_of(askers_, [&](const auto& one) { return one.second.turn >= own.turn; });
    }
    // Behind begin(), who said that it is. What it was shown: the cycle's stamp, or 0 for none. Whether that
    // is what it saw in its last turn.
    bool end(const Who& who, std::int64_t now, std::uint64_t stamp) {
        last_ = now;
        asked_ = true;
        // Others could not try meanwhile.
        for (auto& one : askers_)
            one.second.seen += now - began_;
        Asker& own = askers_[who];
        own.turn = turns_ += 2;
        return std::exchange(own.stamp, stamp) == stamp && stamp != 0;
    }

  private:
    struct Asker {
        std::int64_t seen = 0;
        std::uint64_t turn = 0;   // whose is lower has waited longer
        std::uint64_t stamp = 0;  // what it was shown in it
    };
    std::map<Who, Asker> askers_;
    std::uint64_t turns_ = 1;
    std::int64_t began_ = 0, last_ = 0;
    bool asked_ = false;
};

}  // namespace orrery::umd
