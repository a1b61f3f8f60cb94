// Which subscriptions have asked for what a card can do in one way at a time, as samples of its counters.
#pragma once

#include <orrery/prof.h>

#include <string>
#include <vector>

namespace orrery::umd {

// Not for several threads at a time. A subscription that has ended is none of them any more, which is seen
// when somebody looks.
class Holders {
  public:
    bool empty();
    bool has(orrProfSubscription_t one) const;
    // There is no other.
    bool only(orrProfSubscription_t one);
    void add(orrProfSubscription_t one);
    void remove(orrProfSubscription_t one);
    void clear() { all_.clear(); }
    // Who another than this one is: "tool 'orrery-prof'".
    std::string other_than(orrProfSubscription_t one) const;

  private:
    void forget_ended();
    std::vector<orrProfSubscription_t> all_;
};

}  // namespace orrery::umd
