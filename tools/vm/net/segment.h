// A network segment of runs that were given the same name: who is on it, and how a run joins and leaves.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/vm/process.h"
#include "tools/vm/result.h"

namespace orrery::vm {

// As --net names it: NAME or NAME:NUMBER.
struct SegmentPlace {
    std::string name;
    unsigned number = 0;  // 1 to kLargestNumber; 0: the lowest that is free
};

inline constexpr unsigned kLargestNumber = 254;

std::optional<SegmentPlace> parse_place(const std::string& text);

std::string segment_address(unsigned number);  // "10.79.0.1"
std::string segment_mac(unsigned number);

// The members meet in a directory of sockets, `<number>.sock`, in which each listens. Who joins connects to
// all that are there, so that each pair has one connection. It belongs to one user, and goes with its last
// member.
class Segment {
  public:
    // Fails as soon as the descriptor `stop` (-1: none) is readable. `patience`: how long to wait for a
    // member that has no room for another connection.
    static Result<Segment> join(const SegmentPlace& place, int stop = -1,
                                std::chrono::steady_clock::duration patience = std::chrono::seconds(10));
    Segment(Segment&& other) noexcept
        : directory_(std::exchange(other.directory_, {})),
          number_(other.number_),
          listener_(std::move(other.listener_)),
          peers_(std::move(other.peers_)) {}
    Segment& operator=(Segment&&) = delete;
    ~Segment();

    unsigned number() const { return number_; }
    int listener() const { return listener_.get(); }
    // The connections to those who were there before; the caller takes them.
    std::vector<Fd> take_peers() { return std::move(peers_); }
    std::optional<Fd> accept() const;

  private:
    Segment() = default;

    std::filesystem::path directory_;
    unsigned number_ = 0;
    Fd listener_;
    std::vector<Fd> peers_;
};

}  // namespace orrery::vm
