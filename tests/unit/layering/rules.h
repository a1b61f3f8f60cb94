// The allowed arrows between the parts of the house, and the checks of one source file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::layering {

/// One `#include` line: what it names and where it stands.
struct Include {
    std::string name;  // without quotes or angle brackets
    int line = 0;
};

std::vector<Include> includes_of(std::string_view text);

/// Why `file` (path from the repository's root) must not include `name`; empty if it may.
std::string why_forbidden(std::string_view file, std::string_view name);

inline constexpr int kMaxLines = 1000;

/// Source files below `root` that count for the rules, as paths from the root, sorted.
std::vector<std::string> source_files(const std::filesystem::path& root);

}  // namespace orrery::layering
