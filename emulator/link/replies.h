// Takes the answers to this card's requests as they arrive. They wait for nothing: who asked has room for
// them.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "emulator/link/counts.h"
#include "emulator/link/reader.h"
#include "emulator/link/requests.h"
#include "emulator/probes/counters.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu::link {

// ORR_FAULT_* of an answer's status.
std::uint32_t fault_of(std::uint16_t status);

class Replies {
  public:
    struct Hooks {
        // Whether what that node sends comes by this port, in that epoch.
        std::function<bool(std::uint32_t node, std::uint32_t epoch)> comes_here;
        // The card's node.
        std::function<std::uint32_t()> node;
        // An owner refused a write or signal.
        std::function<void(std::uint32_t node, std::uint32_t fault)> refused;
    };
    Replies(EventQueue& events, Counters& counters, Counts& counts, Reader& reader, Requests& requests,
            Hooks hooks, std::uint64_t bytes_per_second);

    // As Receiver::pump(), look() and wanted().
    std::expected<bool, std::string> pump();
    std::expected<void, std::string> look();
    ModelTime wanted() const { return wanted_; }
    bool has_news() const { return reader_.has_news(); }
    void close() { wanted_ = kNever; }

    static constexpr unsigned kBatchMessages = 64;

  private:
    void take(const Message& message);

    EventQueue& events_;
    Counters& counters_;
    Counts& counts_;
    Reader& reader_;
    Requests& requests_;
    Hooks hooks_;
    std::uint64_t bytes_per_second_;
    ModelTime wanted_ = kNever;
};

}  // namespace orrery::emu::link
