// Two cards' memory systems in two processes, joined by a link: as they will run, without the rest of the
// card.
#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>

#include "emulator/link/link_port.h"
#include "tests/unit/engines/rig.h"
#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kLocal = 0x10'0000'0000, kRemote = 0x20'0000'0000;
constexpr std::uint64_t kBytes = 16 << 20, kInbox = 32 << 20, kSemaphore = kInbox + kBytes;
constexpr unsigned kLinkPort = 3;

// VRAM: the first 16 MiB are its own data, then at 32 MiB come the peer's data and a semaphore page.
struct Node {
    Node(std::uint64_t uid, bool listen, const std::string& path, std::uint32_t silence_ms = 10'000)
        : peer(uid == 1 ? 2 : 1),
          rig(128 << 20),
          errors(rig.counters, nullptr),
          engine(0, CopyRates{}, rig.context) {
        LinkConfig config;
        config.uid = uid;
        config.listen = listen;
        config.path = path;
        config.port = kLinkPort;
        config.peer_silence_ms = silence_ms;
        LinkHooks hooks;
        hooks.poke = [this](std::uint64_t offset) {
            if (poke) poke(offset);
        };
        hooks.changed = [](std::uint32_t, std::uint32_t) {};
        port = std::move(*LinkPort::create(config, rig.events, rig.vram, rig.counters, errors, hooks));
        rig.peers.attach(kLinkPort, port.get());
        port->set_node(static_cast<std::uint32_t>(uid));
        rig.peers.set_route(peer, ORR_ROUTE_VALID | kLinkPort);
        rig.map(kLocal, kBytes, ORR_TARGET_VRAM, 0);
        rig.map(kRemote, kBytes, ORR_TARGET_PEER, kInbox, ORR_PTE_WRITE, peer);
        port->set_grant(0, kInbox, kBytes, peer);
        port->set_grant(1, kSemaphore, 4096, peer);
        for (std::uint64_t i = 0; i < kBytes / 8; ++i)
            local()[i] = i * uid;
    }
    std::uint64_t* local() { return reinterpret_cast<std::uint64_t*>(rig.vram.data()); }
    std::uint64_t* inbox() { return reinterpret_cast<std::uint64_t*>(rig.vram.data() + kInbox); }
    const std::uint64_t* semaphore() {
        return reinterpret_cast<std::uint64_t*>(rig.vram.data() + kSemaphore);
    }
    bool start_copy() { return engine.start(Rig::words_of(Rig::copy(kLocal, kRemote, kBytes)), 1); }
    // The card loop in short: look at the link, run an event, sleep when there is nothing at all.
    bool loop(const std::function<bool()>& until) {
        for (std::uint64_t round = 0; round < 100'000'000; ++round) {
            if (until()) return true;
            bool did = port->poll();
            did |= rig.events.run_next(kNever - 1);
            if (did) continue;
            if (!port->prepare_sleep()) continue;
            pollfd fd{port->poll_fd(), POLLIN, 0};
            ::poll(&fd, 1, 20);
            port->after_sleep();
        }
        return false;
    }
    bool wait_for(std::uint32_t state) {
        return loop([&] { return port->state() == state; });
    }

    std::uint32_t peer;
    Rig rig;
    Errors errors;
    CopyEngine engine;
    std::unique_ptr<LinkPort> port;
    std::function<void(std::uint64_t)> poke;
};

// A child process that ends with its parent; exit status 0 if `body` is true.
class Child {
  public:
    explicit Child(const std::function<bool()>& body) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::_exit(body() ? 0 : 1);
    }
    ~Child() {
        if (pid_ > 0) {
            kill(SIGKILL);
            join();
        }
    }
    void kill(int signal) const { ::kill(pid_, signal); }
    int join() {
        int status = -1;
        ::waitpid(pid_, &status, 0);
        pid_ = -1;
        return status;
    }

  private:
    pid_t pid_;
};

