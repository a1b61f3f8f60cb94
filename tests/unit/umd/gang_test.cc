// Launches over several cards.
#include <orrery/graph.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

class GangTest : public ::testing::Test {
  protected:
    static constexpr int kCards = 4;  // 0 and 1 are linked, and so are 2 and 3
    void SetUp() override {
        ASSERT_OK(orrLibraryLoad(&library_, TEST_KERNELS));
        ASSERT_OK(orrLibraryGetFunction(&kernel_, library_, "add_value"));
        for (int device = 0; device < kCards; ++device) {
            ASSERT_OK(orrSetDevice(device));
            make_stream(device, 0);
            card(device).on_dispatch = [this, device](FakeCard&, const FakeDispatch& dispatch) {
                if (!dispatch.resident) return FakeOutcome{.running = busy_[device].load()};
                if (held_[device].load()) return FakeOutcome{.running = true};
                ++started_[device];
                return outcome_[device];
            };
        }
    }
    void TearDown() override {
        for (orrStream_t stream : stream_)
            EXPECT_OK(orrStreamDestroy(stream));
        EXPECT_OK(orrLibraryUnload(library_));
        FakeGangs::all().clear();
    }
    void make_stream(int device, std::uint32_t limit_us) {
        ASSERT_OK(orrSetDevice(device));
        if (stream_[device] != nullptr) ASSERT_OK(orrStreamDestroy(stream_[device]));
        stream_[device] = create(device, "part" + std::to_string(device), limit_us);
    }
    static orrStream_t create(int device, const std::string& name, std::uint32_t limit_us = 0) {
        EXPECT_OK(orrSetDevice(device));
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.name = name.c_str();
        attributes.limit_us = limit_us;
        orrStream_t stream = nullptr;
        EXPECT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
        return stream;
    }
    // False: for a minute it was not so.
    static bool soon(const std::function<bool()>& there) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!there()) {
            if (std::chrono::steady_clock::now() >= end) return false;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        return true;
    }
    // The card has stopped the stream of this name, of which the runtime may not know.
    bool stopped(int device, const std::string& name) {
        const std::lock_guard lock(card(device).mutex());
        return std::ranges::any_of(card(device).queues, [&](const FakeCard::Queue& queue) {
            return queue.options.name == name && queue.state.error != ORR_QERR_NONE;
        });
    }
    // Card 1 comes to this before its part of a launch, and stops.
    void fault_before_part(void** gone, const std::function<void()>& launch_it) {
        ASSERT_OK(orrSetDevice(1));
        ASSERT_OK(orrMalloc(gone, 2 << 20));
        card(1).pause(true);
        card(1).hide(*gone);
        ASSERT_OK(orrMemsetAsync(*gone, 0, 8, stream_[1]));
        launch_it();
        card(1).pause(false);
    }
    FakeCard& card(int device) { return system_.card(static_cast<std::size_t>(device)); }
    orrLaunchParams part(int device, std::uint32_t groups = 2) {
        orrLaunchParams params = ORR_INIT(orrLaunchParams);
        params.function = kernel_;
        params.grid = {groups, 1, 1};
        params.block = {1, 1, 1};
        params.stream = stream_[device];
        return params;
    }
    static orrError_t launch(const orrLaunchParams& a, const orrLaunchParams& b) {
        const orrLaunchParams* const parts[] = {&a, &b};
        return orrLaunchGang(parts, 2, 0);
    }
    orrError_t launch_pair() { return launch(part(0), part(1)); }
    // Keeps the stream busy until busy_ is false.
    void occupy(int device) {
        busy_[device] = true;
        ASSERT_OK(orrLaunchKernel(kernel_, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream_[device]));
    }

    FakeSystem system_{kCards};
    orrLibrary_t library_ = nullptr;
    orrFunction_t kernel_ = nullptr;
    orrStream_t stream_[kCards] = {};
    std::atomic<bool> busy_[kCards] = {};
    std::atomic<bool> held_[kCards] = {};  // parts there run until it is false
    std::atomic<int> started_[kCards] = {};
    FakeOutcome outcome_[kCards];
};

