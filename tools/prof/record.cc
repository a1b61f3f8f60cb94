#include "tools/prof/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "tools/child/child.h"
#include "tools/prof/format.h"
#include "tools/prof/open_file.h"
#include "tools/prof/parts.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

namespace fs = std::filesystem;
using text::fail;
using text::Result;

constexpr std::chrono::milliseconds kSaveWithHost{500};

// Goes with all that is in it, unless it is kept.
class Folder {
  public:
    static Result<std::unique_ptr<Folder>> create() {
        const char* const base = std::getenv("TMPDIR");
        std::string path =
            std::string(base == nullptr || *base == '\0' ? "/tmp" : base) + "/orrery-prof-XXXXXX";
        if (::mkdtemp(path.data()) == nullptr)
            return fail("{} cannot be made: {} (TMPDIR says where)", path, reason());
        // The program may change its own folder.
        std::error_code error;
        const fs::path whole = fs::canonical(path, error);
        return std::make_unique<Folder>(error ? path : whole.string());
    }
    explicit Folder(std::string path) : path_(std::move(path)) {}
    ~Folder() {
        std::error_code ignored;
        if (!kept_) fs::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const std::string& path() const { return path_; }
    void keep() { kept_ = true; }

  private:
    const std::string path_;
    bool kept_ = false;
};

void prepend_variable(const char* name, const std::string& value) {
    const char* const before = std::getenv(name);
    ::setenv(name, (before == nullptr ? value : value + ":" + before).c_str(), 1);
}

// What the recorder finds in its environment.
void set_variables(const Recording& recording, const std::string& parts) {
    prepend_variable("ORR_PROF_TOOL", recording.recorder);
    ::setenv(kFolderVariable, parts.c_str(), 1);
    ::setenv(kLimitVariable, std::to_string(recording.limit).c_str(), 1);
    if (recording.counters)
        ::setenv(kCountersVariable, "1", 1);
    else
        ::unsetenv(kCountersVariable);
    const auto set_period = [](const char* name, std::uint64_t ns) {
        if (ns != 0)
            ::setenv(name, std::to_string(ns).c_str(), 1);
        else
            ::unsetenv(name);
    };
    set_period(kSamplesVariable, recording.sample_ns);
    set_period(kPcVariable, recording.pc_ns);
    if (recording.trace.empty())
        ::unsetenv(kTraceVariable);
    else
        ::setenv(kTraceVariable, recording.trace.c_str(), 1);
}

std::string told_so_far(const std::string& parts, std::chrono::steady_clock::time_point begun) {
    const SoFar sums = so_far(parts);
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begun;
    return fmt::format("orrery-prof: {:.0f} s: {} bytes of {} process{} so far{}\n", since.count(),
                       text::grouped(sums.bytes), sums.processes, sums.processes == 1 ? "" : "es",
                       sums.lost == 0 ? "" : fmt::format(", {} records lost", text::grouped(sums.lost)));
}

// The file, anew: at no instant is it half of one.
Result<void> put_in_place(const std::string& parts, const std::string& file, Recorded& recorded,
                          bool at_end) {
    // Nobody else's: one of that name that is there already stays.
    const std::string fresh = fmt::format("{}.{}.new", file, ::getpid());
    Result<void> made;
    {
        const File to(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
        if (!to.is_open()) return fail("{} cannot be written: {}", fresh, reason());
        made = put_together(parts, to, recorded, at_end);
        // Or the machine may be lost with it, and the one before would be gone.
        if (made && !to.is_stored()) made = fail("{} cannot be written: {}", fresh, reason());
    }
    if (made && ::rename(fresh.c_str(), file.c_str()) == 0) return {};
    if (made) made = fail("{} cannot be put there: {}", fresh, reason());
    (void)::unlink(fresh.c_str());
    return made;
}

// Keeps the file up to what there is, at most a tenth of the time.
class Saver {
  public:
    Saver(std::string parts, std::string file, std::chrono::milliseconds each)
        : parts_(std::move(parts)), file_(std::move(file)), each_(each) {}

    void tick() {
        const auto begin = std::chrono::steady_clock::now();
        if (begin < due_) return;
        due_ = begin + each_;
        const SoFar now = so_far(parts_);
        if (now.processes == 0 || now == saved_) return;
        Recorded recorded;
        if (const auto good = put_in_place(parts_, file_, recorded, false); !good && !failed_) {
            failed_ = true;  // it may be better the next time, and is told at the end if it is not
            fmt::print(stderr, "orrery-prof: while the command runs {} is not kept up to it: {}\n", file_,
                       good.error().text);
        } else if (good) {
            saved_ = now;
        }
        const auto end = std::chrono::steady_clock::now();
        due_ = std::max(due_, end + 9 * (end - begin));
    }

  private:
    const std::string parts_, file_;
    const std::chrono::milliseconds each_;
    std::chrono::steady_clock::time_point due_;
    SoFar saved_;
    bool failed_ = false;
};

}  // namespace

EndsLater::EndsLater() {
    sigset_t ends;
    ::sigemptyset(&ends);
    ::sigaddset(&ends, SIGTERM);
    ::sigaddset(&ends, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &ends, &before_);
    struct sigaction ignored{};
    ignored.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignored, &pipe_);
}

