// Every call through the C API can be listened to.

// Some C++ programs include headers of C like this, so it has to compile.
extern "C" {
#include <orrery/orrery.h>
}

#include "umd/api/entry.h"

#include <string>
#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

class Recorder final : public EntryListener {
  public:
    Recorder() { entry_listener.store(this); }
    ~Recorder() override { entry_listener.store(nullptr); }
    void enter(Entry entry, const void* params) noexcept override {
        entered.push_back(entry_name(entry));
        if (entry != Entry::orrMemsetAsync) return;
        memset_bytes = static_cast<const orrMemsetAsync_params*>(params)->bytes;
    }
    void leave(Entry entry, const void* params, const void* result) noexcept override {
        left.push_back(entry_name(entry));
        if (entry == Entry::orrGetErrorName) return;
        codes.push_back(*static_cast<const orrError_t*>(result));
        if (entry == Entry::orrMalloc) allocated = *static_cast<const orrMalloc_params*>(params)->ptr;
    }
    std::vector<std::string> entered, left;
    std::vector<orrError_t> codes;
    std::size_t memset_bytes = 0;
    void* allocated = nullptr;
};

TEST(Entry, ListenersAreToldOfCallParametersAndResult) {
    FakeSystem system;
    void* memory = nullptr;
    Recorder recorder;
    ASSERT_EQ(orrMalloc(&memory, 64), orrSuccess);
    ASSERT_EQ(orrMemsetAsync(memory, 1, 48, nullptr), orrSuccess);
    ASSERT_EQ(orrDeviceSynchronize(), orrSuccess);
    ASSERT_EQ(orrFree(&recorder), orrErrorInvalidValue);
    EXPECT_STREQ(orrGetErrorName(orrSuccess), "orrSuccess");
    const std::vector<std::string> calls = {"orrMalloc", "orrMemsetAsync", "orrDeviceSynchronize", "orrFree",
                                            "orrGetErrorName"};
    EXPECT_EQ(recorder.entered, calls);
    EXPECT_EQ(recorder.left, calls);
    EXPECT_EQ(recorder.codes, (std::vector{orrSuccess, orrSuccess, orrSuccess, orrErrorInvalidValue}));
    EXPECT_EQ(recorder.allocated, memory);
    EXPECT_EQ(recorder.memset_bytes, 48u);
}

TEST(Entry, NobodyIsToldWhenNobodyListens) {
    FakeSystem system;
    std::vector<std::string> heard;
    {
        Recorder recorder;
    }
    int count = 0;
    EXPECT_EQ(orrGetDeviceCount(&count), orrSuccess);
    EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace orrery::umd::test
