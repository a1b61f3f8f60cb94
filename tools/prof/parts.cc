#include "tools/prof/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "tools/prof/format.h"
#include "tools/prof/profile.h"
#include "tools/text/progress.h"

namespace orrery::prof {
namespace {

namespace fs = std::filesystem;
using text::fail;
using text::Result;

constexpr std::uint64_t kRecordsAt = 4096;  // in a part, see part.cc
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr int kToRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

// The process that a part's name says; 0: it is no such name.
std::uint64_t pid_of(const fs::path& part) {
    const std::string name = part.filename();
    std::uint64_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    return error == std::errc{} && *end == '-' ? pid : 0;
}

// The head of what a process writes or wrote, which may be anybody's program.
struct Begun {
    PartHead head{};
    std::uint64_t stated = 0;  // bytes of records, as it says; head.bytes are those that there are
    bool is_part = false;
    std::string fault;  // why it is none, although it has a part's name and its process has begun it
};

Begun begun(const File& part, const fs::path& path) {
    Begun one;
    const std::uint64_t pid = pid_of(path);
    if (pid == 0) return one;  // a process may put whatever it likes there
    if (!part.is_open()) {
        one.fault = fmt::format("it cannot be read: {}", reason());
        std::error_code error;
        if (!fs::is_regular_file(fs::symlink_status(path, error))) one.fault.clear();
        return one;
    }
    if (!part.is_regular()) return one;
    PartHead& head = one.head;
    const std::uint64_t size = part.size();
    const auto got = part.read(&head, sizeof head, 0);
    if (!got) {
        one.fault = fmt::format("it cannot be read: {}", reason());
    } else if (head.magic == 0 && size <= kRecordsAt) {
        // Its process has come no further.
    } else if (*got != sizeof head || head.magic != kPartMagic) {
        one.fault = "it does not begin as one does";
    } else if (head.pid != pid) {
        one.fault = fmt::format("it says that it is of process {}", head.pid);
    } else {
        one.is_part = true;
        one.stated = head.bytes;
        head.bytes = std::min(head.bytes, size < kRecordsAt ? 0 : size - kRecordsAt) / 8 * 8;
    }
    return one;
}

struct Good {
    std::uint64_t bytes = 0;
    std::string fault;  // of what is behind them, if something is
};

// `take` is given the records that are good, and false if it cannot take them.
template <typename Take>
Good look_through(const File& part, const PartHead& head, std::vector<char>& piece, Take take) {
    PartCheck check(head, kRecordsAt);
    Good good;
    while (good.bytes < head.bytes && !check.is_done()) {
        const std::size_t want = std::min<std::uint64_t>(piece.size(), head.bytes - good.bytes);
        const auto read = part.read(piece.data(), want, kRecordsAt + good.bytes);
        if (!read) {
            good.fault =
                fmt::format("from byte {} on it cannot be read: {}", kRecordsAt + good.bytes, reason());
            return good;
        }
        const std::size_t got = *read;
        const std::size_t fine = check.look({piece.data(), got}, got == want && want == piece.size());
        if (!take(piece.data(), fine)) return good;
        good.bytes += fine;
        if (got == want || check.is_done()) continue;
        good.fault = fmt::format("it ends at byte {}", kRecordsAt + good.bytes);
        return good;
    }
    good.fault = check.fault();
    // A process that is killed while it writes leaves one record that has not begun.
    if (good.fault.empty() && head.bytes - good.bytes > kLongestRecord) {
        good.fault = fmt::format("at byte {} it has zeros, and {} bytes behind them", kRecordsAt + good.bytes,
                                 head.bytes - good.bytes);
    }
    return good;
}

// Appends the part that a process wrote. It is read twice, as its head comes first and a pipe cannot be gone
// back in.
Result<void> append(const File& to, const fs::path& path, Recorded& recorded, bool at_end) {
    const File part(path, kToRead);
    auto [head, stated, is_part, fault] = begun(part, path);
    if (!is_part) {
        if (!fault.empty()) recorded.spoilt.push_back({path, "", fault, false});
        return {};
    }
    // What is saved on the way is not all that the command did, whichever of its processes have ended.
    if (!at_end) head.ended = 0;
    std::vector<char> piece(kPiece);
    const Good good = look_through(part, head, piece, [](const char*, std::size_t) { return true; });
    fault = good.fault;
    // Where it ends is no fault of the last record.
    if (head.bytes != stated && (fault.empty() || head.bytes - good.bytes <= kLongestRecord))
        fault = fmt::format("it says that it has {} bytes of records, and has {}", stated, head.bytes);
    CutRecord cut{{static_cast<std::uint16_t>(Type::kCut), sizeof cut, 0}, 0, head.bytes - good.bytes};
    head.bytes = good.bytes + (fault.empty() ? 0 : sizeof cut);
    if (!to.write(&head, sizeof head)) return fail("it cannot be written: {}", reason());
    PartHead rest = head;
    rest.bytes = good.bytes;
    bool written = true;
    const Good again = look_through(part, rest, piece, [&](const char* records, std::size_t bytes) {
        return written = to.write(records, bytes);
    });
    // A process that still runs may spoil what was found good: its room is filled then.
    if (again.bytes < good.bytes) {
        cut.bytes += good.bytes - again.bytes;
        fault = again.fault.empty() ? "it changes while it is read" : again.fault;
    }
    cut.at = kRecordsAt + again.bytes;
    std::uint64_t left = written ? head.bytes - again.bytes : 0;
    if (left >= sizeof cut) {
        written = to.write(&cut, sizeof cut);
        left -= sizeof cut;
    }
    std::ranges::fill(piece, '\0');
    for (; written && left > 0; left -= std::min<std::uint64_t>(left, piece.size()))
        written = to.write(piece.data(), std::min<std::uint64_t>(left, piece.size()));
    if (!written) return fail("it cannot be written: {}", reason());
    if (!fault.empty()) {
        const std::string command(head.command, ::strnlen(head.command, sizeof head.command));
        recorded.spoilt.push_back({path, command, fault, true});
    }
    ++recorded.processes;
    recorded.lost += std::min(head.lost, ~recorded.lost);  // which is anybody's
    return {};
}

// Its first bytes, `most` at most: how many.
Result<std::uint64_t> copy(const File& from, const std::string& to, std::uint64_t most) {
    if (!from.is_open()) return fail("{}", reason());
    const File copy(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK);
    if (!copy.is_open() || !copy.is_regular()) return fail("{}", copy.is_open() ? "it is no file" : reason());
    std::vector<char> piece(kPiece);
    std::uint64_t done = 0;
    while (done < most) {
        const auto got = from.read(piece.data(), std::min<std::uint64_t>(piece.size(), most - done), done);
        if (!got) return fail("it cannot be read: {}", reason());
        if (*got == 0) break;
        if (!copy.write(piece.data(), *got)) return fail("{}", reason());
        done += *got;
    }
    return done;
}

}  // namespace

SoFar so_far(const std::string& parts) {
    SoFar sums;
    std::error_code error;
    for (fs::directory_iterator entry(parts, error), end; !error && entry != end; entry.increment(error)) {
        const Begun one = begun(File(entry->path(), kToRead), entry->path());
        if (!one.is_part) continue;
        ++sums.processes;
        sums.bytes += one.head.bytes;
        sums.lost += one.head.lost;
        sums.ended += one.head.ended;
    }
    return sums;
}

Result<void> put_together(const std::string& parts, const File& to, Recorded& recorded, bool at_end) {
    FileHead head{{}, kFormatMajor, kFormatMinor};
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    if (!to.write(&head, sizeof head)) return fail("it cannot be written: {}", reason());
    std::vector<fs::path> paths;
    std::error_code error;
    for (fs::directory_iterator entry(parts, error), end; !error && entry != end; entry.increment(error))
        paths.push_back(entry->path());
    if (error) return fail("{} cannot be read: {}", parts, error.message());
    std::ranges::sort(paths);
    std::optional<text::Progress> progress;
    if (at_end) progress.emplace("putting the profile together");
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (progress) progress->at(static_cast<double>(i) / static_cast<double>(paths.size()));
        if (auto good = append(to, paths[i], recorded, at_end); !good) return good;
    }
    recorded.bytes = to.size();
    return {};
}

