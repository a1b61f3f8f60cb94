#include "tools/vm/run/status_lines.h"

#include <fmt/format.h>

namespace orrery::vm {

namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 10;

}  // namespace

Result<std::vector<std::string>> StatusLines::feed(std::string_view bytes) {
    std::vector<std::string> lines;
    for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
        rest_ += bytes.substr(0, end);
        lines.push_back(std::move(rest_));
        rest_.clear();
        bytes.remove_prefix(end + 1);
    }
    rest_ += bytes;
    if (rest_.size() > kLongestLine)
        return fail(
            fmt::format("the guest wrote a line of more than {} KiB to its status port, /dev/vport0p1",
                        kLongestLine >> 10));
    return lines;
}

}  // namespace orrery::vm
