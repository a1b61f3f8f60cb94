// Task graphs through the C API, on cards that live in the test's process.
#pragma once

#include <orrery/task.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {

// The fake card's only kernel: out = value + the sum of the inputs, or out += ...
struct Args {
    std::uint64_t out = 0, a = 0, b = 0;
    std::int64_t value = 0;
    std::uint64_t add = 0;  // to what out holds
    std::uint64_t trap = 0;
};
constexpr std::int32_t kOut = offsetof(Args, out), kA = offsetof(Args, a), kB = offsetof(Args, b);

inline FakeOutcome compute(FakeCard& card, const FakeDispatch& dispatch) {
    std::uint64_t fault = 0;
    const auto word = [&](std::uint64_t va) {
        auto* at = reinterpret_cast<std::int64_t*>(card.translate(va, 8, ORR_BIND_READ, &fault));
        EXPECT_NE(at, nullptr) << "no memory of card " << card.number << " at " << va;
        return at;
    };
    const auto* raw = card.translate(dispatch.args, sizeof(Args), ORR_BIND_READ, &fault);
    if (dispatch.local_bytes == 0 && dispatch.grid[1] == 7) {  // a merge
        const auto args = *reinterpret_cast<const orrTaskMergeArgs*>(raw);
        *word(reinterpret_cast<std::uintptr_t>(args.into)) +=
            *word(reinterpret_cast<std::uintptr_t>(args.part));
        return {};
    }
    const auto args = *reinterpret_cast<const Args*>(raw);
    if (args.trap != 0) return {ORR_QERR_KERNEL_TRAP, dispatch.entry, 3};
    std::int64_t sum = args.value;
    if (args.a != 0) sum += *word(args.a);
    if (args.b != 0) sum += *word(args.b);
    std::int64_t* out = word(args.out);
    *out = args.add != 0 ? *out + sum : sum;
    return {};
}

// The task runs on this device only.
inline void on_device(orrTaskDesc& desc, int device) {
    desc.flags |= orrTaskOnDevice;
    desc.device = device;
}

class TaskTest : public ::testing::Test {
  public:
    explicit TaskTest(int cards = 2) : system_(cards) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(cards); ++i)
            system_.card(i).on_dispatch = compute;
        std::ifstream file(TEST_KERNELS, std::ios::binary);
        image_.assign(std::istreambuf_iterator<char>(file), {});
        create(nullptr);
    }
    ~TaskTest() override { EXPECT_OK(orrTaskGraphDestroy(graph_)); }
    void create(const orrTaskGraphOptions* options) {
        if (graph_ != nullptr) EXPECT_OK(orrTaskGraphDestroy(graph_));
        EXPECT_OK(orrTaskGraphCreate(&graph_, options));
        EXPECT_OK(orrTaskKernelCreate(&kernel_, graph_, image_.data(), image_.size(), "add_value"));
    }
    orrTaskData_t data(std::int64_t value) {
        orrTaskData_t made = nullptr;
        EXPECT_OK(orrTaskDataCreate(&made, graph_, &value, sizeof(value)));
        return made;
    }
    struct Use {
        orrTaskData_t data;
        orrTaskAccessMode mode;
        int offset;  // in the arguments; -1: nowhere
    };
    orrTask_t add(const Args& args, const std::vector<Use>& uses,
                  const std::function<void(orrTaskDesc&)>& more = {}) {
        std::vector<orrTaskAccess> accesses;
        for (const Use& use : uses) {
            accesses.push_back({use.data, use.mode, use.offset < 0 ? orrTaskAccessNoArgument : 0,
                                static_cast<std::uint32_t>(std::max(use.offset, 0)), 0});
        }
        orrTaskDesc desc = ORR_INIT(orrTaskDesc);
        desc.kernel = kernel_;
        desc.grid = desc.block = {1, 1, 1};
        desc.args = &args;
        desc.bytes = sizeof(args);
        desc.accesses = accesses.data();
        desc.access_count = accesses.size();
        if (more) more(desc);
        orrTask_t task = 0;
        EXPECT_OK(orrTaskSubmit(&task, graph_, &desc));
        return task;
    }
    std::int64_t read(orrTaskData_t from) {
        std::int64_t value = -1;
        EXPECT_OK(orrTaskDataRead(&value, from, sizeof(value)));
        return value;
    }
    orrTaskInfo info(orrTask_t task) {
        orrTaskInfo told = ORR_INIT(orrTaskInfo);
        EXPECT_OK(orrTaskGetInfo(&told, graph_, task));
        return told;
    }

    FakeSystem system_;
    std::vector<char> image_;
    orrTaskGraph_t graph_ = nullptr;
    orrTaskKernel_t kernel_ = nullptr;
};

}  // namespace orrery::umd::test