TEST(TwoProcesses, CopyToEachOtherAndSignal) {
    const TempFolder folder;
    const auto side = [&](std::uint64_t uid, bool listen) {
        Node node(uid, listen, folder.file("link"));
        const std::uint64_t other = uid ^ 3;
        if (!node.wait_for(ORR_LINK_UP) || node.port->peer_uid() != other || !node.start_copy()) return false;
        if (!node.loop([&] { return !node.rig.done.empty(); })) return false;
        if (node.rig.done[0].status != ORR_DONE_OK) return false;
        // Behind the copy: who sees this has all of it.
        if (node.port->signal(node.peer, kSemaphore, 1) != ORR_FAULT_NONE) return false;
        if (!node.loop([&] { return *node.semaphore() >= 1; })) return false;
        for (std::uint64_t i = 0; i < kBytes / 8; ++i) {
            if (node.inbox()[i] != i * other) return false;
        }
        // Nobody leaves before the other has all.
        if (node.port->signal(node.peer, kSemaphore, 2) != ORR_FAULT_NONE) return false;
        return node.loop([&] { return *node.semaphore() == 2; });
    };
    Child child([&] { return side(2, false); });
    EXPECT_TRUE(side(1, true));
    EXPECT_EQ(child.join(), 0);
}

TEST(TwoProcesses, APingPongTakesTheSameModelTimeEveryTime) {
    ModelTime times[2];
    for (ModelTime& end : times) {
        const TempFolder folder;
        constexpr std::uint64_t kRounds = 2000;
        const auto side = [&](std::uint64_t uid, bool listen, ModelTime* last) {
            Node node(uid, listen, folder.file("link"));
            std::uint64_t seen = 0;
            node.poke = [&](std::uint64_t) { seen = *node.semaphore(); };
            if (!node.wait_for(ORR_LINK_UP)) return false;
            for (std::uint64_t round = 1; round <= kRounds; ++round) {
                if (listen && node.port->signal(node.peer, kSemaphore, round) != ORR_FAULT_NONE) return false;
                if (!node.loop([&] { return seen == round; })) return false;
                if (!listen && node.port->signal(node.peer, kSemaphore, round) != ORR_FAULT_NONE)
                    return false;
            }
            if (last != nullptr) *last = node.rig.events.now();
            // The child stays until its last answer has been taken.
            return listen || node.wait_for(ORR_LINK_DOWN);
        };
        Child child([&] { return side(2, false, nullptr); });
        EXPECT_TRUE(side(1, true, &end));
        EXPECT_EQ(child.join(), 0);
        // Serialisation of one message and the latency, each way.
        EXPECT_EQ(end, kRounds * 2 * (64 * 20 + 500'000));
    }
    EXPECT_EQ(times[0], times[1]);
}

TEST(TwoProcesses, APeerThatIsKilledIsNoticedAndMayComeBack) {
    const TempFolder folder;
    Node node(1, true, folder.file("link"));
    for (int round = 0; round < 3; ++round) {
        Child child([&] {
            Node peer(2, false, folder.file("link"));
            return peer.loop([&] {
                // Copies without end, in both senses.
                if (peer.port->state() == ORR_LINK_UP && !peer.engine.busy()) peer.start_copy();
                return false;
            });
        });
        ASSERT_TRUE(node.wait_for(ORR_LINK_UP));
        const std::uint64_t before = node.rig.counters.get(ORR_CTR_LINK_RX_BYTES);
        node.rig.done.clear();
        ASSERT_TRUE(node.start_copy());
        ASSERT_TRUE(
            node.loop([&] { return node.rig.counters.get(ORR_CTR_LINK_RX_BYTES) > before + (1 << 20); }));
        child.kill(SIGKILL);
        // It copies on until the death shows: the running copy, or the next one, ends with the fault.
        ASSERT_TRUE(node.loop([&] {
            if (!node.engine.busy()) node.start_copy();
            return !node.rig.done.empty() && node.rig.done.back().status == ORR_DONE_FAULT;
        }));
        EXPECT_EQ(node.rig.done.back().fault, ORR_FAULT_PEER_DOWN);
        EXPECT_EQ(node.port->state(), ORR_LINK_DOWN);
        node.engine.reset();
        child.join();
    }
}

TEST(TwoProcesses, APeerThatIsStoppedLosesTheLink) {
    const TempFolder folder;
    Node node(1, true, folder.file("link"), 300);
    Child child([&] {
        Node peer(2, false, folder.file("link"));
        return peer.loop([] { return false; });
    });
    ASSERT_TRUE(node.wait_for(ORR_LINK_UP));
    child.kill(SIGSTOP);
    ASSERT_TRUE(node.start_copy());
    ASSERT_TRUE(node.loop([&] { return !node.rig.done.empty(); }));
    EXPECT_EQ(node.rig.done[0].fault, ORR_FAULT_PEER_DOWN);
    EXPECT_NE(node.port->down_reason().find("did not look"), std::string::npos) << node.port->down_reason();
}

}  // namespace
}  // namespace orrery::emu::test
