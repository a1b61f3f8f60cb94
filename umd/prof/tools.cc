#include "umd/prof/tools.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "umd/prof/profiler.h"
#include "umd/winsys/env.h"

namespace orrery::umd {
namespace {

constexpr std::chrono::seconds kStartLimit{10};

// Of one start; none is ever destroyed, as calls may come until the process ends.
struct Start {
    std::mutex mutex;
    std::condition_variable over;
    std::thread::id starter;  // none: nobody has begun
    bool done = false;
    std::chrono::steady_clock::time_point until;
};

Start& the_start() {
    alignas(Start) static std::byte room[sizeof(Start)];
    static Start* const start = new (room) Start;
    return *start;
}

// In the order in which they were started.
std::vector<const orrProfTool*>& started() {
    static auto* const tools = std::make_unique<std::vector<const orrProfTool*>>().release();
    return *tools;
}

void stop_tools() {
    auto& tools = started();
    for (auto tool = tools.rbegin(); tool != tools.rend(); ++tool) {
        if ((*tool)->stop != nullptr) (*tool)->stop();
    }
}

void warn(const std::string& path, const std::string& why) {
    const std::string line =
        fmt::format("liborrery: ORR_PROF_TOOL: {}: {}; the program goes on without it\n", path, why);
    (void)!::write(STDERR_FILENO, line.data(), line.size());
}

void start_tool(const std::string& path) {
    auto tool = load_tool(path);
    if (!tool) return warn(path, tool.error().text);
    const auto& known = started();
    if (std::ranges::find(known, *tool) != known.end()) return warn(path, "it is named twice");
    // What subscribes there is the tool's.
    struct Starting {
        explicit Starting(const char* name) { thread_marks().tool = name; }
        ~Starting() { thread_marks().tool = nullptr; }
        Starting(const Starting&) = delete;
        Starting& operator=(const Starting&) = delete;
    };
    const orrError_t answer = [&] {
        const Starting starting((*tool)->name == nullptr ? "without a name" : (*tool)->name);
        return (*tool)->start();
    }();
    if (answer != orrSuccess)
        return warn(path, fmt::format("its start() gave error {}", static_cast<int>(answer)));
    started().push_back(*tool);
}

void start_all() noexcept {
    try {
        const auto paths = Env::prof_tools();
        if (paths.empty()) return;
        for (const std::string& path : paths)
            start_tool(path);
        // What a tool's own library registered while it was loaded comes after that.
        if (!started().empty()) (void)std::atexit(&stop_tools);
    } catch (const std::exception& error) {
        warn("all tools", error.what());
    }
}

}  // namespace

Result<const orrProfTool*> load_tool(const std::string& path) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const why = ::dlerror();
        return fail(orrErrorNotFound, "it cannot be loaded ({})", why == nullptr ? "no reason given" : why);
    }
    const auto refuse = [&](std::string why) -> std::unexpected<Error> {
        ::dlclose(library);
        return std::unexpected(Error{orrErrorVersion, std::move(why)});
    };
    const auto* const tool = static_cast<const orrProfTool*>(::dlsym(library, "orrery_prof_tool"));
    if (tool == nullptr) return refuse("it is no tool, as it exports no orrery_prof_tool");
    if (tool->size < sizeof(orrProfTool))
        return refuse(
            fmt::format("its orrery_prof_tool has {} bytes, and {} are needed: set it with "
                        "ORR_INIT(orrProfTool)",
                        tool->size, sizeof(orrProfTool)));
    if (tool->version != orrProfToolVersion)
        return refuse(
            fmt::format("it is a tool of version {}, and this library takes version {}: build it for "
                        "this library's orrery/prof.h",
                        tool->version, orrProfToolVersion));
    if (tool->start == nullptr) return refuse("its orrery_prof_tool has no start()");
    return tool;
}

void start_tools() noexcept {
    Start& start = the_start();
    std::unique_lock lock(start.mutex);
    const auto self = std::this_thread::get_id();
    if (start.done || start.starter == self) return;  // a tool that starts calls the API
    if (start.starter != std::thread::id{}) {
        start.over.wait_until(lock, start.until, [&] { return start.done; });
        return;
    }
    start.starter = self;
    start.until = std::chrono::steady_clock::now() + kStartLimit;
    lock.unlock();
    start_all();
    lock.lock();
    start.done = true;
    prof_wanted.fetch_and(~kProfNotStarted);
    start.over.notify_all();
}

}  // namespace orrery::umd
