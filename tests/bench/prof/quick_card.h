// A card that does nothing, as fast as it can, and records that as real ones do: in the ring of a trace sink,
// which goes round whether somebody has read it or not. It is read by the driver's own rules.
#pragma once

#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>
#include <orrery/hw/doorbell.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/unit/umd/fake_winsys.h"

namespace orrery::bench {

// Installs a runtime with one such card; everything but its queues and records is a fake card's.
class QuickSystem {
  public:
    QuickSystem();
    ~QuickSystem();
    QuickSystem(const QuickSystem&) = delete;
    QuickSystem& operator=(const QuickSystem&) = delete;

    // Records so far, and how many of them waited for somebody who looked for them, at most, since this was
    // asked last.
    std::uint64_t recorded() const;
    std::uint64_t most_waiting();

    class Card;

  private:
    std::vector<std::unique_ptr<umd::test::FakeCard>> fakes_;
    std::unique_ptr<Card> card_;
};

}  // namespace orrery::bench
