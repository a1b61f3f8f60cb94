// An inbox in shared memory: made by its owner, mapped by both.
#pragma once

#include <expected>
#include <string>

#include "emulator/link/wire.h"

namespace orrery::emu::link {

// A mapping and the descriptor behind it. Moves; unmaps and closes when it goes.
class SharedArea {
  public:
    SharedArea() = default;
    SharedArea(SharedArea&& other) noexcept;
    SharedArea& operator=(SharedArea&& other) noexcept;
    ~SharedArea();

    // A new inbox, zeroed, sealed so that nobody can shrink it under a reader.
    static std::expected<SharedArea, std::string> create();
    // Maps an inbox received from a peer. Takes the descriptor. Refuses one that is not sealed or has
    // another size: reading it could kill the process.
    static std::expected<SharedArea, std::string> adopt(int fd);

    explicit operator bool() const { return inbox_ != nullptr; }
    Inbox* operator->() const { return inbox_; }
    int fd() const { return fd_; }
    void reset();

  private:
    static std::expected<SharedArea, std::string> map(int fd);

    Inbox* inbox_ = nullptr;
    int fd_ = -1;
};

// Bytes of the payload area from `at` on, below kPayloadBytes; what does not fit in front of its end goes on
// at its beginning. At most kMaxWriteBytes.
void put_payload(Channel& channel, std::uint64_t at, const void* from, std::uint64_t bytes);
void get_payload(const Channel& channel, std::uint64_t at, void* to, std::uint64_t bytes);
void copy_payload(const Channel& from, std::uint64_t from_at, Channel& to, std::uint64_t to_at,
                  std::uint64_t bytes);

}  // namespace orrery::emu::link
