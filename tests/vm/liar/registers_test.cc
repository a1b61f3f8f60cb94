// The driver with a card whose registers read as all-ones for a while: one of them, at the moment that hurts,
// or all; or that says for ever that a debugger holds it. The driver notices, gives the card up and says why;
// its users are told, those of another card notice nothing, and once the card is honest again, it works after
// one unbind and bind. registers.sh on the host makes the card lie and stop.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/klog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <orrery/hw/bar0.h>

#include "tests/system/runtime/hand.h"
#include "tests/vm/kmod/device.h"
#include "tests/vm/kmod/pci.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kRingVa = 0x10000000;
constexpr std::uint64_t kVa = 0x40000000;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kNever = 1'000'000;

std::string tell(const std::string& order) {
    return ask_host("lie", order, std::chrono::seconds(30));
}

// The register at `offset`, or all; from its first read from now on, or the so-manieth; so often, or always
// (0).
struct Lie {
    int offset;
    unsigned first = 1;
    unsigned count = 0;
};
constexpr int kAll = -1;

void begin(const std::vector<Lie>& lies) {
    std::string order = "add";
    for (const Lie& lie : lies) {
        const std::string where = lie.offset == kAll ? "" : " offset=" + std::to_string(lie.offset);
        const std::string count = lie.count == 0 ? "all" : std::to_string(lie.count);
        order += (order == "add" ? " register" : "; register") + where +
                 " first=" + std::to_string(lie.first) + " count=" + count + " all-ones";
    }
    ASSERT_EQ(tell(order), "ok\n");
}

// Each of the lies was told; from now on there are none.
void end(std::size_t lies) {
    const std::string hits = tell("hits");
    for (std::size_t i = 0; i < lies; i++) {
        const auto line = hits.find(std::to_string(i) + " passed=");
        const auto struck = hits.find(" struck=", line);
        ASSERT_NE(struck, std::string::npos) << hits;
        EXPECT_NE(hits.compare(struck, 10, " struck=0 "), 0) << "nobody was lied to: " << hits;
    }
    ASSERT_EQ(tell("clear"), "ok\n");
}
void end(const std::vector<Lie>& lies) {
    end(lies.size());
}

std::string state_of(const std::string& card) {
    return read_file("/sys/bus/pci/devices/" + card + "/state");
}

int work(const std::string& card) {
    const File file = open_card(static_cast<unsigned>(node_of(card)));
    std::uint32_t vm = 0;
    Buffer memory;
    if (!file || create_vm(file.get(), vm) != 0) return -1;
    if (const int error = make_buffer(file.get(), vm, kVa, kMiB, ORR_BO_VRAM, memory)) return error;
    Queue queue(file.get(), vm, kRingVa);
    if (queue.error() != 0) return queue.error();
    return queue.run(std::vector{fill(memory.va, kMiB, 7)});
}

// The kernel's log from `mark` on, which somebody has written into it.
std::string log_since(const std::string& mark) {
    constexpr int kReadAll = 3;
    std::string log(1 << 18, '\0');
    log.resize(
        static_cast<std::size_t>(std::max(::klogctl(kReadAll, log.data(), static_cast<int>(log.size())), 0)));
    const auto at = log.rfind(mark);
    return at == std::string::npos ? std::string() : log.substr(at);
}

// Somebody who has a queue of the card, and two who wait for it.
class User {
  public:
    explicit User(const std::string& card)
        : card_(card), file_(open_card(static_cast<unsigned>(node_of(card)))) {
        EXPECT_EQ(create_vm(fd(), vm_), 0);
        queue_ = std::make_unique<Queue>(fd(), vm_, kRingVa);
        EXPECT_EQ(queue_->error(), 0);
        const std::uint32_t syncobj = make_syncobj(fd());
        EXPECT_EQ(put_fence(fd(), queue_->number(), kNever, syncobj, 0), 0);
        export_fence(fd(), syncobj, fence_);
        sleeper_ = std::thread([this] {
            drm_orr_queue_wait out{};
            result_ = wait(fd(), queue_->number(), kNever, kLong, out);
        });
    }
    ~User() {
        if (sleeper_.joinable()) sleeper_.join();
    }
    User(const User&) = delete;
    User& operator=(const User&) = delete;

