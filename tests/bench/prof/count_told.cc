// count_told WHAT HOW TIMES: launches, or copies, on a card that does nothing, for a tool that counts
// instructions (count.sh): how many more than plain ones take is what it costs to be told. WHAT: kernels or
// copies (from pinned memory), or looks for records where there are none. HOW: plain; subscribed: to calls,
// ranges and work, by who only counts them; counters: to counters of all work, likewise; recorded: by the
// recorder of `orrery-prof record`; recorded+counters: as with --counters.
#include <orrery/prof.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <orrery/orrery.hpp>

#include "tests/unit/umd/fake_winsys.h"
#include "tools/prof/format.h"

extern "C" const orrProfTool orrery_prof_tool;

namespace orrery::bench {
namespace {

constexpr int kBetweenWaits = 100;

// Where the recorder writes.
class Folder {
  public:
    Folder() {
        std::string name = std::filesystem::temp_directory_path() / "orrery-count-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the profile");
        path_ = name;
        ::setenv(prof::kFolderVariable, path_.c_str(), 1);
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

  private:
    std::filesystem::path path_;
};

void run(const std::string& what, const std::string& how, int times) {
    const Folder folder;
    const umd::test::FakeSystem system;
    std::uint64_t work = 0;
    orrProfSubscription_t subscription = nullptr;
    orrProfOptions options = ORR_INIT(orrProfOptions);
    if (how == "subscribed") options.want = orrProfWantCalls | orrProfWantRanges | orrProfWantWork;
    if (how == "counters") options.want = orrProfWantWork | orrProfWantCounters;
    if (options.want != 0) {
        check(orrProfSubscribe(
            &subscription,
            [](void* user, const orrProfRecord* record) {
                *static_cast<std::uint64_t*>(user) += record->kind == orrProfWorkDone ? 1 : 0;
            },
            &work, &options));
    }
    const bool recorded = how.starts_with("recorded");
    if (how == "recorded+counters") ::setenv(prof::kCountersVariable, "1", 1);
    if (recorded) check(orrery_prof_tool.start());
    {
        const Library library(TEST_KERNELS);
        const orrFunction_t kernel = library.function("add_value");
        const DeviceArray<std::uint64_t> memory(8);
        const PinnedArray<std::uint64_t> host(8);
        const Stream stream;
        // The first piece of work that somebody is to be told of has the card record it.
        orrery::fill(memory.data(), 0, memory.bytes(), stream);
        for (int i = 0; i < times; ++i) {
            if (what == "looks")
                check(orrProfFlush());
            else if (what == "copies")
                copy(memory.data(), host.data(), host.bytes(), stream);
            else
                launch(kernel, {8, 1, 1}, {1, 1, 1}, memory.data(), 0, stream);
            if ((i + 1) % kBetweenWaits == 0) stream.synchronize();
        }
        stream.synchronize();
        check(orrProfFlush());
    }
    if (recorded) orrery_prof_tool.stop();
    if (subscription != nullptr) {
        check(orrProfUnsubscribe(subscription));
        if (work != (what == "looks" ? 1 : static_cast<std::uint64_t>(times) + 1))
            throw std::runtime_error("work was not told");
    }
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
    try {
        if (argc != 4) throw std::runtime_error("it takes kernels, copies or looks, how, and how many");
        orrery::bench::run(argv[1], argv[2], std::atoi(argv[3]));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "count_told: %s\n", error.what());
        return 1;
    }
    return 0;
}