EndsLater::~EndsLater() {
    ::sigaction(SIGPIPE, &pipe_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Result<Recorded> record(const Recording& recording) {
    // Before the program runs, which may take long.
    const File file(recording.file, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.is_open()) return fail("{} cannot be written: {}", recording.file, reason());
    auto parts = Folder::create();
    if (!parts) return std::unexpected(parts.error());
    std::error_code error;
    Recording whole = recording;
    whole.recorder = fs::canonical(recording.recorder, error);
    if (error) return fail("{} cannot be found: {}", recording.recorder, error.message());
    const auto begun = std::chrono::steady_clock::now();
    const auto each = recording.save.count() != 0 ? recording.save
                      : file.is_with_host()       ? kSaveWithHost
                                                  : std::chrono::milliseconds{0};
    // Who reads a pipe wants it whole, and another's name for the file stays one.
    const bool saves = each.count() != 0 && file.is_regular() && file.is_at(recording.file);
    if (recording.save.count() != 0 && !saves)
        return fail("{} is no regular file, or a link to one: --save cannot replace it", recording.file);
    Saver saver((*parts)->path(), recording.file, each);
    auto told = begun;
    const auto tick = [&] {
        if (saves) saver.tick();
        const auto now = std::chrono::steady_clock::now();
        if (recording.progress.count() == 0 || now < told + recording.progress) return;
        told = now;
        // Lines, as the program writes to the same terminal. One that has gone is no reason to lose the
        // profile.
        (void)std::fputs(told_so_far((*parts)->path(), begun).c_str(), stderr);
    };
    const child::Ticks ticks{!saves                            ? recording.progress
                             : recording.progress.count() == 0 ? each
                                                               : std::min(each, recording.progress),
                             tick};
    const auto status = child::run(whole.command, [&] { set_variables(whole, (*parts)->path()); }, ticks);
    if (!status) return std::unexpected(status.error());
    Recorded recorded;
    recorded.whole_first = std::make_unique<EndsLater>();
    if (WIFSIGNALED(*status)) recorded.signal = WTERMSIG(*status);
    recorded.status = child::exit_status(*status);
    Result<void> good =
        saves ? put_in_place((*parts)->path(), recording.file, recorded, true) : Result<void>{};
    // Also where its folder takes no other file, or has no room for two.
    if (!saves || (!good && file.is_at(recording.file) && file.empty())) {
        recorded.processes = recorded.lost = 0;
        recorded.spoilt.clear();
        good = put_together((*parts)->path(), file, recorded, true);
    }
    if (good && !keep_spoilt(recording.file, recording.limit, recorded)) (*parts)->keep();
    if (!good) {
        (*parts)->keep();
        recorded.fault = fmt::format("{} is not whole: {}", recording.file, good.error().text);
        if (std::error_code ignored; fs::exists((*parts)->path(), ignored))
            recorded.fault += fmt::format("; what the processes wrote is kept in {}", (*parts)->path());
    }
    return recorded;
}

}  // namespace orrery::prof
