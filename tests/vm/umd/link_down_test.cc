// A link goes down, by what crosses it and when: before anything does, while it does, and when it has.
// Between the first card and the last, over one link, over several of which one in the middle goes, or over a
// switch; or one between two switches, if the host has a hand at it.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>

#include <orrery/graph.h>
#include <orrery/group.h>
#include <orrery/multicast.h>
#include <orrery/task.h>
#include <orrery/embedded_kernel.hpp>

#include "tests/system/runtime/hand.h"
#include "tests/vm/umd/helpers.h"

ORR_EMBEDDED_KERNEL(umd_test_kernels);

namespace orrery::umd::vm {
namespace {

enum class Crosses {
    kWrite,
    kRead,
    kLoad,
    kStore,
    kAtomic,
    kSignal,
    kBarrier,
    kGang,         // waits for its part on the other card
    kStartedGang,  // of which nothing crosses any more
    kMulticast,
    kReduction,
    kTasks,
    kGraph  // captured copies
};
enum class When { kBefore, kDuring, kAfter };
using Cell = std::tuple<Crosses, When>;

constexpr std::size_t kBytes = 16 << 20;
constexpr int kManyCopies = 900;        // many seconds of them, which are lost and cost nothing
constexpr int kManyOverSwitches = 300;  // the same where each passes through three of them
constexpr int kManyTasks = 2000;
constexpr int kGraphCopies = 8, kManyLaunches = 60;
constexpr int kTries = 12'000;  // of 5 ms: a minute

std::string name(Crosses what) {
    static constexpr const char* kNames[] = {"Write",     "Read",    "Load", "Store",       "Atomic",
                                             "Signal",    "Barrier", "Gang", "StartedGang", "Multicast",
                                             "Reduction", "Tasks",   "Graph"};
    return kNames[static_cast<std::size_t>(what)];
}
std::string name(When when) {
    static constexpr const char* kNames[] = {"Before", "During", "After"};
    return kNames[static_cast<std::size_t>(when)];
}

class LinkDown : public ::testing::TestWithParam<Cell> {
  protected:
    void SetUp() override {
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        ASSERT_GE(count, 2);
        last_ = count - 1;
        here_ = std::make_unique<Card>(0, kNoLimitUs);
        there_ = std::make_unique<Card>(last_, kNoLimitUs);
        ASSERT_OK(orrDeviceEnablePeerAccess(0, 0));
        ASSERT_OK(orrMalloc(&remote_, kBytes));
        ASSERT_OK(orrMemset(remote_, 0, kBytes));
        ASSERT_OK(orrMalloc(&marks_[0], sizeof(mark_)));
        ASSERT_OK(orrSemaphoreCreate(&arrived_, 0));
        ASSERT_OK(orrSetDevice(0));
        ASSERT_OK(orrDeviceEnablePeerAccess(last_, 0));
        ASSERT_OK(orrMalloc(&local_, kBytes));
        ASSERT_OK(orrMemset(local_, 1, kBytes));
        ASSERT_OK(orrMalloc(&marks_[1], sizeof(mark_)));
        void* words = nullptr;
        ASSERT_OK(orrMallocHost(&words, 4096, 0));
        std::memset(words, 0, 4096);
        words_ = static_cast<std::uint64_t*>(words);
    }
    void TearDown() override {
        for (const orrGroup_t group : groups_)
            EXPECT_OK(orrGroupDestroy(group));
        drop_multicast();
        drop_graph();
        for (void* member : members_)
            EXPECT_OK(orrFree(member));
        EXPECT_OK(orrSemaphoreDestroy(arrived_));
        EXPECT_OK(orrFree(remote_));
        EXPECT_OK(orrFree(local_));
        for (void* mark : marks_)
            EXPECT_OK(orrFree(mark));
        EXPECT_OK(orrFreeHost(words_));
    }

