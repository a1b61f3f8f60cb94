// A private directory for sockets and the initramfs of one run.
#pragma once

#include <filesystem>

#include "tools/vm/process.h"
#include "tools/vm/result.h"

namespace orrery::vm {

// Under $XDG_RUNTIME_DIR, or /tmp where that is missing or too long for socket names. Removed with the
// object; one that a killed run left is removed by the next run.
// Where sockets go: short enough a path for them.
std::filesystem::path runtime_base();

class RuntimeDir {
  public:
    static Result<RuntimeDir> make();
    RuntimeDir(RuntimeDir&& other) noexcept
        : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
    RuntimeDir& operator=(RuntimeDir&&) = delete;
    ~RuntimeDir();

    const std::filesystem::path& path() const { return path_; }

  private:
    RuntimeDir(std::filesystem::path path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
    std::filesystem::path path_;
    Fd lock_;  // held as long as the run lasts; marks the directory as in use
};

}  // namespace orrery::vm