TEST_F(GangTest, PartsStartTogether) {
    occupy(1);
    ASSERT_OK(launch_pair());
    ASSERT_TRUE(soon([] { return FakeGangs::all().waiting() == 1; }));
    EXPECT_EQ(orrStreamQuery(stream_[0]), orrErrorNotReady);
    EXPECT_EQ(started_[0], 0) << "the other card has work before its part";
    busy_[1] = false;
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[1]));
    EXPECT_EQ(started_[0], 1);
    EXPECT_EQ(started_[1], 1);
}

TEST_F(GangTest, BoardsAreUsedAgain) {
    ASSERT_OK(launch_pair());
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[1]));
    const int pages = card(0).live_pages;
    for (int round = 0; round < 300; ++round) {
        ASSERT_OK(launch_pair());
        if (round % 10 != 0) continue;
        ASSERT_OK(orrStreamSynchronize(stream_[0]));
        ASSERT_OK(orrStreamSynchronize(stream_[1]));
    }
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[1]));
    EXPECT_EQ(started_[0], 301);
    EXPECT_EQ(started_[1], 301);
    const std::lock_guard lock(card(0).mutex());
    EXPECT_LE(card(0).live_pages - pages, 2);
}

TEST_F(GangTest, ThreadsDoNotMixTheirGangs) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([this] {
            for (int round = 0; round < 25; ++round)
                EXPECT_OK(launch_pair());
        });
    }
    threads.clear();
    EXPECT_OK(orrStreamSynchronize(stream_[0]));
    EXPECT_OK(orrStreamSynchronize(stream_[1]));
    EXPECT_EQ(started_[0], 100);
}

TEST_F(GangTest, OnePartThatFailsEndsTheOthers) {
    outcome_[0] = {.running = true};
    outcome_[1] = {.error = ORR_QERR_KERNEL_TRAP, .address = 0x1234, .detail = 3};
    ASSERT_OK(launch_pair());
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorIllegalInstruction,
                "stream 'part1' on device 1 had a part of the same launch over several devices: kernel "
                "'add_value'");
    EXPECT_FAIL(orrStreamSynchronize(stream_[1]), orrErrorIllegalInstruction, "kernel 'add_value'");
    // New streams work, with new boards.
    outcome_[0] = outcome_[1] = {};
    make_stream(0, 0);
    make_stream(1, 0);
    ASSERT_OK(launch_pair());
    EXPECT_OK(orrStreamSynchronize(stream_[0]));
    EXPECT_OK(orrStreamSynchronize(stream_[1]));
}

TEST_F(GangTest, OneThatStopsBeforeItsPartEndsTheOthers) {
    void* gone = nullptr;
    fault_before_part(&gone, [&] { ASSERT_OK(launch_pair()); });
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorIllegalAddress, "stream 'part1' on device 1");
    EXPECT_FAIL(orrStreamSynchronize(stream_[1]), orrErrorIllegalAddress, "memset");
    EXPECT_EQ(started_[0] + started_[1], 0);
    ASSERT_OK(orrFree(gone));
    // It is refused now, and nothing is given to the other.
    make_stream(0, 0);
    EXPECT_FAIL(launch_pair(), orrErrorIllegalAddress, "part 1 of 2");
    EXPECT_OK(orrStreamSynchronize(stream_[0]));
}

TEST_F(GangTest, WaitsNoLongerThanItsLimit) {
    make_stream(0, 20'000);
    occupy(1);
    ASSERT_OK(launch_pair());
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorLaunchTimeout,
                "did not start together: stream 'part1' on device 1 had other work");
    busy_[1] = false;
    EXPECT_FAIL(orrStreamSynchronize(stream_[1]), orrErrorLaunchTimeout,
                "did not start together: stream 'part1' on device 1 had other work");
    EXPECT_EQ(started_[0] + started_[1], 0);
}

// Not its own work, and not its limit as it stands: nothing that the caller did.
TEST_F(GangTest, IsToldWhatGoesFirst) {
    make_stream(0, 20'000);
    occupy(1);
    FakeGangs::all().set_preceded();
    ASSERT_OK(launch_pair());
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorLaunchTimeout,
                "kept device 1 from stream 'part1' on device 1 for 16 times the limit");
    busy_[1] = false;
    EXPECT_FAIL(orrStreamSynchronize(stream_[1]), orrErrorLaunchTimeout, "kernels that go first");
    EXPECT_EQ(started_[0] + started_[1], 0);
}

