// How long a thread waits from one look for a card's records to the next. Each look wakes a CPU, which in a
// guest costs as much as a hundred records; and the card writes over what is not read in time.
#pragma once

#include <chrono>
#include <cstddef>

namespace orrery::umd {

class LookPause {
  public:
    using Duration = std::chrono::milliseconds;
    // The longer one for few. The card's room is 43,000 records for all processes, or 6,000 with what jobs
    // did; on a host of 3 GHz it makes some 40 a millisecond of small kernels, of whichever process.
    static constexpr Duration kLong{80}, kShort{5};
    // Work that this process submits during the longer one and that ends it: it need not be guessed.
    static constexpr std::size_t kManyOwn = 1'000;
    // From so many a millisecond on it is the shorter one.
    static constexpr std::size_t kManyEachMs = 25;
    // What was lost were mostly others' records, of which none is found here: for so many looks, a second's,
    // it is the shorter one.
    static constexpr std::size_t kLooksAfterLoss = 1000 / kShort.count();
    // While nothing is under way work that is submitted ends it at once.
    static constexpr Duration kDoze = kLong;

    Duration length() const { return length_; }
    // Records that the last look found; hasty: what else shares the card's room comes faster than these say.
    void found(std::size_t records, bool hasty) {
        const bool many = records >= kManyEachMs * static_cast<std::size_t>(length_.count());
        length_ = many || hasty || after_loss_ != 0 ? kShort : kLong;
        after_loss_ -= after_loss_ == 0 ? 0 : 1;
    }
    // And that look came too late for some, of whichever process; before found().
    void lost() { after_loss_ = kLooksAfterLoss; }

  private:
    Duration length_ = kShort;    // nobody knows yet
    std::size_t after_loss_ = 0;  // looks
};

}  // namespace orrery::umd