bool keep_spoilt(const std::string& profile, std::uint64_t limit, Recorded& recorded) {
    std::error_code error;
    const bool beside = fs::is_regular_file(profile, error);
    bool all = true;
    // For all of them together: what they have in them, and how many there are, is their programs' to say.
    std::uint64_t room = limit + kRecordsAt;
    for (const Recorded::Spoilt& one : recorded.spoilt) {
        const std::string name = one.part.filename(), kept = fmt::format("{}.{}.spoilt", profile, name);
        const File part(one.part, kToRead);
        std::string becomes;
        if (const std::uint64_t size = part.is_open() ? part.size() : 0; beside && size > 0 && room == 0) {
            becomes = "as it was it is not kept: the others that were spoilt have all the room of --limit";
        } else if (const auto copied = beside ? copy(part, kept, room)
                                              : Result<std::uint64_t>(fail("{} is no file", profile));
                   copied) {
            room -= *copied;
            becomes = *copied < size
                          ? fmt::format(
                                "its first {} of {} bytes as it was are kept in {}: --limit is the room "
                                "of all that were spoilt",
                                *copied, size, kept)
                          : fmt::format("as it was it is kept in {}", kept);
        } else {
            all = false;
            becomes = fmt::format("as it was it stays in {} ({} cannot be made: {})", one.part.string(), kept,
                                  copied.error().text);
        }
        recorded.told.push_back(
            fmt::format("the part of process {}{} is spoilt: {}. {}; {}", pid_of(one.part),
                        one.command.empty() ? "" : fmt::format(" ({})", one.command), one.fault,
                        one.is_cut ? fmt::format("What was before that is in {}", profile)
                                   : fmt::format("It is not in {}", profile),
                        becomes));
    }
    return all;
}

}  // namespace orrery::prof
