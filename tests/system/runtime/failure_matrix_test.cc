// What fails, who waits for it, and when: every cell says who is told what, that nothing of the failed work
// runs once it has been told, and that a bystander is not disturbed. A cell that takes over 15 s is a hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/graph.h>
#include <orrery/orrery.h>
#include <orrery/task.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/system/runtime/rig.h"
#include "tests/vm/umd/kernels.h"

namespace orrery::umd::conformance {
namespace {

#define ASSERT_OK(call) ASSERT_EQ((call), orrSuccess) << orrGetLastErrorText()
#define EXPECT_OK(call) EXPECT_EQ((call), orrSuccess) << orrGetLastErrorText()

enum class What { kTrap, kFault, kLimit, kAbort, kFirmware, kCard, kLink };
enum class Who { kSameStream, kEvent, kOtherCard, kGraph, kTaskGraph, kPoll, kHostWait };
enum class When { kBefore, kQueued, kRunning, kParking };

constexpr std::array kWhats = {What::kTrap,     What::kFault, What::kLimit, What::kAbort,
                               What::kFirmware, What::kCard,  What::kLink};
constexpr std::array kWhos = {Who::kSameStream, Who::kEvent, Who::kOtherCard, Who::kGraph,
                              Who::kTaskGraph,  Who::kPoll,  Who::kHostWait};
constexpr std::array kWhens = {When::kBefore, When::kQueued, When::kRunning, When::kParking};

std::string name(What what) {
    static constexpr const char* kNames[] = {"Trap", "Fault", "Limit", "Abort", "Firmware", "Card", "Link"};
    return kNames[static_cast<std::size_t>(what)];
}
std::string name(Who who) {
    static constexpr const char* kNames[] = {"SameStream", "Event", "OtherCard", "Graph",
                                             "TaskGraph",  "Poll",  "HostWait"};
    return kNames[static_cast<std::size_t>(who)];
}
std::string name(When when) {
    static constexpr const char* kNames[] = {"Before", "Queued", "Running", "Parking"};
    return kNames[static_cast<std::size_t>(when)];
}

using Cell = std::tuple<What, Who, When>;
constexpr std::chrono::seconds kHang{90};
constexpr std::uint64_t kCanary = 0x5ca1ab1e0ddba11ull;
constexpr std::size_t kPages = 4;
constexpr std::uint32_t kPatience = 1'000'000'000;  // model us: no time of a slow host ends a kernel

// The cells there are: when each may wait. Exactly those that are not here are skipped, and say why; besides,
// what the rig cannot let fail, and card_rig.cc counts what ran.
struct Cells {
    What what;
    std::array<const char*, kWhos.size()> whens;
};
constexpr std::array<Cells, kWhats.size()> kCells = {{
    //                SameStream Event  OtherCard Graph TaskGraph Poll  HostWait
    {What::kTrap, {"BQRP", "BQRP", "BQRP", "BQRP", "R", "BQRP", "BQRP"}},
    {What::kFault, {"BQRP", "BQRP", "BQRP", "BQRP", "R", "BQRP", "BQRP"}},
    {What::kLimit, {"BQRP", "BQRP", "BQRP", "BQRP", "R", "BQRP", "BQRP"}},
    {What::kAbort, {"BQRP", "BQRP", "BQRP", "BQRP", "", "BQRP", "BQRP"}},
    {What::kFirmware, {"R", "R", "R", "R", "", "R", "R"}},
    {What::kCard, {"BQRP", "BQRP", "BQRP", "BQRP", "R", "BQRP", "BQRP"}},
    {What::kLink, {"", "", "QRP", "", "", "", ""}},
}};

bool listed(What what, Who who, When when) {
    const auto* whens = kCells[static_cast<std::size_t>(what)].whens[static_cast<std::size_t>(who)];
    return std::strchr(whens, name(when)[0]) != nullptr;
}

// Empty: the cell exists.
std::string impossible(What what, Who who, When when) {
    if (what == What::kLink && who != Who::kOtherCard) return "a link that is cut fails only what crosses it";
    if (what == What::kLink && when == When::kBefore)
        return "without a link no work over it can be submitted (Peer tests)";
    if (what == What::kAbort && when == When::kQueued && who == Who::kTaskGraph)
        return "the API names no stream of a task graph that could be aborted";
    if (who == Who::kTaskGraph && (what == What::kAbort || what == What::kFirmware))
        return "the API names no stream of a task graph";
    if (who == Who::kTaskGraph && when != When::kRunning)
        return "a task graph has one order of its own: what it runs fails while it runs";
    if (what == What::kFirmware && when != When::kRunning)
        return "a crash fails only the stream that the firmware works for, which runs then";
    return {};
}

// Empty: what fails can be made to fail here.
std::string out_of_reach(const Rig& rig, What what) {
    if (what < What::kFirmware) return {};
    return rig.cannot(what == What::kFirmware ? Mishap::kFirmwareCrash
                      : what == What::kCard   ? Mishap::kCardKilled
                                              : Mishap::kLinkCut);
}

orrError_t expected(What what) {
    switch (what) {
        case What::kTrap:
            return orrErrorIllegalInstruction;
        case What::kFault:
            return orrErrorIllegalAddress;
        case What::kLimit:
            return orrErrorLaunchTimeout;
        case What::kAbort:
            return orrErrorAborted;
        case What::kFirmware:
            return orrErrorFirmware;
        case What::kCard:
            return orrErrorDeviceLost;
        case What::kLink:
            return orrErrorPeerAccess;
    }
    return orrErrorInternal;
}

class FailureMatrix : public ::testing::TestWithParam<Cell> {
  protected:
    void SetUp() override { rig_ = make_rig(); }

