// Whole cards that keep step, on threads or in processes of their own.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/card/card_thread.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kLink = ORR_R_LINK(0);
constexpr std::uint32_t kAsid = 2;
constexpr std::uint64_t kPeerVa = 0x20000;
constexpr std::uint64_t kGranted = 0x100000;  // in the peer's VRAM

// A limit for hangs, not for speed.
template <class Condition>
bool comes_true(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

void append(std::vector<script_op>& all, const std::vector<script_op>& more) {
    all.insert(all.end(), more.begin(), more.end());
}

// A card at work on its thread; no host of it drives it.
class Running {
  public:
    Running(std::uint64_t uid, const std::vector<std::string>& links, const std::filesystem::path& lockstep,
            const std::vector<std::pair<std::uint32_t, unsigned>>& routes)
        : peer_(routes.front().first), rig_(config(uid, links, lockstep)), thread_(rig_.card()) {
        for (const auto& [node, port] : routes)
            rig_.join(static_cast<std::uint32_t>(uid), port, node);
    }
    CardRig& rig() { return rig_; }

    bool up(unsigned port = 0) { return rig_.read32(ORR_R_LINK(port)) == ORR_LINK_UP; }
    bool forward(unsigned port) {
        const std::uint64_t control = ORR_R_LINK(port) + ORR_R_LINK_CONTROL;
        rig_.write32(control, ORR_LINK_FORWARD);
        return comes_true([this, control] { return rig_.read32(control) == ORR_LINK_FORWARD; });
    }
    // granted(): it stands.
    void grant() { rig_.grant(0, 3, kGranted, 0x1000, peer_); }
    bool granted() {
        return comes_true([this] { return rig_.read32(kLink + ORR_R_LINK_GRANT_DONE) == 1; });
    }
    bool boot() {
        rig_.start_boot(make_image(script_elf()));
        return comes_true([this] { return rig_.read32(ORR_R_STATE) == ORR_STATE_RUNNING; });
    }
    // Its first script, with a page of the peer's memory.
    void start(const std::vector<script_op>& script) {
        rig_.map_page(kAsid, kPeerVa, kGranted, kRw | of_node(peer_));
        auto all = rig_.set_root(kAsid);
        append(all, script);
        count_ = all.size();
        rig_.start(std::move(all));
    }
    bool done() { return std::atomic_ref(rig_.word(CardRig::kScript)).load(std::memory_order_acquire) == 1; }
    // Of the operation so far from the script's end.
    std::uint64_t result(std::size_t from_end) { return rig_.results(count_)[count_ - 1 - from_end].result; }
    orr_semaphore semaphore() {
        orr_semaphore read{};
        std::memcpy(&read, rig_.card().vram().at(kGranted, sizeof read), sizeof read);
        return read;
    }

  private:
    static CardConfig config(std::uint64_t uid, const std::vector<std::string>& links,
                             const std::filesystem::path& lockstep) {
        CardConfig made = CardRig::config();
        made.uid = uid;
        for (const std::string& link : links)
            made.links.push_back(*LinkConfig::parse(link));
        made.lockstep = lockstep;
        return made;
    }
    std::uint32_t peer_;
    CardRig rig_;
    std::size_t count_ = 0;
    CardThread thread_;
};

class CardsInStep : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/orrery-in-step-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::unique_ptr<Running> make(unsigned number) {
        const std::string link = (number == 0 ? "0:listen:" : "0:connect:") + (folder_ / "link").string();
        return std::make_unique<Running>(number + 1, std::vector{link}, folder_ / "sync",
                                         std::vector{std::pair(2 - number, 0u)});
    }
    // Of a chain of three, whose ends are each other's peers.
    std::unique_ptr<Running> make_of_chain(unsigned number) {
        const auto link = [this](const char* role, unsigned n) {
            return role + (folder_ / ("link" + std::to_string(n))).string();
        };
        using Routes = std::vector<std::pair<std::uint32_t, unsigned>>;
        const std::vector<std::string> links[] = {
            {link("0:listen:", 0)}, {link("0:connect:", 0), link("1:listen:", 1)}, {link("0:connect:", 1)}};
        const Routes routes[] = {{{3, 0}, {2, 0}}, {{1, 0}, {3, 1}}, {{1, 0}, {2, 0}}};
        return std::make_unique<Running>(number + 1, links[number], folder_ / "sync", routes[number]);
    }
    // Signals of one card to the other, at odd times.
    static std::vector<script_op> signals(unsigned count) {
        std::vector<script_op> script{CardRig::read(SOC_SYSTEM_TIME)};
        for (unsigned i = 1; i <= count; ++i) {
            append(script, CardRig::signal(kAsid, kPeerVa, i));
            script.push_back({OP_SLEEP, 0, 100 * kPsPerNs + i * 37 % 900 * kPsPerNs, 0});
        }
        return script;
    }

    std::filesystem::path folder_;
};

