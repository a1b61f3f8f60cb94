// The control socket of a card or a switch: faults are ordered and counted there while it runs
// (docs/faults.md).
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "emulator/base/unique_fd.h"
#include "emulator/faults/faults.h"

namespace orrery::emu {

// The thread of the card or switch only. One client at a time; a command a line, its answer ends with a line
// "ok" or "error: ...".
class FaultControl {
  public:
    // Pulls a link port's cable out, or plugs it in.
    using Cable = std::function<std::expected<void, std::string>(std::uint64_t port, bool in)>;

    // Listens on `path`, for this user only.
    static std::expected<std::unique_ptr<FaultControl>, std::string> create(std::string path, Faults& faults,
                                                                            Cable cable);
    ~FaultControl();
    FaultControl(const FaultControl&) = delete;
    FaultControl& operator=(const FaultControl&) = delete;

    // The descriptor to wait for.
    int fd() const { return client_ ? client_.get() : listener_.get(); }
    // Takes a client, reads and answers what there is; does not block. true: something happened.
    bool service();

    // The answer to one command.
    std::string answer(std::string_view command);

  private:
    FaultControl(std::string path, UniqueFd listener, Faults& faults, Cable cable);

    std::string path_;
    UniqueFd listener_;
    UniqueFd client_;
    Faults& faults_;
    Cable cable_;
    std::string input_;
};

}  // namespace orrery::emu
