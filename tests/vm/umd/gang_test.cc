// A library on several cards (two, four, eight), and launches over all or some of them.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <vector>

#include <orrery/embedded_kernel.hpp>

#include "tests/vm/umd/helpers.h"

ORR_EMBEDDED_KERNEL(umd_test_kernels);

namespace orrery::umd::vm {
namespace {

constexpr std::size_t kRoom = 4096;  // bytes of words_

class GangOfCards : public ::testing::Test {
  protected:
    void SetUp() override {
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        ASSERT_GE(count, 2);
        cards_ = count;
        stream_.resize(static_cast<std::size_t>(count));
        cores_.resize(stream_.size());
        all_.resize(stream_.size());
        std::iota(all_.begin(), all_.end(), 0);
        const auto image = umd_test_kernels_image();
        ASSERT_OK(orrLibraryLoadData(&library_, image.data(), image.size()));
        void* memory = nullptr;
        ASSERT_OK(orrMallocHost(&memory, kRoom, 0));
        words_ = static_cast<std::uint64_t*>(memory);
        std::memset(words_, 0, kRoom);
        for (const int device : all_) {
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrOccupancyMaxActiveGroups(&cores_[at(device)], kernel("meet"), {1, 1, 1}, 0, 0));
        }
        // A card's clock goes on also while the other one computes slowly: that is no reason to fail.
        make_streams(kLong);
    }
    static std::size_t at(int device) { return static_cast<std::size_t>(device); }
    // limit_us: of a launch; 0: the usual one.
    static orrStream_t make_stream(int device, std::uint32_t limit_us) {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.limit_us = limit_us;
        orrStream_t stream = nullptr;
        EXPECT_OK(orrSetDevice(device));
        EXPECT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
        return stream;
    }
    void make_streams(std::uint32_t limit_us) {
        for (const int device : all_) {
            if (stream_[at(device)] != nullptr) ASSERT_OK(orrStreamDestroy(stream_[at(device)]));
            stream_[at(device)] = make_stream(device, limit_us);
        }
    }
    void TearDown() override {
        for (orrStream_t stream : stream_)
            EXPECT_OK(orrStreamDestroy(stream));
        EXPECT_OK(orrLibraryUnload(library_));
        EXPECT_OK(orrFreeHost(words_));
    }
    orrFunction_t kernel(const char* name) const {
        orrFunction_t function = nullptr;
        EXPECT_OK(orrLibraryGetFunction(&function, library_, name));
        return function;
    }
    orrLaunchParams part(int device, const char* name, std::uint32_t groups, const TestArgs& args) const {
        orrLaunchParams params = ORR_INIT(orrLaunchParams);
        params.function = kernel(name);
        params.grid = {groups, 1, 1};
        params.block = {1, 1, 1};
        params.args = &args;
        params.bytes = sizeof(args);
        params.stream = stream_[at(device)];
        return params;
    }
    static orrError_t launch(const std::vector<orrLaunchParams>& parts) {
        std::vector<const orrLaunchParams*> pointers;
        for (const orrLaunchParams& each : parts)
            pointers.push_back(&each);
        return orrLaunchGang(pointers.data(), pointers.size(), 0);
    }
    // A part on each of them with a group a core.
    orrError_t launch_on_cores(const std::vector<int>& devices, const char* name,
                               const TestArgs& args) const {
        std::vector<orrLaunchParams> parts;
        for (const int device : devices)
            parts.push_back(part(device, name, cores_[at(device)], args));
        return launch(parts);
    }
    std::uint32_t cores_of(const std::vector<int>& devices) const {
        std::uint32_t sum = 0;
        for (const int device : devices)
            sum += cores_[at(device)];
        return sum;
    }
    void synchronize() {
        for (const int device : all_)
            ASSERT_OK(orrStreamSynchronize(stream_[at(device)])) << "device " << device;
    }