TEST_F(CardsInStep, NothingIsLateThoughBothSend) {
    constexpr unsigned kSignals = 200;
    const auto a = make(0), b = make(1);
    ASSERT_TRUE(comes_true([&] { return a->up() && b->up(); }));
    for (Running* each : {a.get(), b.get()}) {
        each->grant();
        ASSERT_TRUE(each->granted());
        ASSERT_TRUE(each->boot());
        EXPECT_NE(each->rig().read32(ORR_R_PLATFORM) & ORR_PLATFORM_IN_STEP, 0u);
    }
    a->start(signals(kSignals));
    b->start(signals(kSignals));
    ASSERT_TRUE(comes_true([&] { return a->done() && b->done(); }));
    ASSERT_TRUE(
        comes_true([&] { return a->semaphore().value == kSignals && b->semaphore().value == kSignals; }));
    for (Running* each : {a.get(), b.get()})
        EXPECT_EQ(each->rig().counter(ORR_CTR_LINK_STRAGGLERS), 0u);
}

// What a signal takes is the same in every play, whatever the other card has done before.
TEST_F(CardsInStep, APlayTakesTheSameTimeEachTime) {
    constexpr unsigned kSignals = 50;
    std::uint64_t first = 0;
    for (int play = 0; play < 3; ++play) {
        const auto a = make(0), b = make(1);
        ASSERT_TRUE(comes_true([&] { return a->up() && b->up(); }));
        b->grant();
        ASSERT_TRUE(b->granted());
        ASSERT_TRUE(a->boot());
        if (play == 2) {
            ASSERT_TRUE(b->boot());
        }
        a->start(signals(kSignals));
        ASSERT_TRUE(comes_true([&] { return a->done() && b->semaphore().value == kSignals; }));
        const std::uint64_t took = b->semaphore().time_ps - a->result(5 * kSignals);
        if (play == 0) first = took;
        EXPECT_EQ(took, first) << play;
        EXPECT_GT(took, kSignals * 100 * kPsPerNs);
    }
}

// The ends of a chain send to each other through a card that does so, too, or nothing at all.
TEST_F(CardsInStep, ThroughACardInTheMiddleToo) {
    constexpr unsigned kSignals = 50;
    std::uint64_t first[2] = {};
    for (int play = 0; play < 4; ++play) {
        const auto a = make_of_chain(0), middle = make_of_chain(1), b = make_of_chain(2);
        ASSERT_TRUE(comes_true([&] { return a->up() && middle->up(0) && middle->up(1) && b->up(); }));
        ASSERT_TRUE(a->forward(0) && middle->forward(0) && middle->forward(1) && b->forward(0));
        for (Running* each : {a.get(), b.get()}) {
            each->grant();
            ASSERT_TRUE(each->granted());
            ASSERT_TRUE(each->boot());
        }
        if (play >= 2) {
            ASSERT_TRUE(middle->boot());
        }
        a->start(signals(kSignals));
        ASSERT_TRUE(comes_true([&] { return a->done() && b->semaphore().value == kSignals; }));
        b->start(signals(kSignals));
        ASSERT_TRUE(comes_true([&] { return b->done() && a->semaphore().value == kSignals; }));
        const std::uint64_t took[2] = {b->semaphore().time_ps - a->result(5 * kSignals),
                                       a->semaphore().time_ps - b->result(5 * kSignals)};
        for (unsigned way = 0; way < 2; ++way) {
            if (play == 0) first[way] = took[way];
            EXPECT_EQ(took[way], first[way]) << play << " " << way;
        }
        EXPECT_EQ(middle->rig().counter(ORR_CTR_LINK_FORWARDED), 2 * kSignals);
        for (Running* each : {a.get(), middle.get(), b.get()})
            EXPECT_EQ(each->rig().counter(ORR_CTR_LINK_STRAGGLERS), 0u);
    }
}

// A process that is killed with messages on their way to it, while its neighbour's host waits for an answer.
TEST_F(CardsInStep, WhoIsKilledIsLeftBehind) {
    constexpr unsigned kSignals = 100;  // longer than it lives
    int granted[2];
    ASSERT_EQ(::pipe(granted), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const auto b = make(1);
        if (!comes_true([&] { return b->up(); })) ::_exit(1);
        b->grant();
        if (!b->granted()) ::_exit(1);
        if (::write(granted[1], "x", 1) != 1) ::_exit(1);
        for (;;)
            ::pause();
    }
    ::close(granted[1]);
    {
        const auto a = make(0);
        char byte = 0;
        ASSERT_EQ(::read(granted[0], &byte, 1), 1) << "the other process has ended";
        EXPECT_TRUE(comes_true([&] { return a->up(); }));
        EXPECT_TRUE(a->boot());
        // So that it does not get far without its neighbour.
        EXPECT_EQ(::kill(child, SIGSTOP), 0);
        int stopped = 0;
        EXPECT_EQ(::waitpid(child, &stopped, WUNTRACED), child);
        a->start(signals(kSignals));
        EXPECT_TRUE(comes_true([&] { return a->rig().counter(ORR_CTR_LINK_TX_MESSAGES) > 0; }));
        EXPECT_FALSE(a->done());
        EXPECT_EQ(::kill(child, SIGKILL), 0);
        a->grant();
        EXPECT_TRUE(a->granted());
        EXPECT_TRUE(comes_true([&] { return a->done(); }));
        EXPECT_EQ(a->result(1), ORR_FAULT_PEER_DOWN) << "the last signal";
        EXPECT_EQ(a->rig().read32(kLink), ORR_LINK_DOWN);
    }
    ::close(granted[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
}

}  // namespace
}  // namespace orrery::emu
