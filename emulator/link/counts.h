// What a link port counts since power-on (ORR_R_LINK_*).
#pragma once

#include <atomic>
#include <cstdint>

namespace orrery::emu::link {

// The card thread counts, any thread reads.
class Count {
  public:
    void add(std::uint64_t n = 1) {
        word_.store(word_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    void set(std::uint64_t n) { word_.store(n, std::memory_order_relaxed); }
    std::uint64_t get() const { return word_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> word_{0};
};

struct Counts {
    Count tx_messages, tx_bytes, rx_messages, rx_bytes;
    Count waited_ps;   // that messages waited for those before them
    Count credit_ps;   // in which something waited for the peer's room, the sum over the channels
    Count crc_errors;  // frames that came damaged
    Count retries;     // frames sent again
    Count retrains;    // without going down
    Count changes;     // of state or width
    Count denied;      // requests that came and no grant allowed
    Count bad_keys;    // and those that one allows with another key
    Count bad_key_by;  // the last one's node
    Count refused;     // writes and signals of this card that their owner refused
    Count refused_by;  // the last one's node | ORR_FAULT_* << 16
};

}  // namespace orrery::emu::link