// Whoever launches again has to know.
TEST_F(GangTest, IsToldThatPartsHadRun) {
    make_stream(0, 20'000);
    occupy(1);
    FakeGangs::all().set_ran();
    ASSERT_OK(launch_pair());
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorLaunchTimeout,
                "had run, made room for other work, and did not go on together: stream 'part1' on device 1");
    busy_[1] = false;
    EXPECT_FAIL(orrStreamSynchronize(stream_[1]), orrErrorLaunchTimeout, "had run, made room");
}

TEST_F(GangTest, ACardThatIsLostEndsTheOthers) {
    outcome_[0] = outcome_[1] = {.running = true};
    ASSERT_OK(launch_pair());
    ASSERT_TRUE(soon([&] { return started_[0] != 0 && started_[1] != 0; }));
    card(1).lose();
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorDeviceLost, "stream 'part1' on device 1");
    EXPECT_EQ(orrStreamSynchronize(stream_[1]), orrErrorDeviceLost);
}

TEST_F(GangTest, OnOneDeviceItIsACooperativeLaunch) {
    const orrLaunchParams only = part(2, FakeCard::kVectorCores);
    const orrLaunchParams* const parts[] = {&only};
    ASSERT_OK(orrLaunchGang(parts, 1, 0));
    ASSERT_OK(orrStreamSynchronize(stream_[2]));
    EXPECT_EQ(started_[2], 1);
}

TEST_F(GangTest, TheCauseIsToldAlsoAfterTheNextLaunch) {
    // The library is on these devices then, so that the launch below waits for nothing.
    ASSERT_OK(launch(part(2), part(3)));
    ASSERT_OK(orrStreamSynchronize(stream_[2]));
    ASSERT_OK(orrStreamSynchronize(stream_[3]));
    void* gone = nullptr;
    fault_before_part(&gone, [&] { ASSERT_OK(launch_pair()); });
    ASSERT_TRUE(soon([&] { return stopped(0, "part0") && stopped(1, "part1"); }));
    ASSERT_OK(launch(part(2), part(3)));
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorIllegalAddress,
                "stream 'part1' on device 1 had a part of the same launch over several devices: a memset");
    EXPECT_EQ(orrStreamSynchronize(stream_[1]), orrErrorIllegalAddress);
    ASSERT_OK(orrFree(gone));
}

// What a card says of one gang may name a stream that stopped for another one.
TEST_F(GangTest, TheCauseMayBeAnotherLaunch) {
    orrStream_t a = create(0, "a"), b = create(1, "b");
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    make_stream(1, 20'000);
    occupy(0);
    card(1).pause(true);  // the limit begins when all have been launched
    ASSERT_OK(launch_pair());
    ASSERT_OK(orrEventRecord(event, stream_[1]));
    ASSERT_OK(orrStreamWaitEvent(b, event, 0));
    orrLaunchParams on_0 = part(0), on_1 = part(1);
    on_0.stream = a;
    on_1.stream = b;
    ASSERT_OK(launch(on_0, on_1));
    card(1).pause(false);
    ASSERT_TRUE(soon([&] { return stopped(1, "part1") && stopped(1, "b") && stopped(0, "a"); }));
    EXPECT_FAIL(orrStreamSynchronize(a), orrErrorLaunchTimeout,
                "stream 'b' on device 1 had a part of the same launch over several devices");
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("stream 'part0' on device 0 had other work"));
    busy_[0] = false;
    EXPECT_EQ(orrStreamSynchronize(stream_[0]), orrErrorLaunchTimeout);
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamDestroy(a));
    ASSERT_OK(orrStreamDestroy(b));
}

TEST_F(GangTest, ALinkThatWentDownIsNoTimeout) {
    make_stream(0, 20'000);
    occupy(1);
    ASSERT_OK(launch_pair());
    card(1).cut_link();
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorPeerAccess,
                "the link from port 0 of device 0 to device 1 went down before they had met");
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("No way over links that are up is left"));
    busy_[1] = false;
    EXPECT_EQ(orrStreamSynchronize(stream_[1]), orrErrorPeerAccess);
    card(1).mend_link();
}

