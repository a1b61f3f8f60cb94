// The part of a profile that this process writes: a file that grows and is mapped, so that what was written
// is there however the process ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/prof/format.h"

namespace orrery::prof {

// Threads: one at a time.
class Part {
  public:
    static constexpr std::size_t kStep = std::size_t{1} << 20;    // it grows by this
    static constexpr std::size_t kAhead = std::size_t{64} << 10;  // of it is touched at once

    Part() = default;
    ~Part() { forget(); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    // Makes a file of its own in the folder. False: it could not, and errno says why.
    bool open(const std::string& folder, std::uint64_t limit);
    bool is_open() const { return head_ != nullptr; }
    // Room for a record, or null and it is counted as lost. Its type must be set last.
    std::byte* take(std::size_t bytes);
    void lose() {
        if (head_ != nullptr) ++head_->lost;
    }
    void end_in_order() {
        if (head_ != nullptr) head_->ended = 1;
    }
    // It stays as it is, and this is no part any more.
    void forget();

  private:
    bool grow();
    void touch();

    int fd_ = -1;
    PartHead* head_ = nullptr;     // a mapping of its own
    std::byte* window_ = nullptr;  // the last kStep bytes of the file
    std::size_t used_ = 0;         // of the window
    std::size_t touched_ = 0;      // likewise: the kernel has mapped these pages
    std::uint64_t size_ = 0;       // of the file
    std::uint64_t limit_ = 0;
};

}  // namespace orrery::prof