    static constexpr std::uint32_t kLong = kNoLimitUs;
    int cards_ = 0;
    orrLibrary_t library_ = nullptr;
    std::uint64_t* words_ = nullptr;
    std::vector<int> all_;
    std::vector<orrStream_t> stream_;
    std::vector<std::uint32_t> cores_;
};

TEST_F(GangOfCards, OneLibraryRunsOnAll) {
    const std::size_t all = 10 * stream_.size();
    std::fill_n(words_, all, 1);
    for (const int device : all_) {
        const TestArgs args{words_ + 10 * device, 10, 5};
        ASSERT_OK(orrLaunchKernel(kernel("add_value"), {1, 1, 1}, {4, 1, 1}, &args, sizeof(args), 0,
                                  stream_[at(device)]));
        ASSERT_OK(orrStreamSynchronize(stream_[at(device)]));
    }
    EXPECT_TRUE(std::all_of(words_, words_ + all, [](std::uint64_t word) { return word == 6; }));
    // Each has its own variables.
    for (const int device : all_) {
        const TestArgs args{words_, 0, 2};
        ASSERT_OK(orrLaunchKernel(kernel("use_globals"), {1, 1, 1}, {1, 1, 1}, &args, sizeof(args), 0,
                                  stream_[at(device)]));
        ASSERT_OK(orrStreamSynchronize(stream_[at(device)]));
        EXPECT_EQ(words_[0], 42u) << device;
    }
}

TEST_F(GangOfCards, GroupsOfAllWaitForEachOther) {
    const std::uint32_t groups = cores_of(all_);
    for (std::uint64_t round = 1; round <= 5; ++round) {
        std::memset(words_, 0, kRoom);
        ASSERT_OK(launch_on_cores(all_, "meet", {words_, groups, 3}));
        ASSERT_NO_FATAL_FAILURE(synchronize());
        EXPECT_EQ(words_[0], 3u * groups) << round;
    }
}

TEST_F(GangOfCards, GridBarriersHoldAll) {
    constexpr std::uint64_t kRounds = 10;
    const std::uint32_t groups = cores_of(all_);
    ASSERT_LT(8 * (groups + 3), kRoom);
    ASSERT_OK(launch_on_cores(all_, "take_rounds", {words_, groups, kRounds}));
    ASSERT_NO_FATAL_FAILURE(synchronize());
    for (std::uint32_t group = 0; group < groups; ++group)
        EXPECT_EQ(words_[1 + group], kRounds) << group;
    EXPECT_EQ(words_[1 + groups], 0u) << "a group was behind others";
}

// Launches over all but the last card and over all but the first, each given as the other is under way, and
// with their parts in opposite order: cards that both want go from one to the other, and none waits for ever.
TEST_F(GangOfCards, ThatShareSomeCards) {
    if (cards_ < 3) GTEST_SKIP() << "no card would be in both and not in all";
    const std::vector<int> front(all_.begin(), all_.end() - 1), back(all_.rbegin(), all_.rend() - 1);
    std::vector<orrStream_t> others;
    for (const int device : back)
        others.push_back(make_stream(device, kLong));
    constexpr std::uint64_t kRounds = 4, kEach = kRoom / 8 / (2 * kRounds);
    ASSERT_LT(*std::ranges::max_element(cores_), kEach);
    const auto word = [&](std::uint64_t round, bool second) { return words_ + (2 * round + second) * kEach; };
    for (std::uint64_t round = 0; round < kRounds; ++round) {
        ASSERT_OK(launch_on_cores(front, "meet", {word(round, false), cores_of(front), 2}));
        std::vector<orrLaunchParams> parts;
        const TestArgs args{word(round, true), cores_of(back), 2};
        for (std::size_t i = 0; i < back.size(); ++i) {
            parts.push_back(part(back[i], "meet", cores_[at(back[i])], args));
            parts.back().stream = others[i];
        }
        ASSERT_OK(launch(parts));
    }
    ASSERT_NO_FATAL_FAILURE(synchronize());
    for (orrStream_t stream : others) {
        ASSERT_OK(orrStreamSynchronize(stream));
        EXPECT_OK(orrStreamDestroy(stream));
    }
    for (std::uint64_t round = 0; round < kRounds; ++round) {
        EXPECT_EQ(*word(round, false), 2u * cores_of(front)) << round;
        EXPECT_EQ(*word(round, true), 2u * cores_of(back)) << round;
    }
}

// A card that ran a slow kernel is ahead of the others, which go to its time in one jump: no limit of the
// launch over all passes by that.
TEST_F(GangOfCards, StartTogetherRightAfterASlowKernel) {
    constexpr std::uint64_t kSteps = 12'000'000;
    make_streams(3'000'000);  // as the host may stand for a while between two parts
    for (int round = 0; round < 4; ++round) {
        const int slow = round * (cards_ - 1) % cards_;  // the ends first
        orrStream_t alone = make_stream(slow, kLong);
        orrEvent_t begin = nullptr, end = nullptr;
        ASSERT_OK(orrEventCreate(&begin, 0));
        ASSERT_OK(orrEventCreate(&end, 0));
        std::memset(words_, 0, kRoom);
        const TestArgs wait{words_, kSteps, 0};
        ASSERT_OK(orrEventRecord(begin, alone));
        ASSERT_OK(orrLaunchKernel(kernel("linger"), {1, 1, 1}, {1, 1, 1}, &wait, sizeof(wait), 0, alone));
        ASSERT_OK(orrEventRecord(end, alone));
        ASSERT_OK(orrStreamSynchronize(alone));
        double ns = 0;
        ASSERT_OK(orrEventElapsedModelTime(&ns, begin, end));
        EXPECT_GT(ns, 3.1e9) << "no longer than the limit of a launch";
        std::memset(words_, 0, kRoom);
        const TestArgs args{words_, static_cast<std::uint64_t>(cards_), 3};
        std::vector<orrLaunchParams> parts;
        for (const int device : all_)
            parts.push_back(part(device, "meet", 1, args));
        ASSERT_OK(launch(parts));
        ASSERT_NO_FATAL_FAILURE(synchronize()) << "round " << round;
        EXPECT_EQ(words_[0], 3u * stream_.size());
        EXPECT_OK(orrEventDestroy(begin));
        EXPECT_OK(orrEventDestroy(end));
        EXPECT_OK(orrStreamDestroy(alone));
    }
}

// The first, one in the middle, the last: whichever it is, all learn that it was that one.
TEST_F(GangOfCards, NoPartOutlivesAnotherOnesTrap) {
    for (const int bad : std::vector<int>{cards_ - 1, cards_ / 2, 0}) {
        const TestArgs args{words_, 1, 1};
        std::vector<orrLaunchParams> parts;
        for (const int device : all_)
            parts.push_back(part(device, device == bad ? "trap" : "spin_for_ever", 2, args));
        ASSERT_OK(launch(parts));
        for (const int device : all_) {
            if (device == bad) continue;
            EXPECT_FAIL(orrStreamSynchronize(stream_[at(device)]), orrErrorIllegalInstruction,
                        "had a part of the same launch over several devices: kernel 'trap'");
        }
        EXPECT_FAIL(orrStreamSynchronize(stream_[at(bad)]), orrErrorIllegalInstruction, "kernel 'trap'");
        make_streams(kLong);
    }
    // And what comes now finds all cores free.
    const std::uint32_t groups = cores_of(all_);
    ASSERT_OK(launch_on_cores(all_, "meet", {words_, groups, 2}));
    ASSERT_NO_FATAL_FAILURE(synchronize());
    EXPECT_EQ(words_[0], 2u * groups);
}

TEST_F(GangOfCards, NoPartStartsWithoutTheOthers) {
    // The last card stops before it comes to its part.
    const int bad = cards_ - 1;
    const TestArgs store{words_, 1, 8};
    ASSERT_OK(orrLaunchKernel(kernel("store_to"), {1, 1, 1}, {1, 1, 1}, &store, sizeof(store), 0,
                              stream_[at(bad)]));
    const TestArgs args{words_, 1, 1};
    std::vector<orrLaunchParams> parts;
    for (const int device : all_)
        parts.push_back(part(device, "meet", 1, args));
    const orrError_t given = launch(parts);
    EXPECT_EQ(orrStreamSynchronize(stream_[at(bad)]), orrErrorIllegalAddress);
    for (const int device : all_) {
        if (device == bad) continue;
        if (given == orrSuccess) {
            EXPECT_FAIL(orrStreamSynchronize(stream_[at(device)]), orrErrorIllegalAddress,
                        "kernel 'store_to'");
        } else {  // it was faster, perhaps while others had their part already
            EXPECT_EQ(given, orrErrorIllegalAddress);
            const orrError_t other = orrStreamSynchronize(stream_[at(device)]);
            EXPECT_TRUE(other == orrSuccess || other == given) << orrGetLastErrorText();
        }
    }
    EXPECT_EQ(words_[0], 0u);
}

// Another user's kernels (workers.cc), which have all cores of some cards and last longer than ports are ever
// held: of high priority on the last card, or as a launch over the second half of the cards.
class GangBesideAnother : public GangOfCards {
  protected:
    void SetUp() override {
        GangOfCards::SetUp();
        for (const char* file : {"/tmp/cores-kept", "/tmp/cores-free"})
            ::unlink(file);
    }
    void start(const char* worker) {
        other_ = start_worker(worker);
        while (::access("/tmp/cores-kept", F_OK) != 0) {
            ASSERT_EQ(::waitpid(other_, nullptr, WNOHANG), 0) << "the other one has ended";
            ::usleep(1000);
        }
    }
    void end_other() {
        std::ofstream("/tmp/cores-free") << "1\n";
        EXPECT_EQ(wait_for(other_), 0);
    }
    void expect_turns_beside(const char* worker) {
        start(worker);
        if (HasFatalFailure()) return;
        const std::uint32_t groups = cores_of(all_);
        // Beside a launch of several cards each round waits out pauses (orrery/gang.h).
        const int rounds = cards_ == 2 ? 3 : 1;
        for (int round = 0; round < rounds; ++round) {
            std::memset(words_, 0, kRoom);
            ASSERT_OK(launch_on_cores(all_, "meet", {words_, groups, 3}));
            ASSERT_NO_FATAL_FAILURE(synchronize());
            EXPECT_EQ(words_[0], 3u * groups);
        }
        EXPECT_EQ(::waitpid(other_, nullptr, WNOHANG), 0) << "it should not have ended";
        end_other();
    }
    pid_t other_ = -1;
};

// High priority goes first for 5 ms, and then makes room.
TEST_F(GangBesideAnother, OfHighPriorityThatDoesNotEnd) {
    expect_turns_beside("keep-cores-high");
}

// A launch as they are, of another user: it makes room at the end of its slice, and goes on behind.
TEST_F(GangBesideAnother, WithALaunchOfItsOwnThatDoesNotEnd) {
    expect_turns_beside("keep-cores-gang");
}

}  // namespace
}  // namespace orrery::umd::vm