// Behind a switch, say, nobody knows which link it was.
TEST_F(GangTest, AWayThatIsGoneWasNotGivenUpForAnother) {
    card(0).names_losses = card(1).names_losses = false;
    make_stream(0, 20'000);
    occupy(1);
    ASSERT_OK(launch_pair());
    card(1).cut_link();
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorPeerAccess,
                "the way between devices 0 and 1 was lost before they had met");
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("No way over links that are up is left"));
    busy_[1] = false;
    EXPECT_EQ(orrStreamSynchronize(stream_[1]), orrErrorPeerAccess);
    card(1).mend_link();
}

// The limit passes when the link is up again.
TEST_F(GangTest, ALinkThatWentDownAndCameUpIsTheCause) {
    for (const bool named : {true, false}) {
        card(0).names_losses = card(1).names_losses = named;
        // Earlier losses are another launch's.
        card(1).cut_link();
        card(1).mend_link();
        make_stream(0, 20'000);
        occupy(1);
        ASSERT_OK(launch_pair());
        card(1).cut_link();
        card(1).mend_link();
        EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorPeerAccess,
                    named ? "did not start together: the link from port 0 of device 0 to device 1 went down"
                          : "the way between devices 0 and 1 was given up for another one");
        EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("There is a way again"));
        busy_[1] = false;
        EXPECT_EQ(orrStreamSynchronize(stream_[1]), orrErrorPeerAccess) << "all parts are told the same";
        make_stream(1, 0);
    }
}

TEST_F(GangTest, ALinkThatWentDownBeforeIsNotTheCause) {
    card(1).cut_link();
    card(1).mend_link();
    make_stream(0, 20'000);
    occupy(1);
    ASSERT_OK(launch_pair());
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorLaunchTimeout,
                "stream 'part1' on device 1 had other work");
    busy_[1] = false;
    EXPECT_EQ(orrStreamSynchronize(stream_[1]), orrErrorLaunchTimeout);
}

// A card that says why it was late is believed.
TEST_F(GangTest, ALinkThatWentDownIsNotTheCauseOfWhatOthersKept) {
    FakeGangs::all().set_preceded();
    make_stream(0, 20'000);
    occupy(1);
    ASSERT_OK(launch_pair());
    card(1).cut_link();
    card(1).mend_link();
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorLaunchTimeout, "kernels that go first");
    busy_[1] = false;
    EXPECT_EQ(orrStreamSynchronize(stream_[1]), orrErrorLaunchTimeout);
}

TEST_F(GangTest, MoreStreamsThanACardHasPlacesForAreRefused) {
    constexpr int kPairs = 5;
    orrStream_t streams[kPairs][2] = {};
    for (auto& pair : streams) {
        for (const int device : {0, 1})
            pair[device] = create(device, "one of many");
    }
    const auto launch_in = [&](const orrStream_t(&pair)[2]) {
        orrLaunchParams on_0 = part(0), on_1 = part(1);
        on_0.stream = pair[0];
        on_1.stream = pair[1];
        return launch(on_0, on_1);
    };
    held_[0] = held_[1] = true;
    for (int i = 0; i < kPairs - 1; ++i)
        ASSERT_OK(launch_in(streams[i]));
    EXPECT_FAIL(launch_in(streams[kPairs - 1]), orrErrorOutOfMemory, "4 other streams on device 0");
    EXPECT_OK(launch_in(streams[0])) << "behind the one that this stream has";
    held_[0] = held_[1] = false;
    for (const auto& pair : streams) {
        for (const orrStream_t stream : pair)
            EXPECT_OK(orrStreamSynchronize(stream));
    }
    EXPECT_OK(launch_in(streams[kPairs - 1]));
    for (const auto& pair : streams) {
        for (const orrStream_t stream : pair) {
            EXPECT_OK(orrStreamSynchronize(stream));
            EXPECT_OK(orrStreamDestroy(stream));
        }
    }
    EXPECT_EQ(started_[0], kPairs + 1);
}