    static orrStream_t stream_named(int device, const char* stream_name, std::uint32_t limit_us = kPatience) {
        EXPECT_OK(orrSetDevice(device));
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.name = stream_name;
        attributes.limit_us = limit_us;
        orrStream_t stream = nullptr;
        EXPECT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
        return stream;
    }
    orrFunction_t load(int device) {
        EXPECT_OK(orrSetDevice(device));
        orrModule_t module = nullptr;
        orrFunction_t function = nullptr;
        EXPECT_OK(orrModuleLoadData(&module, rig_->module().data(), rig_->module().size()));
        EXPECT_OK(orrModuleGetFunction(&function, module, "obey"));
        return function;
    }

    static void work_on(int device) {
        EXPECT_OK(orrSetDevice(device));
        void* there = nullptr;
        EXPECT_OK(orrMalloc(&there, 4096));
        EXPECT_OK(orrMemset(there, 1, 4096)) << "the other card was disturbed";
        EXPECT_OK(orrFree(there));
        EXPECT_OK(orrSetDevice(0));
    }

    // The rest of the process must end too when a cell hangs.
    void guard(const std::function<void()>& body) {
        std::promise<void> over;
        std::thread dog([&, ended = over.get_future()]() mutable {
            if (ended.wait_for(kHang) == std::future_status::ready) return;
            std::fprintf(stderr, "HANG: nobody was told within %lld s\n",
                         static_cast<long long>(kHang.count()));
            std::abort();
        });
        body();
        over.set_value();
        dog.join();
    }

