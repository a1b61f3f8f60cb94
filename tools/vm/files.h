// Files of the host, whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "tools/vm/result.h"

namespace orrery::vm {

Result<std::string> read_file(const std::filesystem::path& path);

// A file's bytes where the kernel has them, for who reads but a part of a large one. A file that becomes
// shorter meanwhile ends its reader: for those of the build and of the host, not for what somebody writes.
class FileView {
  public:
    static Result<FileView> open(const std::filesystem::path& path);
    FileView(FileView&& other) noexcept : view_(std::exchange(other.view_, {})) {}
    FileView& operator=(FileView&& other) noexcept {
        std::swap(view_, other.view_);
        return *this;
    }
    ~FileView();

    std::string_view bytes() const { return view_; }

  private:
    explicit FileView(std::string_view view) : view_(view) {}

    std::string_view view_;
};

// Writes a file that others may read or write at this moment: all see it whole or not at all.
Result<void> keep(const std::filesystem::path& target, const std::string& bytes);

}  // namespace orrery::vm