// Places are also taken by other processes, of which the runtime cannot know.
TEST_F(GangTest, ADeviceWithoutAPlaceEndsTheOthers) {
    FakeGangs::all().set_others(card(1).uid, ORR_GANG_MAX_OF_CARD);
    ASSERT_OK(launch_pair());
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorOutOfMemory,
                "stream 'part1' on device 1 had a part of the same launch over several devices");
    EXPECT_FAIL(
        orrStreamSynchronize(stream_[1]), orrErrorOutOfMemory,
        "device 1 had no place for it: 16 of them may wait there to start, 4 of one process, and of all "
        "processes of one user as many as are left then: 8 if no other user has any");
    EXPECT_EQ(started_[0] + started_[1], 0);
}

TEST_F(GangTest, TheNextLaunchWaitsForPartsThatRunOn) {
    held_[1] = true;
    ASSERT_OK(launch_pair());
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    ASSERT_OK(launch(part(2), part(3)));
    orrStream_t next[2] = {create(0, "next0"), create(1, "next1")};
    orrLaunchParams on_0 = part(0), on_1 = part(1);
    on_0.stream = next[0];
    on_1.stream = next[1];
    ASSERT_OK(launch(on_0, on_1));
    ASSERT_OK(orrStreamSynchronize(stream_[2])) << "others do not wait";
    ASSERT_OK(orrStreamSynchronize(stream_[3]));
    ASSERT_TRUE(soon([] { return FakeGangs::all().waiting() == 2; }));
    EXPECT_EQ(started_[0], 1);
    held_[1] = false;
    for (const orrStream_t stream : {next[0], next[1], stream_[1]})
        ASSERT_OK(orrStreamSynchronize(stream));
    EXPECT_EQ(started_[0], 2);
    EXPECT_EQ(started_[1], 2);
    for (const orrStream_t stream : next)
        ASSERT_OK(orrStreamDestroy(stream));
}

TEST_F(GangTest, NoPartIsGivenBeforeAllHaveRoomForArguments) {
    ASSERT_OK(launch_pair());
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[1]));
    const std::vector<std::byte> args(4096);
    busy_[1] = true;
    for (std::size_t bytes = 0; bytes < 256 << 10; bytes += args.size()) {
        ASSERT_OK(orrLaunchKernel(kernel_, {1, 1, 1}, {1, 1, 1}, args.data(), args.size(), 0, stream_[1]));
    }
    const std::uint64_t before = card(1).waits();
    std::jthread launching([&] {
        const orrLaunchParams first = part(0);
        orrLaunchParams second = part(1);
        second.args = args.data();
        second.bytes = args.size();
        EXPECT_OK(launch(first, second));
    });
    EXPECT_TRUE(soon([&] { return card(1).waits() > before; })) << "it waits for room";
    EXPECT_OK(orrStreamQuery(stream_[0])) << "it has nothing yet";
    busy_[1] = false;
    launching.join();
    EXPECT_OK(orrStreamSynchronize(stream_[0]));
    EXPECT_OK(orrStreamSynchronize(stream_[1]));
}

TEST_F(GangTest, AStreamThatIsDestroyedLeavesNothing) {
    orrLaunchParams only = part(2);
    const orrLaunchParams* const parts[] = {&only};
    ASSERT_OK(orrLaunchGang(parts, 1, 0));
    ASSERT_OK(orrStreamSynchronize(stream_[2]));
    make_stream(2, 0);
    const auto used = [&] {
        const std::lock_guard lock(card(2).mutex());
        return card(2).vram_used;
    };
    const std::uint64_t before = used();
    only.stream = stream_[2];
    only.block = {2, 1, 1};
    ASSERT_OK(orrFuncSetAttribute(kernel_, orrFuncAttributeItemStackBytes, 4096));
    ASSERT_OK(orrLaunchGang(parts, 1, 0));
    ASSERT_OK(orrStreamSynchronize(stream_[2]));
    EXPECT_GT(used(), before) << "stacks of items";
    make_stream(2, 0);
    EXPECT_EQ(used(), before);
}

// Cards 0, 1 and 2 are all linked.
class GangOfThree : public GangTest {
  protected:
    GangOfThree() {
        card(0).link_to(card(2));
        card(1).link_to(card(2));
    }
};

