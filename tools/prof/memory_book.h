// What memory the process has, from its calls: which of them took how much of whose.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

namespace orrery::prof {

// Threads: one at a time.
class MemoryBook {
  public:
    struct Change {
        std::int32_t device = 0;  // or Place::kHost
        std::uint64_t address = 0;
        std::int64_t bytes = 0;    // below 0: given back
        std::uint64_t in_use = 0;  // of the device, after it
    };
    Change take(std::int32_t device, std::uint64_t address, std::uint64_t bytes) {
        held_[address] = {device, bytes};
        return {device, address, static_cast<std::int64_t>(bytes), in_use_[device] += bytes};
    }
    // A call that gives back begins. From then on another thread may be given the same address.
    void begin_give_back(std::uint64_t call, std::uint64_t address) {
        if (const auto found = held_.find(address); found != held_.end()) {
            going_[call] = {address, found->second};
            in_use_[found->second.device] -= found->second.bytes;
            held_.erase(found);
        }
    }
    // It has ended. Nothing: what it gave back is not of this book, or it failed.
    std::optional<Change> end_give_back(std::uint64_t call, bool good) {
        const auto found = going_.find(call);
        if (found == going_.end()) return {};
        const auto [address, piece] = found->second;
        going_.erase(found);
        if (good)
            return Change{piece.device, address, -static_cast<std::int64_t>(piece.bytes),
                          in_use_[piece.device]};
        in_use_[piece.device] += piece.bytes;
        held_.emplace(address, piece);
        return {};
    }
    void clear() {
        held_.clear();
        going_.clear();
        in_use_.clear();
    }

  private:
    struct Piece {
        std::int32_t device = 0;
        std::uint64_t bytes = 0;
    };
    std::unordered_map<std::uint64_t, Piece> held_;                             // by address
    std::unordered_map<std::uint64_t, std::pair<std::uint64_t, Piece>> going_;  // by call: address and piece
    std::map<std::int32_t, std::uint64_t> in_use_;
};

}  // namespace orrery::prof