    int fd() const { return file_.get(); }
    const std::string& card() const { return card_; }
    void expect_told() {
        sleeper_.join();
        EXPECT_EQ(result_, ENODEV);
        // Fences end behind the waits.
        drm_orr_query_device device{};
        EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &device), ENODEV);
        pollfd done{.fd = fence_.get(), .events = POLLIN, .revents = 0};
        EXPECT_EQ(::poll(&done, 1, static_cast<int>(kLong * 1000)), 1);
        EXPECT_EQ(sync_file_status(fence_.get()), -ENODEV);
        EXPECT_EQ(make_buffer(fd(), vm_, kVa, kMiB, ORR_BO_VRAM, unmade_), ENODEV);
    }

  private:
    std::string card_;
    File file_, fence_;
    std::uint32_t vm_ = 0;
    std::unique_ptr<Queue> queue_;
    Buffer unmade_;
    std::thread sleeper_;
    int result_ = -1;
};

class LyingRegisters : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(cards_.size(), 2u);
        ASSERT_EQ(tell("clear"), "ok\n");
        ASSERT_EQ(state_of(cards_[0]), "running");
    }
    // It is honest again.
    void TearDown() override {
        if (node_of(cards_[0]) >= 0 && state_of(cards_[0]) == "running") return;
        ADD_FAILURE() << "the card is not back: " << state_of(cards_[0]);
        tell("clear");
        unbind_driver(cards_[0]);
        bind_driver(cards_[0]);
    }
    const std::vector<std::string> cards_ = pci_addresses();
};

// --- the card is in use ---

struct Use {
    const char* name;
    std::vector<Lie> lies;
    const char* reason;
    // Reads the register, which nobody may take for a value: returns 0 if somebody did.
    int (*look)(const User& user) = nullptr;
    // Those that bind the driver are lied to as well, while it lasts.
    bool binds = true;
};

constexpr const char* kGone = "lost: it reads as all-ones: removed, or its process has ended";

int ask_device(const User& user) {
    drm_orr_query_device device{};
    return call(user.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &device);
}
int ask_counters(const User& user) {
    std::vector<std::uint64_t> values(4);
    drm_orr_query_counters counters{};
    counters.values = reinterpret_cast<std::uintptr_t>(values.data());
    counters.count = 4;
    return call(user.fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters);
}
int ask_link(const User& user) {
    drm_orr_query_link link{};
    return call(user.fd(), DRM_IOCTL_ORR_QUERY_LINK, &link);
}
int read_link_rate(const User& user) {
    const std::string path = "/sys/bus/pci/devices/" + user.card() + "/links/0/rate";
    const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(file) << path;
    char byte = 0;
    return ::read(file.get(), &byte, 1) >= 0 ? 0 : errno;
}
int read_sku(const std::string& card, std::string& text) {
    const std::string path = "/sys/bus/pci/devices/" + card + "/sku_table";
    const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(file) << path;
    text.assign(1 << 17, '\0');
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return got >= 0 ? 0 : errno;
}
int ask_sku(const User& user) {
    std::string text;
    return read_sku(user.card(), text);
}
// Memory of the card for the other one, by their link.
int grant(const User& user) {
    drm_orr_bo_create bo{};
    File dma_buf;
    std::uint32_t vm = 0, handle = 0;
    const File other = open_card(static_cast<unsigned>(node_of(pci_addresses().at(1))));
    EXPECT_EQ(create_bo(user.fd(), kMiB, ORR_BO_VRAM, bo), 0);
    EXPECT_EQ(export_bo(user.fd(), bo.handle, dma_buf), 0);
    EXPECT_EQ(create_vm(other.get(), vm), 0);
    EXPECT_EQ(import_bo(other.get(), dma_buf.get(), handle), 0);
    return map(other.get(), vm, handle, kVa, kMiB, ORR_BIND_WRITE);
}