TEST_F(GangOfThree, AllNameTheFirstCause) {
    occupy(2);
    void* gone = nullptr;
    fault_before_part(&gone, [&] {
        const orrLaunchParams all[] = {part(0), part(1), part(2)};
        const orrLaunchParams* const parts[] = {&all[0], &all[1], &all[2]};
        ASSERT_OK(orrLaunchGang(parts, 3, 0));
    });
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorIllegalAddress, "stream 'part1' on device 1");
    busy_[2] = false;
    EXPECT_FAIL(orrStreamSynchronize(stream_[2]), orrErrorIllegalAddress,
                "stream 'part1' on device 1 had a part of the same launch over several devices: a memset");
    EXPECT_THAT(orrGetLastErrorText(), ::testing::Not(::testing::HasSubstr("part0")));
    ASSERT_OK(orrFree(gone));
}

TEST_F(GangTest, MistakesAreExplainedAndStartNothing) {
    const orrLaunchParams good = part(0);
    const auto with = [&](auto&& spoil) {
        orrLaunchParams bad = part(1);
        spoil(bad);
        return launch(good, bad);
    };
    EXPECT_FAIL(with([](auto& p) { p.size = 3; }), orrErrorInvalidValue, "ORR_INIT");
    EXPECT_FAIL(with([](auto& p) { p.flags = 6; }), orrErrorInvalidValue, "part 1 of 2: orrLaunchGang");
    EXPECT_FAIL(with([](auto& p) { p.function = nullptr; }), orrErrorInvalidHandle, "function");
    EXPECT_FAIL(with([](auto& p) { p.stream = reinterpret_cast<orrStream_t>(p.function); }),
                orrErrorInvalidHandle, "stream");
    EXPECT_FAIL(with([](auto& p) { p.grid = {FakeCard::kVectorCores + 1, 1, 1}; }), orrErrorInvalidValue,
                "vector cores");
    EXPECT_FAIL(with([](auto& p) { p.grid.y = 0; }), orrErrorInvalidValue, "grid");
    EXPECT_FAIL(with([](auto& p) { p.bytes = 8; }), orrErrorInvalidValue, "args");
    EXPECT_FAIL(with([](auto& p) { p.local_bytes = 1 << 20; }), orrErrorInvalidValue, "work-group memory");
    EXPECT_FAIL(with([&](auto& p) { p.stream = stream_[0]; }), orrErrorInvalidValue,
                "parts 0 and 1 are both in streams of device 0");
    EXPECT_FAIL(with([&](auto& p) { p.stream = stream_[2]; }), orrErrorPeerAccess, "no way over links");
    orrModule_t module = nullptr;
    orrFunction_t foreign = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrModuleLoad(&module, TEST_KERNELS));
    ASSERT_OK(orrModuleGetFunction(&foreign, module, "add_value"));
    EXPECT_FAIL(with([&](auto& p) { p.function = foreign; }), orrErrorInvalidValue, "loaded on device 0");
    ASSERT_OK(orrModuleUnload(module));
    EXPECT_FAIL(with([&](auto& p) { p.function = foreign; }), orrErrorInvalidHandle, "function");

    const orrLaunchParams* parts[9] = {&good, nullptr};
    EXPECT_FAIL(orrLaunchGang(nullptr, 1, 0), orrErrorInvalidValue, "parts is null");
    EXPECT_FAIL(orrLaunchGang(parts, 2, 0), orrErrorInvalidValue, "part 1 of 2");
    EXPECT_FAIL(orrLaunchGang(parts, 0, 0), orrErrorInvalidValue, "at least 1");
    EXPECT_FAIL(orrLaunchGang(parts, 9, 0), orrErrorInvalidValue, "at most 8");
    EXPECT_FAIL(orrLaunchGang(parts, 1, 1), orrErrorInvalidValue, "flags");
    orrGraph_t graph = nullptr;
    ASSERT_OK(orrStreamBeginCapture(stream_[1], 0));
    EXPECT_FAIL(launch_pair(), orrErrorStreamCapture, "a launch over several devices");
    EXPECT_EQ(orrStreamEndCapture(&graph, stream_[1]), orrErrorStreamCapture);
    for (const int device : {0, 1, 2})
        EXPECT_OK(orrStreamSynchronize(stream_[device]));
    EXPECT_EQ(started_[0] + started_[1] + started_[2], 0);
    EXPECT_OK(launch_pair());
    EXPECT_OK(orrStreamSynchronize(stream_[0]));
}

}  // namespace
}  // namespace orrery::umd::test
