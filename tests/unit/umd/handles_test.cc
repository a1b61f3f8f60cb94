// Threads that create, use and destroy each other's objects through the C API. Every call is carried out or
// refused; with the address and thread sanitizers that says that none touches what is gone.
#include <orrery/graph.h>
#include <orrery/task.h>

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

constexpr int kThreads = 16;
constexpr int kTurns = 150;
constexpr std::size_t kPlaces = 4;  // of each kind: few, so that threads meet

template <typename Handle>
class Places {
  public:
    Handle any(std::mt19937& random) { return places_[random() % kPlaces].load(); }
    // What was there, which the caller destroys; others may be using it, or have destroyed it.
    Handle put(std::mt19937& random, Handle fresh) { return places_[random() % kPlaces].exchange(fresh); }
    template <typename Destroy>
    void clear(Destroy&& destroy) {
        for (auto& place : places_) {
            if (Handle handle = place.exchange(nullptr)) EXPECT_OK(destroy(handle));
        }
    }

  private:
    std::array<std::atomic<Handle>, kPlaces> places_{};
};

class Crowd : public ::testing::Test {
  protected:
    void SetUp() override {
        std::ifstream file(TEST_KERNELS, std::ios::binary);
        image_.assign(std::istreambuf_iterator<char>(file), {});
        system_.card().on_dispatch = [](FakeCard&, const FakeDispatch&) { return FakeOutcome{}; };
    }
    void TearDown() override {
        graphs_.clear(orrGraphDestroy);
        execs_.clear(orrGraphExecDestroy);
        streams_.clear(orrStreamDestroy);
        events_.clear(orrEventDestroy);
        semaphores_.clear(orrSemaphoreDestroy);
        modules_.clear(orrModuleUnload);
        libraries_.clear(orrLibraryUnload);
        tasks_.clear(orrTaskGraphDestroy);
    }
    // The outcomes that are right when others destroy what is used.
    void expect(orrError_t code) {
        const bool right = code == orrSuccess || code == orrErrorInvalidHandle || code == orrErrorNotReady ||
                           code == orrErrorTimeout || code == orrErrorAbandoned || code == orrErrorCancelled;
        EXPECT_TRUE(right) << orrGetErrorName(code) << ": " << orrGetLastErrorText();
        (code == orrSuccess ? done_ : refused_).fetch_add(1);
    }
    template <typename Handle, typename Create, typename Destroy>
    void renew(std::mt19937& random, Places<Handle>& places, Create&& create, Destroy&& destroy) {
        Handle fresh = nullptr;
        ASSERT_OK(create(&fresh));
        if (Handle old = places.put(random, fresh)) {
            // Somebody else still has the number, and may be using it now; destroying it is up to us alone.
            EXPECT_OK(destroy(old));
            EXPECT_EQ(destroy(old), orrErrorInvalidHandle) << "destroyed twice";
        }
    }
    void make(std::mt19937& random) {
        switch (random() % 7) {
            case 0:
                return renew(
                    random, streams_, [](auto* s) { return orrStreamCreate(s, 0); }, orrStreamDestroy);
            case 1:
                return renew(random, events_, [](auto* e) { return orrEventCreate(e, 0); }, orrEventDestroy);
            case 2:
                return renew(
                    random, semaphores_, [](auto* s) { return orrSemaphoreCreate(s, 0); },
                    orrSemaphoreDestroy);
            case 3:
                return renew(random, graphs_, [](auto* g) { return orrGraphCreate(g, 0); }, orrGraphDestroy);
            case 4:
                return renew(
                    random, modules_,
                    [&](auto* m) { return orrModuleLoadData(m, image_.data(), image_.size()); },
                    orrModuleUnload);
            case 5:
                return renew(
                    random, libraries_,
                    [&](auto* l) { return orrLibraryLoadData(l, image_.data(), image_.size()); },
                    orrLibraryUnload);
            default:
                return renew(
                    random, tasks_, [](auto* t) { return orrTaskGraphCreate(t, nullptr); },
                    orrTaskGraphDestroy);
        }
    }
    // A child doubles its graph: not for ever.
    static bool small(orrGraph_t graph) {
        std::size_t nodes = 0;
        return orrGraphGetNodeCount(&nodes, graph) == orrSuccess && nodes <= 16;
    }
    void use(std::mt19937& random) {
        switch (random() % 11) {
            case 0:
                if (auto stream = streams_.any(random)) expect(orrEventRecord(events_.any(random), stream));
                return;
            case 1:
                if (auto stream = streams_.any(random)) expect(orrStreamQuery(stream));
                return;
            case 2:
                if (auto stream = streams_.any(random)) expect(orrStreamSynchronize(stream));
                return;
            case 3:
                expect(orrSemaphoreSignal(semaphores_.any(random), 1));
                return;
            case 4: {
                std::uint64_t value = 0;
                expect(orrSemaphoreGetValue(&value, semaphores_.any(random)));
                return expect(orrSemaphoreWait(semaphores_.any(random), 1, 1000));
            }
            case 5:
                expect(orrEventSynchronize(events_.any(random)));
                return;
            case 6: {
                orrGraphNode_t node = nullptr;
                expect(orrGraphAddEmptyNode(&node, graphs_.any(random), nullptr, 0));
                const auto parent = graphs_.any(random), child = graphs_.any(random);
                if (small(parent) && small(child))
                    expect(orrGraphAddChildGraphNode(&node, parent, nullptr, 0, child));
                return;
            }
            case 7: {
                orrFunction_t function = nullptr;
                expect(orrModuleGetFunction(&function, modules_.any(random), "add_value"));
                if (auto stream = streams_.any(random))
                    expect(orrLaunchKernel(function, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream));
                return;
            }
            case 8: {
                orrFunction_t function = nullptr;
                expect(orrLibraryGetFunction(&function, libraries_.any(random), "add_value"));
                if (auto stream = streams_.any(random))
                    expect(orrLaunchKernel(function, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream));
                orrFuncAttributes attributes = ORR_INIT(orrFuncAttributes);
                expect(orrFuncGetAttributes(&attributes, function));
                std::size_t bytes = 0;
                return expect(orrLibraryGetGlobal(nullptr, &bytes, libraries_.any(random), "shared_counter"));
            }
            case 9: {
                orrTaskData_t data = nullptr;
                std::uint64_t value = 7;
                expect(orrTaskDataCreate(&data, tasks_.any(random), &value, sizeof(value)));
                expect(orrTaskDataRead(&value, data, sizeof(value)));
                return expect(orrTaskGraphWait(tasks_.any(random)));
            }
            default: {
                orrGraphExec_t exec = nullptr;
                const auto graph = graphs_.any(random);
                if (!small(graph)) return;
                if (orrGraphInstantiate(&exec, graph, 0) != orrSuccess) return;
                if (auto old = execs_.put(random, exec)) expect(orrGraphExecDestroy(old));
                if (auto stream = streams_.any(random)) expect(orrGraphLaunch(execs_.any(random), stream));
                return;
            }
        }
    }

    FakeSystem system_;
    std::vector<char> image_;
    Places<orrStream_t> streams_;
    Places<orrEvent_t> events_;
    Places<orrSemaphore_t> semaphores_;
    Places<orrGraph_t> graphs_;
    Places<orrGraphExec_t> execs_;
    Places<orrModule_t> modules_;
    Places<orrLibrary_t> libraries_;
    Places<orrTaskGraph_t> tasks_;
    std::atomic<std::uint64_t> done_{0}, refused_{0};
};

TEST_F(Crowd, CreatesUsesAndDestroysEachOthersObjects) {
    std::vector<std::jthread> threads;
    for (int number = 0; number < kThreads; ++number) {
        threads.emplace_back([this, number] {
            std::mt19937 random(static_cast<std::uint32_t>(number));
            for (int turn = 0; turn < kTurns; ++turn) {
                make(random);
                for (int i = 0; i < 4; ++i)
                    use(random);
            }
        });
    }
    threads.clear();
    EXPECT_GT(done_.load(), 0u);
    EXPECT_GT(refused_.load(), 0u) << "nobody met anybody";
}

}  // namespace
}  // namespace orrery::umd::test
