#include "emulator/gdb/program_file.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "emulator/gdb/packets.h"

namespace orrery::emu::gdb {

namespace {

// gdb's own numbers of errors and modes, in hexadecimal.
constexpr const char* kNoSuchFile = "F-1,2";
constexpr const char* kBadDescriptor = "F-1,9";
constexpr const char* kReadOnly = "F-1,1e";
constexpr const char* kInvalid = "F-1,16";
constexpr std::uint32_t kRegularFile = 0100444;

constexpr std::uint64_t kDescriptor = 1;
constexpr std::size_t kMaxRead = kMaxPacket / 2 - 16;  // every byte may need an escape

void put(std::string& to, std::uint64_t value, unsigned bytes) {
    for (unsigned at = bytes; at-- > 0;)
        to.push_back(static_cast<char>(value >> (8 * at) & 0xff));
}

// HEX-NAME,FLAGS,MODE
std::string open(std::string_view text) {
    const auto comma = text.find(',');
    if (comma == std::string_view::npos) return kInvalid;
    const auto name = from_hex(text.substr(0, comma));
    text.remove_prefix(comma + 1);
    const auto flags = take_number(text);
    if (!name || !flags) return kInvalid;
    if (*name != kProgramPath) return kNoSuchFile;
    return *flags == 0 ? fmt::format("F{:x}", kDescriptor) : kReadOnly;
}

// COUNT,OFFSET
std::string read(std::string_view text, std::span<const std::uint8_t> file) {
    const auto count = take_number(text);
    if (!count || !take(text, ',')) return kInvalid;
    const auto offset = take_number(text);
    if (!offset || !text.empty()) return kInvalid;
    const auto rest = file.subspan(std::min<std::size_t>(*offset, file.size()));
    const auto part = rest.first(std::min({rest.size(), static_cast<std::size_t>(*count), kMaxRead}));
    return fmt::format("F{:x};", part.size()) + std::string(part.begin(), part.end());
}

// As gdb's struct fio_stat has it, the highest byte of a number first.
std::string status(std::uint64_t bytes) {
    std::string out = "F40;";
    put(out, 0, 4);  // device
    put(out, 0, 4);  // inode
    put(out, kRegularFile, 4);
    put(out, 1, 4);  // links
    put(out, 0, 4);  // user
    put(out, 0, 4);  // group
    put(out, 0, 4);  // device, if it were one
    put(out, bytes, 8);
    put(out, kMaxRead, 8);             // a block
    put(out, (bytes + 511) / 512, 8);  // blocks of 512 bytes
    for (unsigned time = 0; time < 3; ++time)
        put(out, 0, 4);
    return out;
}

}  // namespace

std::string program_file(std::string_view request, std::span<const std::uint8_t> file) {
    const auto colon = request.find(':');
    if (file.empty() || colon == std::string_view::npos) return "";
    const std::string_view what = request.substr(0, colon);
    std::string_view rest = request.substr(colon + 1);
    if (what == "open") return open(rest);
    if (what != "close" && what != "pread" && what != "fstat") return "";
    const auto descriptor = take_number(rest);
    if (!descriptor || *descriptor != kDescriptor) return kBadDescriptor;
    if (what == "pread") return take(rest, ',') ? read(rest, file) : kInvalid;
    if (!rest.empty()) return kInvalid;
    return what == "close" ? "F0" : status(file.size());
}

}  // namespace orrery::emu::gdb