const Use kUses[] = {
    {"State", {{ORR_R_STATE, 1, 1}}, kGone},
    {"All", {{kAll}}, kGone, nullptr, false},
    // It is not even reset when it is given up.
    {"StateThenIdentity", {{ORR_R_STATE, 1, 1}, {ORR_R_ID, 1, 1}}, kGone},
    // It does not say that it was.
    {"StateThenReset", {{ORR_R_STATE, 1, 1}, {ORR_R_RESET_COUNT}}, kGone, nullptr, false},
    {"StateThenEndOfReset", {{ORR_R_STATE, 1, 1}, {ORR_R_RESET_COUNT, 2, 1}}, kGone},
    {"Heartbeat", {{ORR_R_HEARTBEAT, 2, 1}}, kGone},
    {"ModelTime", {{ORR_R_MODEL_TIME, 1, 1}}, kGone, ask_device},
    {"Counters", {{ORR_R_SNAPSHOT_DONE, 1, 1}}, kGone, ask_counters},
    // The driver itself looks at these once a second, and at the state perhaps before the user does.
    {"LinkState", {{ORR_R_LINK(0) + ORR_R_LINK_STATE, 1, 2}}, kGone, ask_link},
    {"LinkLosses", {{ORR_R_LINK(0) + ORR_R_LINK_LOSSES, 1, 1}}, kGone},
    {"LinkPeer", {{ORR_R_LINK(0) + ORR_R_LINK_PEER_UID, 1, 1}}, kGone, ask_link},
    {"LinkRate", {{ORR_R_LINK(0) + ORR_R_LINK_GBPS, 1, 1}}, kGone, read_link_rate},
    {"SkuBytes", {{ORR_R_SKU_BYTES, 1, 1}}, kGone, ask_sku},
    {"Sku", {{ORR_R_SKU + 96, 1, 1}}, kGone, ask_sku},
    {"Grant",
     {{ORR_R_LINK(0) + ORR_R_LINK_GRANT_DONE, 1, 1}},
     "lost: a link port does not carry out grants",
     grant},
};

class LyingInUse : public LyingRegisters, public ::testing::WithParamInterface<Use> {};