    std::unique_ptr<Rig> rig_;
};

std::uint64_t load_word(const std::uint64_t* word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(*word)).load();
}
void store_word(std::uint64_t* word, std::uint64_t value) {
    std::atomic_ref(*word).store(value);
}

TEST_P(FailureMatrix, TheRightOneIsTold) {
    const auto [what, who, when] = GetParam();
    const auto why = impossible(what, who, when);
    ASSERT_EQ(why.empty(), listed(what, who, when)) << "not as in kCells: " << why;
    if (!why.empty()) GTEST_SKIP() << "there is no such cell: " << why;
    if (const auto far = out_of_reach(*rig_, what); !far.empty()) GTEST_SKIP() << far;
    // --- the scene: a source on device 0, whose work fails behind a gate; a bystander ---
    const orrFunction_t obey = load(0);
    const std::uint32_t limit_us = what == What::kLimit ? 2000 : kPatience;
    orrStream_t source = stream_named(0, "source", limit_us);
    orrStream_t bystander = stream_named(0, "bystander");
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    void *words_memory = nullptr, *canary = nullptr, *result_memory = nullptr, *steady = nullptr;
    ASSERT_OK(orrMallocHost(&words_memory, 64, 0));
    ASSERT_OK(orrMallocHost(&result_memory, 64, 0));
    ASSERT_OK(orrMalloc(&canary, kPages * 4096));
    ASSERT_OK(orrMalloc(&steady, 4096));
    std::memset(words_memory, 0, 64);
    std::memset(result_memory, 0, 64);
    auto* words = static_cast<std::uint64_t*>(words_memory);
    auto* result = static_cast<std::uint8_t*>(result_memory);

    const auto act = [&](std::uint64_t then, std::uint64_t address = 0) {
        const TestArgs args{words, then, address};
        return orrLaunchKernel(obey, {1, 1, 1}, {1, 1, 1}, &args, sizeof(args), 0, source);
    };
    const auto submit_failing_work = [&] {
        EXPECT_OK(orrStreamWaitSemaphore(source, gate, 1, nullptr));
        switch (what) {
            case What::kTrap:
                EXPECT_OK(act(kObeyTrap));
                break;
            case What::kFault:
                EXPECT_OK(act(kObeyStore, 0x1000));
                break;
            case What::kLimit:
                EXPECT_OK(act(kObeyScribbleOn, reinterpret_cast<std::uintptr_t>(canary)));
                break;
            case What::kLink:
                EXPECT_OK(act(kObeyEnd));
                break;
            default:
                // Is ended from outside before.
                EXPECT_OK(act(kObeyScribble, reinterpret_cast<std::uintptr_t>(canary)));
        }
        // It would write there when it ran on.
        EXPECT_OK(orrMemsetAsync(canary, 0xee, kPages * 4096, source));
    };
    const auto until_it_runs = [&] {
        while (load_word(words + 1) == 0)
            std::this_thread::yield();
    };
    const auto fail_now = [&] {
        if (when == When::kQueued && what != What::kAbort && what != What::kCard) {
            EXPECT_OK(orrSemaphoreSignal(gate, 1));
        }
        if (what >= What::kFirmware && when != When::kQueued) until_it_runs();
        if (what == What::kAbort) {
            EXPECT_OK(orrStreamAbort(source));
        } else if (what >= What::kFirmware) {
            rig_->happen(what == What::kFirmware ? Mishap::kFirmwareCrash
                         : what == What::kCard   ? Mishap::kCardKilled
                                                 : Mishap::kLinkCut,
                         0, "source");
        }
        // The firmware crashes when it next works for the queue, at the kernel's end.
        if (what != What::kAbort) store_word(words, 1);
    };

    guard([&] {
        if (who == Who::kTaskGraph) {
            orrTaskGraph_t graph = nullptr;
            orrTaskKernel_t kernel = nullptr;
            const int devices[] = {0};
            orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
            options.devices = devices;
            options.device_count = 1;
            options.limit_us = limit_us;
            ASSERT_OK(orrTaskGraphCreate(&graph, &options));
            ASSERT_OK(
                orrTaskKernelCreate(&kernel, graph, rig_->module().data(), rig_->module().size(), "obey"));
            const TestArgs args{words,
                                what == What::kTrap    ? kObeyTrap
                                : what == What::kFault ? kObeyStore
                                : what == What::kLimit ? kObeyScribbleOn
                                                       : kObeyEnd,
                                what == What::kLimit ? reinterpret_cast<std::uintptr_t>(canary) : 0x1000};
            orrTaskDesc desc = ORR_INIT(orrTaskDesc);
            desc.kernel = kernel;
            desc.grid = desc.block = {1, 1, 1};
            desc.args = &args;
            desc.bytes = sizeof(args);
            ASSERT_OK(orrTaskSubmit(nullptr, graph, &desc));
            ASSERT_OK(orrTaskGraphStart(graph));
            until_it_runs();
            fail_now();
            EXPECT_EQ(orrTaskGraphWait(graph), expected(what)) << orrGetLastErrorText();
            EXPECT_OK(orrTaskGraphDestroy(graph));
            return;
        }
        // --- who waits ---
        orrStream_t waiter = nullptr;
        orrEvent_t event = nullptr;
        orrGraphExec_t exec = nullptr;
        orrGraph_t graph = nullptr;
        const int waits_on = who == Who::kOtherCard ? 1 : 0;
        waiter = stream_named(waits_on, "waiter");
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrEventCreate(&event, 0));
        if (who == Who::kGraph) {
            EXPECT_OK(orrGraphCreate(&graph, 0));
            EXPECT_OK(orrGraphAddMemsetNode(nullptr, graph, nullptr, 0, result, 1, 8));
            EXPECT_OK(orrGraphAddMemsetNode(nullptr, graph, nullptr, 0, result + 8, 1, 8));  // a second lane
            EXPECT_OK(orrGraphInstantiate(&exec, graph, 0));
        }
        orrError_t told = orrSuccess;
        std::string text;
        const auto note = [&](orrError_t code) {
            if (told == orrSuccess && code != orrSuccess) {
                told = code;
                text = orrGetLastErrorText();
            }
        };
        const auto depend = [&] {
            if (who == Who::kSameStream) note(orrMemsetAsync(result, 1, 8, source));
            if (who == Who::kPoll || who == Who::kHostWait || who == Who::kSameStream) return;
            note(orrStreamWaitEvent(waiter, event, nullptr));
            if (told != orrSuccess) return;  // refused already
            note(who == Who::kGraph ? orrGraphLaunch(exec, waiter) : orrMemsetAsync(result, 1, 8, waiter));
        };
        const auto hear = [&] {
            orrError_t code = orrErrorNotReady;
            switch (who) {
                case Who::kPoll:
                    while (code == orrErrorNotReady)
                        code = orrEventQuery(event);
                    break;
                case Who::kHostWait:
                    code = orrEventSynchronize(event);
                    break;
                case Who::kSameStream:
                    code = orrStreamSynchronize(source);
                    break;
                default:
                    code = orrStreamSynchronize(waiter);
            }
            note(code);
        };
        submit_failing_work();
        EXPECT_OK(orrEventRecord(event, source));
        if (when != When::kQueued) {
            EXPECT_OK(orrSemaphoreSignal(gate, 1));
        }
        std::thread trigger;
        if (when == When::kBefore) {
            if (what != What::kAbort && what != What::kCard) {
                fail_now();
                EXPECT_EQ(orrStreamSynchronize(source), expected(what)) << orrGetLastErrorText();
            } else {
                fail_now();
            }
            depend();
        } else if (when == When::kParking) {
            trigger = std::thread(fail_now);  // any moment from now on
            depend();
        } else {
            if (when == When::kRunning) until_it_runs();
            depend();
            fail_now();
        }
        hear();
        if (trigger.joinable()) trigger.join();
        EXPECT_EQ(told, expected(what)) << text;
        EXPECT_EQ(result[0], 0) << "what depends on it ran";
        EXPECT_EQ(result[8], 0) << "what depends on it ran";
        const bool another = who == Who::kEvent || who == Who::kOtherCard || who == Who::kGraph;
        if (another && what != What::kLink && what != What::kCard) {
            EXPECT_THAT(text, ::testing::HasSubstr("'source'")) << "the cause has a name";
        }
        if (what == What::kLink) {
            EXPECT_THAT(text, ::testing::HasSubstr("link")) << "the cause has a name";
            // What does not cross the link goes on, on both cards.
            EXPECT_OK(orrMemsetAsync(steady, 7, 4096, bystander));
            EXPECT_OK(orrStreamSynchronize(bystander)) << "the bystander was disturbed";
            work_on(1);
        }

        // --- nothing of it runs any more: memory can be freed and used again ---
        const bool alive = what != What::kCard;
        if (what != What::kLink) {
            EXPECT_OK(orrFree(canary));
        }
        if (alive && what != What::kLink) {
            std::vector<std::uint64_t> pattern(kPages * 512, kCanary), back(kPages * 512);
            void* const freed = std::exchange(canary, nullptr);
            EXPECT_OK(orrMalloc(&canary, kPages * 4096));
            EXPECT_EQ(canary, freed) << "this is not the memory that the failed work used";
            EXPECT_OK(
                orrMemcpyAsync(canary, pattern.data(), kPages * 4096, orrMemcpyHostToDevice, bystander));
            EXPECT_OK(orrMemsetAsync(steady, 7, 4096, bystander));
            EXPECT_OK(orrStreamSynchronize(bystander)) << "the bystander was disturbed";
            EXPECT_OK(orrMemcpyAsync(back.data(), canary, kPages * 4096, orrMemcpyDeviceToHost, bystander));
            EXPECT_EQ(pattern, back) << "freed memory was written to";
            EXPECT_OK(orrFree(canary));
        } else if (who != Who::kOtherCard) {
            // The other card is the bystander of a card that is gone.
            work_on(1);
        }
        if (exec != nullptr) {
            EXPECT_OK(orrGraphExecDestroy(exec));
        }
        if (graph != nullptr) {
            EXPECT_OK(orrGraphDestroy(graph));
        }
        EXPECT_OK(orrEventDestroy(event));
        EXPECT_OK(orrStreamDestroy(waiter));
        if (what == What::kLink) {
            EXPECT_OK(orrFree(canary));
        }
    });
    if (who == Who::kTaskGraph) {
        EXPECT_OK(orrFree(canary));
    }
    EXPECT_OK(orrStreamDestroy(source));
    EXPECT_OK(orrStreamDestroy(bystander));
    EXPECT_OK(orrSemaphoreDestroy(gate));
    EXPECT_OK(orrFree(steady));
    EXPECT_OK(orrFreeHost(words_memory));
    EXPECT_OK(orrFreeHost(result_memory));
}

INSTANTIATE_TEST_SUITE_P(All, FailureMatrix,
                         ::testing::Combine(::testing::ValuesIn(kWhats), ::testing::ValuesIn(kWhos),
                                            ::testing::ValuesIn(kWhens)),
                         [](const auto& cell) {
                             return name(std::get<0>(cell.param)) + name(std::get<1>(cell.param)) +
                                    name(std::get<2>(cell.param));
                         });

}  // namespace
}  // namespace orrery::umd::conformance
