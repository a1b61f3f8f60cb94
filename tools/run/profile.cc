#include "tools/run/profile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "tools/child/child.h"
#include "tools/run/ranks.h"
#include "tools/text/shown.h"

namespace orrery::run {

namespace fs = std::filesystem;
using text::fail;

text::Result<std::unique_ptr<RankProfiles>> RankProfiles::create(const std::optional<std::string>& share,
                                                                 const fs::path& programs, unsigned ranks) {
    const fs::path program = programs / "orrery-prof";
    std::error_code error;
    if (!fs::exists(program, error))
        return fail("--profile needs {}, which is not there: make build", program.string());
    const fs::path parent = share ? fs::absolute(*share, error) : fs::temp_directory_path(error);
    if (error) return fail("no folder for profiles: {}", error.message());
    std::string path = (parent / "orrery-run-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr)
        return fail("{} cannot be made: {}", path, std::generic_category().message(errno));
    const std::string guest = share ? "/share/" + fs::path(path).filename().string() : "/share";
    // Whatever guests put into its place later.
    const int folder = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return fail("{}: {}", path, std::generic_category().message(errno));
    return std::unique_ptr<RankProfiles>(new RankProfiles(path, folder, guest, !share, program, ranks));
}

RankProfiles::~RankProfiles() {
    ::close(folder_fd_);
    std::error_code ignored;
    if (!own_.empty()) fs::remove_all(own_, ignored);
    if (keep_) return;
    fs::remove_all(folder_, ignored);
}

fs::path RankProfiles::file(unsigned rank) const {
    return folder_ / profile_of(rank);
}

std::vector<std::string> RankProfiles::options() const {
    std::vector<std::string> all;
    if (own_share_) all = {"--share", folder_.string()};
    for (unsigned rank = 0; rank < ranks_; ++rank)
        all.insert(all.end(), {"--report-file", file(rank).string()});
    return all;
}

std::string RankProfiles::kept() {
    keep_ = true;
    return fmt::format("what the ranks have left is kept in {}", folder_.string());
}

text::Result<std::vector<unsigned>> RankProfiles::take() {
    std::string own = (fs::temp_directory_path() / "orrery-run-XXXXXX").string();
    if (::mkdtemp(own.data()) == nullptr)
        return fail("{} cannot be made: {}", own, std::generic_category().message(errno));
    own_ = own;
    std::vector<unsigned> there;
    for (unsigned rank = 0; rank < ranks_; ++rank) {
        // Without O_CLOEXEC: orrery-prof reads it by the name that it has in the own folder.
        const int file = ::openat(folder_fd_, profile_of(rank).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        if (file < 0) continue;
        struct stat about{};
        if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) {
            ::close(file);
            continue;
        }
        files_.emplace_back(::fdopen(file, "rb"), &std::fclose);
        std::error_code error;
        fs::create_symlink(fmt::format("/proc/self/fd/{}", file), own_ / profile_of(rank), error);
        if (error) return fail("{}: {}", own_.string(), error.message());
        there.push_back(rank);
    }
    return there;
}

text::Result<RankProfiles::Put> RankProfiles::put_together(const std::vector<unsigned>& ranks,
                                                           const std::string& output) const {
    std::vector<std::string> command{program_.string(), "merge"};
    for (const unsigned rank : ranks)
        command.push_back((own_ / profile_of(rank)).string());
    command.insert(command.end(), {"-o", output});
    const auto merged = child::run(command);
    if (!merged) return std::unexpected(merged.error());
    if (*merged == 0) return Put::kMade;
    // Whoever ends orrery-run ends it as well; any other end is its answer.
    constexpr std::array kEnds{SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    const bool ended = WIFSIGNALED(*merged) && std::ranges::find(kEnds, WTERMSIG(*merged)) != kEnds.end();
    return ended ? Put::kEnded : Put::kRefused;
}

text::Result<void> RankProfiles::merge(const std::string& output) {
    const auto taken = take();
    if (!taken) return fail("{}; {}", taken.error().text, kept());
    std::vector<unsigned> there = *taken, without, damaged;
    for (unsigned rank = 0; rank < ranks_; ++rank)
        if (!std::ranges::binary_search(there, rank)) without.push_back(rank);
    if (there.empty()) return fail("no rank has left a profile");
    const auto tried = [&](const std::vector<unsigned>& ranks,
                           const std::string& path) -> text::Result<bool> {
        const auto put = put_together(ranks, path);
        if (!put) return fail("{}; {}", put.error().text, kept());
        if (*put == Put::kEnded) return fail("asked to end before {} was made; {}", output, kept());
        return *put == Put::kMade;
    };
    auto made = tried(there, output);
    if (!made) return std::unexpected(made.error());
    if (!*made) {
        // One may be good alone, and not go with another's.
        const fs::path probe = own_ / "probe";
        std::vector<unsigned> good;
        for (const unsigned rank : there) {
            good.push_back(rank);
            const auto goes = tried(good, probe.string());
            std::error_code ignored;
            fs::remove(probe, ignored);
            if (!goes) return std::unexpected(goes.error());
            if (*goes) continue;
            good.pop_back();
            damaged.push_back(rank);
        }
        there = std::move(good);
        if (there.empty() || damaged.empty()) return fail("{} could not be made; {}", output, kept());
        made = tried(there, output);
        if (!made) return std::unexpected(made.error());
        if (!*made) return fail("{} could not be made; {}", output, kept());
    }
    fmt::print(stderr, "orrery-run: the profile of {} rank{} is in {}{}\n", there.size(),
               there.size() == 1 ? "" : "s", text::shown(output),
               without.empty() ? "" : fmt::format("; there is none of rank {}", fmt::join(without, ", ")));
    // Beside its profile, as orrery-prof record has said in the guest.
    std::error_code error;
    for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
        if (keep_ || entry->path().extension() != ".spoilt") continue;
        fmt::print(stderr, "orrery-run: of some processes it has what they had not spoilt; {}\n", kept());
    }
    if (damaged.empty()) return {};
    return fail("what rank {} has left is damaged; {}", fmt::join(damaged, ", "), kept());
}

}  // namespace orrery::run