    // No card is at either end of the link, so none can take it down.
    static bool is_between_switches() { return ::access("/share/cables", F_OK) == 0; }
    static int many_copies() { return is_between_switches() ? kManyOverSwitches : kManyCopies; }
    // One on the way: of a chain that in the middle, of a switch the last card's.
    bool find_link() {
        cut_device_ = last_;
        if (is_between_switches()) return true;
        for (const int device : {last_ / 2, last_}) {
            for (int port = 0; port < 8; ++port) {
                orrLinkInfo link = ORR_INIT(orrLinkInfo);
                if (orrDeviceGetLink(&link, device, port) != orrSuccess) break;
                if (link.state != orrLinkStateUp) continue;
                const bool next = link.peer_device == device + 1;
                const bool to_switch = link.peer_device < 0 && device == last_;
                if (!next && !to_switch) continue;
                cut_device_ = device;
                cut_port_ = port;
                return true;
            }
        }
        return false;
    }
    // It goes down, and comes up by itself; returns when what was lost by that is told and there is a way
    // again.
    void cut() {
        if (is_between_switches()) return cut_by_hand();
        ASSERT_TRUE(find_link());
        const std::string link = "/sys/class/accel/accel" + std::to_string(cut_device_) + "/device/links/" +
                                 std::to_string(cut_port_) + "/";
        const auto losses = [&] {
            std::uint64_t number = 0;
            std::ifstream(link + "losses") >> number;
            return number;
        };
        const std::uint64_t before = losses();
        ASSERT_TRUE(std::ofstream(link + "reset") << "1" << std::flush);
        int can = 0;
        for (int tries = 0; tries < kTries && (losses() == before || can == 0); ++tries) {
            ::usleep(5'000);
            orrLinkInfo now = ORR_INIT(orrLinkInfo);
            ASSERT_OK(orrDeviceGetLink(&now, cut_device_, cut_port_));
            can = 0;
            if (now.state == orrLinkStateUp) ASSERT_OK(orrDeviceCanAccessPeer(&can, 0, last_));
        }
        ASSERT_EQ(can, 1) << "the link does not come up again";
        ASSERT_NE(losses(), before);
    }

    void cut_by_hand() {
        const auto wait_for = [this](int wanted) {
            int can = 1 - wanted;
            for (int tries = 0; tries < kTries && can != wanted; ++tries) {
                ::usleep(5'000);
                ASSERT_OK(orrDeviceCanAccessPeer(&can, 0, last_));
            }
            ASSERT_EQ(can, wanted);
        };
        ASSERT_EQ(ask_host("cable", "unplug", std::chrono::seconds(30)), "ok\n");
        ASSERT_NO_FATAL_FAILURE(wait_for(0));
        ASSERT_EQ(ask_host("cable", "plug", std::chrono::seconds(30)), "ok\n");
        ASSERT_NO_FATAL_FAILURE(wait_for(1)) << "the link does not come up again";
    }

    // As who lost it is told.
    ::testing::Matcher<std::string> named_link() const {
        if (is_between_switches())
            return ::testing::ContainsRegex(
                "the link from port 7 of switch [0-9a-f]{16} to switch "
                "[0-9a-f]{16} went down");
        const std::string port =
            "the link from port " + std::to_string(cut_port_) + " of device " + std::to_string(cut_device_);
        return ::testing::HasSubstr(
            port + (cut_device_ == last_ ? " to a switch" : " to device " + std::to_string(cut_device_ + 1)) +
            " went down");
    }

    std::uint64_t load(unsigned word) { return std::atomic_ref(words_[word]).load(); }
    void store(unsigned word, std::uint64_t value) { std::atomic_ref(words_[word]).store(value); }

    Crosses what() const { return std::get<0>(GetParam()); }
    // What stands until it is let go of: its next use has lost its way.
    bool stands() const {
        return what() == Crosses::kBarrier || what() == Crosses::kMulticast || what() == Crosses::kReduction;
    }

    // What is under way comes to its end if nobody cuts it.
    bool ends_by_itself() const {
        return what() == Crosses::kWrite || what() == Crosses::kRead || what() == Crosses::kMulticast ||
               what() == Crosses::kReduction || what() == Crosses::kGraph;
    }

    // One of it, until it is known to be over.
    void once() {
        switch (what()) {
            case Crosses::kWrite:
                ASSERT_OK(orrMemcpyAsync(remote_, local_, kBytes, orrMemcpyDefault, here_->stream));
                break;
            case Crosses::kRead:
                ASSERT_OK(orrMemcpyAsync(local_, remote_, kBytes, orrMemcpyDefault, here_->stream));
                break;
            case Crosses::kSignal:
                ASSERT_OK(orrStreamWaitSemaphore(there_->stream, arrived_, ++round_, nullptr));
                ASSERT_OK(orrStreamSignalSemaphore(here_->stream, arrived_, round_));
                ASSERT_OK(orrStreamSynchronize(there_->stream));
                break;
            case Crosses::kBarrier:
                if (groups_.empty()) make_groups();
                for (std::size_t rank = 0; rank < 2; ++rank)
                    ASSERT_OK(
                        orrGroupBarrierAsync(groups_[rank], (rank == 0 ? here_ : there_)->stream, nullptr));
                ASSERT_OK(orrStreamSynchronize(there_->stream));
                break;
            case Crosses::kGang:
            case Crosses::kStartedGang:
                ASSERT_NO_FATAL_FAILURE(begin_gang());
                ASSERT_NO_FATAL_FAILURE(wait_for_begin());
                store(0, 1);
                ASSERT_OK(orrStreamSynchronize(there_->stream));
                break;
            case Crosses::kMulticast:
            case Crosses::kReduction:
                if (multicast_ == nullptr) ASSERT_NO_FATAL_FAILURE(make_multicast());
                ASSERT_OK(use_multicast());
                break;
            case Crosses::kTasks:
                ASSERT_NO_FATAL_FAILURE(begin_tasks(6));
                ASSERT_OK(end_tasks());
                break;
            case Crosses::kGraph:
                if (graph_ == nullptr) ASSERT_NO_FATAL_FAILURE(capture());
                ASSERT_OK(orrGraphLaunch(graph_, here_->stream));
                break;
            default:
                begin_kernel();
                store(0, 1);
        }
        ASSERT_OK(orrStreamSynchronize(here_->stream));
    }
    // Copies in both directions.
    void capture() {
        orrGraph_t graph = nullptr;
        ASSERT_OK(orrStreamBeginCapture(here_->stream, 0));
        for (int copy = 0; copy < kGraphCopies; ++copy) {
            const bool back = copy % 4 == 3;
            ASSERT_OK(orrMemcpyAsync(back ? local_ : remote_, back ? remote_ : local_, kBytes,
                                     orrMemcpyDefault, here_->stream));
        }
        ASSERT_OK(orrStreamEndCapture(&graph, here_->stream));
        ASSERT_OK(orrGraphInstantiate(&graph_, graph, 0));
        ASSERT_OK(orrGraphDestroy(graph));
    }
    void drop_graph() {
        if (graph_ != nullptr) EXPECT_OK(orrGraphExecDestroy(graph_));
        graph_ = nullptr;
    }
    // Two parts that go on until they are told to end.
    void begin_gang(bool waits = false) {
        store(0, 0);
        store(1, 0);
        // A card's clock goes on while the cable is out. Who waits for the other part is told of the link
        // when this is over: not before the link has been cut.
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.limit_us = waits ? 5'000'000 : kNoLimitUs;
        for (Card* card : {there_.get(), here_.get()}) {
            ASSERT_OK(orrStreamDestroy(card->stream));
            ASSERT_OK(orrSetDevice(card->device));
            ASSERT_OK(orrStreamCreateWithAttributes(&card->stream, &attributes));
        }
        if (waits) ASSERT_OK(orrStreamWaitSemaphore(there_->stream, arrived_, 1, nullptr));
        const TestArgs args{words_, kObeyEnd, 0};
        orrLaunchParams here = ORR_INIT(orrLaunchParams);
        here.function = here_->kernel("obey");
        here.grid = here.block = {1, 1, 1};
        here.args = &args;
        here.bytes = sizeof(args);
        here.stream = here_->stream;
        orrLaunchParams there = here;
        there.function = there_->kernel("obey");
        there.stream = there_->stream;
        const orrLaunchParams* const parts[] = {&here, &there};
        ASSERT_OK(orrLaunchGang(parts, 2, 0));
    }
    void wait_for_begin() {
        for (int tries = 0; tries < kTries && load(1) == 0; ++tries)
            ::usleep(5'000);
        ASSERT_NE(load(1), 0u);
    }
    void make_multicast() {
        if (members_.empty()) {
            for (int device = 1; device <= last_; ++device) {
                ASSERT_OK(orrSetDevice(device));
                ASSERT_OK(orrIpcMalloc(&members_.emplace_back(), kBytes, 0));
                ASSERT_OK(orrMemset(members_.back(), 0, kBytes));
            }
            ASSERT_OK(orrSetDevice(0));
        }
        orrError_t made = orrErrorTimeout;  // somebody's port may be busy still
        for (int tries = 0; tries < 200 && made == orrErrorTimeout; ++tries) {
            made = orrMulticastCreate(&multicast_, members_.data(), last_, kBytes, orrMulticastReadable);
            if (made == orrErrorTimeout) ::usleep(50'000);
        }
        ASSERT_OK(made);
    }
    orrError_t use_multicast() {
        return what() == Crosses::kMulticast
                   ? orrMemcpyAsync(multicast_, local_, kBytes, orrMemcpyDefault, here_->stream)
                   : orrMemcpyReduceAsync(local_, multicast_, kBytes / 4, orrInt32, orrReduceSum, 0,
                                          here_->stream);
    }
    void drop_multicast() {
        if (multicast_ != nullptr) EXPECT_OK(orrFree(multicast_));
        multicast_ = nullptr;
    }
    // One after the other, on both cards in turn, so that their datum crosses before each.
    void begin_tasks(int count) {
        const int devices[] = {0, last_};
        orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
        options.devices = devices;
        options.device_count = 2;
        ASSERT_OK(orrTaskGraphCreate(&tasks_, &options));
        orrTaskKernel_t kernel = nullptr;
        std::vector<std::uint64_t> zeros((1 << 20) / sizeof(std::uint64_t));
        task_count_ = static_cast<std::uint64_t>(count);
        const auto image = umd_test_kernels_image();
        ASSERT_OK(orrTaskDataCreate(&datum_, tasks_, zeros.data(), 1 << 20));
        ASSERT_OK(orrTaskKernelCreate(&kernel, tasks_, image.data(), image.size(), "add_value"));
        const TestArgs args{nullptr, 16, 1};
        orrTask_t second = 0;
        for (int n = 0; n < count; ++n) {
            const orrTaskAccess access{datum_, orrTaskAccessReadWrite, 0, offsetof(TestArgs, data), 0};
            orrTaskDesc task = ORR_INIT(orrTaskDesc);
            task.kernel = kernel;
            task.grid = task.block = {1, 1, 1};
            task.args = &args;
            task.bytes = sizeof(args);
            task.accesses = &access;
            task.access_count = 1;
            task.flags = orrTaskOnDevice;
            task.device = n % 2 == 0 ? 0 : last_;
            ASSERT_OK(orrTaskSubmit(n == 1 ? &second : nullptr, tasks_, &task));
        }
        ASSERT_OK(orrTaskGraphStart(tasks_));
        ASSERT_OK(orrTaskWait(tasks_, second));
    }
    orrError_t end_tasks() {
        const orrError_t ended = orrTaskGraphWait(tasks_);
        told_text_ = orrGetLastErrorText();
        if (ended == orrSuccess) {  // each has added 1, on what the other card had written
            std::vector<std::uint64_t> sums((1 << 20) / sizeof(std::uint64_t));
            EXPECT_OK(orrTaskDataRead(sums.data(), datum_, 1 << 20));
            EXPECT_EQ(sums[0], task_count_);
        }
        EXPECT_OK(orrTaskGraphDestroy(tasks_));
        tasks_ = nullptr;
        return ended;
    }
    void begin_kernel() {
        store(0, 0);
        store(1, 0);
        const auto mode = static_cast<std::uint64_t>(what()) - static_cast<std::uint64_t>(Crosses::kLoad);
        ASSERT_OK(here_->launch("cross_there", {words_, mode, reinterpret_cast<std::uintptr_t>(remote_)}));
        wait_for_begin();
    }
    void make_groups() {
        const int devices[] = {0, last_};
        groups_.resize(2);
        ASSERT_OK(orrGroupCreateAll(groups_.data(), 2, devices, 0));
        orrGroupInfo info = ORR_INIT(orrGroupInfo);
        ASSERT_OK(orrGroupGetInfo(&info, groups_[0]));
        ASSERT_EQ(info.by_units, 1);
    }

    // It crosses all the time from now on.
    void begin() {
        orrEvent_t begun = nullptr;
        switch (what()) {
            case Crosses::kWrite:
            case Crosses::kRead: {
                const bool writes = what() == Crosses::kWrite;
                void *const to = writes ? remote_ : local_, *const from = writes ? local_ : remote_;
                ++mark_;
                ASSERT_OK(orrMemcpy(marks_[writes], &mark_, sizeof(mark_), orrMemcpyHostToDevice));
                ASSERT_OK(orrEventCreate(&begun, 0));
                for (int copy = 0; copy < many_copies(); ++copy) {
                    ASSERT_OK(orrMemcpyAsync(to, from, kBytes, orrMemcpyDefault, here_->stream));
                    if (copy == 0) ASSERT_OK(orrEventRecord(begun, here_->stream));
                }
                ASSERT_OK(orrMemcpyAsync(to, marks_[writes], sizeof(mark_), orrMemcpyDefault, here_->stream));
                ASSERT_OK(orrEventSynchronize(begun));
                ASSERT_OK(orrEventDestroy(begun));
                break;
            }
            case Crosses::kSignal:
                GTEST_FAIL() << "there is no such cell";
            case Crosses::kBarrier:
                make_groups();
                ASSERT_OK(orrGroupBarrierAsync(groups_[0], here_->stream, nullptr));
                break;
            case Crosses::kGang:
                begin_gang(true);
                break;
            case Crosses::kStartedGang:
                ASSERT_NO_FATAL_FAILURE(begin_gang());
                wait_for_begin();
                break;
            case Crosses::kMulticast:
            case Crosses::kReduction:
                ASSERT_NO_FATAL_FAILURE(make_multicast());
                ASSERT_OK(orrEventCreate(&begun, 0));
                for (int copy = 0; copy < many_copies(); ++copy) {
                    ASSERT_OK(use_multicast());
                    if (copy == 0) ASSERT_OK(orrEventRecord(begun, here_->stream));
                }
                ASSERT_OK(orrEventSynchronize(begun));
                ASSERT_OK(orrEventDestroy(begun));
                break;
            case Crosses::kTasks:
                begin_tasks(kManyTasks);
                break;
            case Crosses::kGraph:
                if (graph_ == nullptr) ASSERT_NO_FATAL_FAILURE(capture());
                ASSERT_OK(orrEventCreate(&begun, 0));
                for (int launch = 0; launch < kManyLaunches; ++launch) {
                    ASSERT_OK(orrGraphLaunch(graph_, here_->stream));
                    if (launch == 0) ASSERT_OK(orrEventRecord(begun, here_->stream));
                }
                ASSERT_OK(orrEventSynchronize(begun));
                ASSERT_OK(orrEventDestroy(begun));
                break;
            default:
                begin_kernel();
        }
    }
    // Who is told that all has crossed finds the last of it.
    void expect_mark() {
        if (what() != Crosses::kWrite && what() != Crosses::kRead) return;
        std::uint64_t there = 0;
        ASSERT_OK(orrMemcpy(&there, what() == Crosses::kWrite ? remote_ : local_, sizeof(there),
                            orrMemcpyDeviceToHost));
        ASSERT_EQ(there, mark_) << "it was lost, and nobody told";
    }
    // What whoever waits for it is told.
    orrError_t learn() {
        if (what() == Crosses::kTasks) return end_tasks();
        orrError_t told = orrStreamQuery(here_->stream);
        for (int tries = 0; tries < kTries && told == orrErrorNotReady; ++tries) {
            ::usleep(5'000);
            told = orrStreamQuery(here_->stream);
        }
        told_text_ = orrGetLastErrorText();
        return told;
    }

    int last_ = 0, cut_device_ = 0, cut_port_ = 0;
    std::unique_ptr<Card> here_, there_;
    void *remote_ = nullptr, *local_ = nullptr;
    std::uint64_t* words_ = nullptr;
    orrSemaphore_t arrived_ = nullptr;
    std::uint64_t round_ = 0;
    std::vector<orrGroup_t> groups_;
    std::vector<void*> members_;
    void* multicast_ = nullptr;
    orrGraphExec_t graph_ = nullptr;
    orrTaskGraph_t tasks_ = nullptr;
    orrTaskData_t datum_ = nullptr;
    std::uint64_t task_count_ = 0;
    void* marks_[2]{};  // there, here
    std::uint64_t mark_ = 0;
    std::string told_text_;
};

TEST_P(LinkDown, TheRightOneIsTold) {
    const When when = std::get<1>(GetParam());
    if (what() == Crosses::kMulticast || what() == Crosses::kReduction) {
        ASSERT_TRUE(find_link());
        if (cut_device_ != last_) GTEST_SKIP() << "there is no switch";
    }
    if (when == When::kDuring && what() == Crosses::kSignal)
        GTEST_SKIP() << "who waits for a signal while the cable is out: FailureMatrix Link...";
    if (when == When::kBefore) {
        ASSERT_NO_FATAL_FAILURE(cut());
        ASSERT_NO_FATAL_FAILURE(once());
        return;
    }
    if (when == When::kAfter) {
        ASSERT_NO_FATAL_FAILURE(once());
        if (!stands()) {
            ASSERT_NO_FATAL_FAILURE(cut());
            ASSERT_OK(orrStreamSynchronize(here_->stream)) << "what was over is no news";
            ASSERT_NO_FATAL_FAILURE(once());
            return;
        }
        ASSERT_NO_FATAL_FAILURE(cut());
        ASSERT_OK(orrStreamSynchronize(here_->stream)) << "what was over is no news";
        static_cast<void>(what() == Crosses::kBarrier
                              ? orrGroupBarrierAsync(groups_[0], here_->stream, nullptr)
                              : use_multicast());
    } else {
        ASSERT_NO_FATAL_FAILURE(begin());
        ASSERT_NO_FATAL_FAILURE(cut());
    }
    if (what() == Crosses::kStartedGang) {
        EXPECT_EQ(orrStreamQuery(here_->stream), orrErrorNotReady) << orrGetLastErrorText();
        store(0, 1);
        EXPECT_OK(orrStreamSynchronize(here_->stream));
        EXPECT_OK(orrStreamSynchronize(there_->stream));
        ASSERT_NO_FATAL_FAILURE(once());
        return;
    }
    orrError_t told = learn();
    // A link that goes down while nothing of the tasks is on it takes nothing from them: all is done, and the
    // next ones' is cut. On a slow host it stands idle for most of the time. So it is with copies that have
    // all crossed while this process stood still.
    const int most = what() == Crosses::kTasks ? 20 : ends_by_itself() ? 10 : 0;
    for (int tries = 0; when == When::kDuring && told == orrSuccess && tries < most; ++tries) {
        ASSERT_NO_FATAL_FAILURE(expect_mark());
        drop_multicast();  // its way is lost, if nothing that it carried
        ASSERT_NO_FATAL_FAILURE(begin());
        ASSERT_NO_FATAL_FAILURE(cut());
        told = learn();
    }
    const std::string text = told_text_;
    store(0, 1);  // a kernel that nobody has told ends
    EXPECT_EQ(told, orrErrorPeerAccess) << text;
    EXPECT_THAT(text, ::testing::AnyOf(::testing::HasSubstr("link"), ::testing::HasSubstr("way"))) << text;
    // And not what is left to say after the library has waited for 20 s.
    EXPECT_THAT(text, ::testing::Not(::testing::AnyOf(::testing::HasSubstr("did not arrive there"),
                                                      ::testing::HasSubstr("is still on its way"))));
    EXPECT_THAT(text, named_link()) << text;
    if (what() == Crosses::kBarrier) {
        for (const orrGroup_t group : groups_) {
            orrGroupCause cause = ORR_INIT(orrGroupCause);
            ASSERT_OK(orrGroupGetCause(&cause, group));
            // Who lost its way first may have been told by the driver, and not by the barrier
            // (docs/groups.md).
            if (when == When::kAfter && cause.code == orrSuccess) continue;
            EXPECT_EQ(cause.code, orrErrorPeerAccess) << cause.text;
            EXPECT_THAT(std::string(cause.text), named_link());
        }
        for (const orrGroup_t group : groups_)
            EXPECT_OK(orrGroupDestroy(group));
        groups_.clear();
    }
    drop_multicast();
    drop_graph();                    // of which a node has failed
    if (what() == Crosses::kGang) {  // the other part finds that out when it comes to its turn
        ASSERT_OK(orrSemaphoreSignal(arrived_, 1));
        EXPECT_EQ(orrStreamSynchronize(there_->stream), told) << orrGetLastErrorText();
        there_->renew_stream();
    }
    // The other card and its streams are not concerned, and what comes now crosses again.
    ASSERT_OK(orrSetDevice(last_));
    EXPECT_OK(orrMemset(remote_, 2, 4096));
    EXPECT_OK(orrStreamSynchronize(there_->stream));
    here_->renew_stream();
    ASSERT_NO_FATAL_FAILURE(once());
}

INSTANTIATE_TEST_SUITE_P(
    All, LinkDown,
    ::testing::Combine(::testing::Values(Crosses::kWrite, Crosses::kRead, Crosses::kLoad, Crosses::kStore,
                                         Crosses::kAtomic, Crosses::kSignal, Crosses::kBarrier,
                                         Crosses::kGang, Crosses::kStartedGang, Crosses::kMulticast,
                                         Crosses::kReduction, Crosses::kTasks, Crosses::kGraph),
                       ::testing::Values(When::kBefore, When::kDuring, When::kAfter)),
    [](const auto& cell) { return name(std::get<0>(cell.param)) + name(std::get<1>(cell.param)); });

}  // namespace
}  // namespace orrery::umd::vm