TEST_P(LyingInUse, IsNoticedAndTold) {
    const Use& test = GetParam();
    {
        User user(cards_[0]);
        ASSERT_NO_FATAL_FAILURE(begin(test.lies));
        if (test.look != nullptr) {
            EXPECT_NE(test.look(user), 0) << "all-ones were taken for a value";
        }
        user.expect_told();
        EXPECT_EQ(state_of(cards_[0]), test.reason);
        EXPECT_EQ(work(cards_[1]), 0);
    }
    ASSERT_TRUE(unbind_driver(cards_[0]));
    if (!test.binds) {
        EXPECT_FALSE(bind_driver(cards_[0]));
        EXPECT_LT(node_of(cards_[0]), 0);
    }
    ASSERT_NO_FATAL_FAILURE(end(test.lies));
    ASSERT_TRUE(bind_driver(cards_[0]));
    EXPECT_EQ(work(cards_[0]), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, LyingInUse, ::testing::ValuesIn(kUses),
                         [](const auto& test) { return std::string(test.param.name); });

// What it says of its SKU is nobody's business but the reader's, who gets text or nothing.
TEST_F(LyingRegisters, WhatItIsMadeOf) {
    std::string text;
    std::string order = "add";
    for (int word = 0; word < 64; ++word) {
        order += (word == 0 ? " register offset=" : "; register offset=") +
                 std::to_string(ORR_R_SKU + 8 * word) + " count=1 corrupt";
    }
    ASSERT_EQ(tell(order), "ok\n");
    EXPECT_EQ(read_sku(cards_[0], text), EIO);
    ASSERT_EQ(tell("clear"), "ok\n");
    // It is not asked again, or it would be lost, until somebody else drives it.
    ASSERT_EQ(tell("add register offset=" + std::to_string(ORR_R_SKU_BYTES) + " count=all all-ones"), "ok\n");
    EXPECT_EQ(read_sku(cards_[0], text), EIO);
    EXPECT_EQ(state_of(cards_[0]), "running");
    ASSERT_EQ(tell("clear"), "ok\n");
    ASSERT_TRUE(unbind_driver(cards_[0]));
    ASSERT_TRUE(bind_driver(cards_[0]));
    EXPECT_EQ(read_sku(cards_[0], text), 0);
    EXPECT_EQ(text.find("card.name\tOrrery 1\t"), 0u) << text;
    // It is not read of the card again.
    ASSERT_EQ(tell("add register offset=" + std::to_string(ORR_R_SKU) + " count=all all-ones"), "ok\n");
    std::string again;
    EXPECT_EQ(read_sku(cards_[0], again), 0);
    EXPECT_EQ(again, text);
    ASSERT_EQ(tell("clear"), "ok\n");
}

// --- the driver comes to the card ---

constexpr const char* kAllOnes = "reads as all-ones";
constexpr const char* kNoReset = "the card does not reset";

class LyingAtStart : public LyingRegisters {
  protected:
    void SetUp() override {
        LyingRegisters::SetUp();
        ASSERT_TRUE(unbind_driver(cards_[0]));
    }
    // The driver does not take the card, and says why.
    void expect_refused(const std::vector<Lie>& lies, const std::string& message) {
        const std::string mark = "registers_test: it lies at " + std::to_string(lies[0].offset) + "\n";
        ASSERT_NO_FATAL_FAILURE(begin(lies));
        ASSERT_TRUE(write_file("/dev/kmsg", mark));
        EXPECT_FALSE(bind_driver(cards_[0])) << mark;
        EXPECT_LT(node_of(cards_[0]), 0) << mark;
        const std::string log = log_since(mark);
        EXPECT_NE(log.find(message), std::string::npos) << log;
        ASSERT_NO_FATAL_FAILURE(end(lies));
    }
    void expect_back() {
        EXPECT_EQ(work(cards_[1]), 0);
        ASSERT_TRUE(bind_driver(cards_[0]));
        EXPECT_EQ(work(cards_[0]), 0);
    }
};

TEST_F(LyingAtStart, WhatItIs) {
    expect_refused({{ORR_R_HW_VERSION}}, "hardware version 65535");
    for (const int offset : {ORR_R_ID, ORR_R_UID, ORR_R_VRAM_SIZE, ORR_R_COPY_ENGINES, ORR_R_VECTOR_PORTS,
                             ORR_R_VECTOR_CORES, ORR_R_LINK_PORTS, ORR_R_DOORBELL_PAGES, ORR_R_COUNTERS,
                             ORR_R_CORE_HZ, ORR_R_VECTOR_HZ, ORR_R_SAVE_BYTES, ORR_R_SKU_NAME})
        expect_refused({{offset}}, kAllOnes);
    expect_refused({{ORR_R_NODE}}, "for its node");
    expect_back();
}

TEST_F(LyingAtStart, WhetherItWasReset) {
    expect_refused({{ORR_R_RESET_COUNT}}, kNoReset);
    expect_back();
}

// It was reset, and only does not say so once.
TEST_F(LyingAtStart, AtTheBeginOfItsReset) {
    expect_refused({{ORR_R_RESET_COUNT, 1, 1}}, kNoReset);
    expect_back();
}

TEST_F(LyingAtStart, AtTheEndOfItsReset) {
    expect_refused({{ORR_R_RESET_COUNT, 2, 1}}, kNoReset);
    expect_back();
}

TEST_F(LyingAtStart, WhileItBoots) {
    expect_refused({{ORR_R_STATE, 1, 1}}, kAllOnes);
    expect_back();
}

// --- it says that a debugger holds it ---

// A parameter of the module, while a test runs.
class Parameter {
  public:
    Parameter(const std::string& name, const std::string& value)
        : path_("/sys/module/orrery/parameters/" + name), was_(read_file(path_)) {
        EXPECT_TRUE(write_file(path_, value)) << path_;
    }
    ~Parameter() { write_file(path_, was_); }
    Parameter(const Parameter&) = delete;
    Parameter& operator=(const Parameter&) = delete;

  private:
    std::string path_, was_;
};

class LyingHeld : public LyingRegisters {
  protected:
    static constexpr std::size_t kLies = 2;
    // Its firmware hears of no command any more, so the heartbeat stands as that of a held card does.
    void hold() {
        ASSERT_TRUE(write_file("/dev/kmsg", mark_));
        ASSERT_EQ(tell("add register offset=" + std::to_string(ORR_R_HELD) +
                       " count=all corrupt; mailbox count=all drop"),
                  "ok\n");
    }
    bool log_says(const std::string& text) const { return log_since(mark_).find(text) != std::string::npos; }
    // A process that has a queue, and is killed when the card is held: the end of its queue waits for the
    // card.
    void hold_and_kill() {
        int ready[2];
        ASSERT_EQ(::pipe(ready), 0);
        child_ = ::fork();
        if (child_ == 0) {
            const File file = open_card(static_cast<unsigned>(node_of(cards_[0])));
            std::uint32_t vm = 0;
            if (!file || create_vm(file.get(), vm) != 0) ::_exit(1);
            const Queue queue(file.get(), vm, kRingVa);
            if (queue.error() != 0 || ::write(ready[1], "", 1) != 1) ::_exit(1);
            for (;;)
                ::pause();
        }
        ::close(ready[1]);
        char byte = 0;
        EXPECT_EQ(::read(ready[0], &byte, 1), 1);
        ::close(ready[0]);
        ASSERT_NO_FATAL_FAILURE(hold());
        ASSERT_EQ(::kill(child_, SIGKILL), 0);
    }
    void expect_back() {
        EXPECT_EQ(work(cards_[1]), 0);
        ASSERT_NO_FATAL_FAILURE(end(kLies));
        ASSERT_TRUE(bind_driver(cards_[0]));
        EXPECT_EQ(work(cards_[0]), 0);
    }

    const std::string mark_ = std::string("registers_test: ") +
                              ::testing::UnitTest::GetInstance()->current_test_info()->name() + "\n";
    pid_t child_ = -1;
};

// Nobody could end what waits there.
TEST_F(LyingHeld, AtItsStartForAsLongAsABoot) {
    ASSERT_TRUE(unbind_driver(cards_[0]));
    ASSERT_NO_FATAL_FAILURE(hold());
    {
        const Parameter boot("boot_timeout_ms", "2000");
        EXPECT_FALSE(bind_driver(cards_[0]));
    }
    EXPECT_TRUE(log_says("held it at its start for longer than boot_timeout_ms")) << log_since(mark_);
    expect_back();
}

TEST_F(LyingHeld, UntilTheDriverHasWaitedForLongEnough) {
    const Parameter held("held_timeout_ms", "1000");
    ASSERT_NO_FATAL_FAILURE(hold_and_kill());
    EXPECT_EQ(::waitpid(child_, nullptr, 0), child_);
    EXPECT_EQ(state_of(cards_[0]), "lost: a debugger has held it for longer than held_timeout_ms");
    ASSERT_TRUE(unbind_driver(cards_[0]));
    expect_back();
}

TEST_F(LyingHeld, UntilTheDriverIsUnbound) {
    ASSERT_NO_FATAL_FAILURE(hold_and_kill());
    while (!log_says("a debugger holds") && state_of(cards_[0]) == "running")
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(state_of(cards_[0]), "running");
    ASSERT_TRUE(unbind_driver(cards_[0]));
    EXPECT_EQ(::waitpid(child_, nullptr, 0), child_);
    expect_back();
}

}  // namespace
}  // namespace orrery::kmod_test
