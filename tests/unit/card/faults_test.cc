// A card with a fault plan: each action at each point that knows it, as the firmware, the host or a peer sees
// it.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include "emulator/api/replayer.h"
#include "emulator/card/card_thread.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kEcho = kRamBase + 0x10000;
constexpr std::uint64_t kData = kRamBase + 0x20000;
constexpr std::uint32_t kAsid = 3;

class FaultyCard : public testing::Test {
  protected:
    static CardConfig config(FaultPlan plan = {}) {
        CardConfig made = CardRig::config();
        made.faults = std::move(plan);
        return made;
    }
    FaultyCard() : rig_(with_death()) {
        rig_.boot_script();
        rig_.map_page(kAsid, 0x1000, 0x1000, kRw);
        rig_.map_page(kAsid, 0x8000, kData, kRw | std::uint64_t{ORR_TARGET_HOST} << ORR_PTE_TARGET_SHIFT);
        rig_.run(rig_.set_root(kAsid));
        rig_.raised.clear();
    }
    CardConfig with_death() {
        CardConfig made = config();
        made.die = [this] { ++deaths_; };
        return made;
    }
    // From here on.
    void plan(std::string_view rules) {
        const auto added = rig_.card().faults()->add(rules);
        ASSERT_TRUE(added) << added.error();
    }
    // Fills a page on engine port 0 and gives {tag, status, VA or so, end}; no tag: it did not end.
    std::vector<std::uint64_t> fill(std::uint64_t va, std::uint32_t tag = 1) {
        orr_desc_copy desc{};
        desc.op = ORR_DESC_FILL;
        desc.pattern_bytes = 8;
        desc.pattern = 0x1122334455667788;
        desc.asid = kAsid;
        desc.dst = va;
        desc.row_bytes = 4096;
        desc.rows = 1;
        std::vector<script_op> script = CardRig::start_job(0, desc, tag);
        script.push_back({OP_SLEEP, 0, 20'000'000, 0});
        return pop(std::move(script));
    }
    std::vector<std::uint64_t> pop(std::vector<script_op> script = {}) {
        for (const unsigned reg :
             {0u + SOC_DONE_POP, 0u + SOC_DONE_STATUS, 0u + SOC_DONE_FAULT, 0u + SOC_DONE_END_PS})
            script.push_back(CardRig::read(reg));
        const auto done = rig_.run(std::move(script));
        std::vector<std::uint64_t> values;
        for (std::size_t i = done.size() - 4; i < done.size(); ++i)
            values.push_back(done[i].result);
        return values;
    }
    void serve() {
        for (unsigned i = 1; i <= 2; ++i)
            rig_.run({CardRig::write(SOC_DB_PAGE, i), CardRig::write(SOC_DB_SLOT, 0),
                      CardRig::write(SOC_DB_TAG, i), CardRig::write(SOC_DB_CMD, SOC_DB_BIND)});
        rig_.start({{OP_SERVE, 0, kEcho, 0}});
        rig_.settle();
    }
    std::uint64_t heard(unsigned tag) { return rig_.word(kEcho + 16 * tag); }

    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    unsigned deaths_ = 0;
    CardRig rig_;
};

TEST_F(FaultyCard, DoorbellsAreLostLateOrTwice) {
    serve();
    plan("doorbell tag=1 first=2 drop");
    rig_.ring(1, 0, 5);
    rig_.settle();
    EXPECT_EQ(heard(1), 5u);
    rig_.ring(1, 0, 6);
    rig_.ring(2, 0, 7);
    rig_.settle();
    EXPECT_EQ(heard(1), 5u) << "dropped";
    EXPECT_EQ(heard(2), 7u) << "another tag";
    rig_.ring(1, 0, 8);
    rig_.settle();
    EXPECT_EQ(heard(1), 8u) << "only one was";
    plan("doorbell tag=2 delay=5ms");
    const std::uint64_t before = rig_.read64(ORR_R_MODEL_TIME);
    rig_.ring(2, 0, 9);
    rig_.settle();
    EXPECT_EQ(heard(2), 9u);
    EXPECT_GE(rig_.read64(ORR_R_MODEL_TIME), before + 5'000'000'000u);
    plan("doorbell tag=2 duplicate");
    rig_.ring(2, 0, 10);
    rig_.steps(3);
    rig_.settle();
    EXPECT_EQ(heard(2), 10u);
}

TEST_F(FaultyCard, InterruptMessagesAreLostLateOrTwice) {
    plan("msi vector=0 drop");
    rig_.run({{OP_CYCLES, 0, 0, 0}});
    EXPECT_TRUE(rig_.raised.empty());
    EXPECT_NE(rig_.read32(ORR_R_IRQ_STATUS) & 1u, 0u) << "the register tells what the message did not";
    rig_.run({{OP_CYCLES, 0, 0, 0}});
    EXPECT_EQ(rig_.raised.size(), 1u);
    plan("msi duplicate");
    rig_.run({{OP_CYCLES, 0, 0, 0}});
    EXPECT_EQ(rig_.raised.size(), 3u);
    plan("msi delay=7ms");
    const std::uint64_t before = rig_.read64(ORR_R_MODEL_TIME);
    rig_.run({{OP_CYCLES, 0, 0, 0}});
    rig_.settle();
    EXPECT_EQ(rig_.raised.size(), 4u);
    EXPECT_GE(rig_.read64(ORR_R_MODEL_TIME), before + 7'000'000'000u);
}

TEST_F(FaultyCard, DispatchesAreLostFailOrGoWrong) {
    EXPECT_EQ(fill(0x1000)[1], ORR_DONE_OK);
    plan("dispatch port=0 drop");
    EXPECT_EQ(fill(0x1000)[0], kNone);
    plan("dispatch port=0 fail");
    EXPECT_EQ(fill(0x1000, 9)[0], 9u);
    plan("dispatch port=1 fail");
    EXPECT_EQ(fill(0x1000)[1], ORR_DONE_OK) << "another port";
    rig_.card().faults()->clear();
    plan("dispatch fail");
    EXPECT_EQ(fill(0x1000)[1], ORR_DONE_BAD_DESC);
    plan("dispatch count=20 corrupt");
    unsigned wrong = 0;
    for (unsigned i = 0; i < 20; ++i)
        wrong += fill(0x1000)[1] != ORR_DONE_OK ? 1 : 0;
    EXPECT_GT(wrong, 0u);
}

TEST_F(FaultyCard, CompletionsAreLostLateTwiceOrFail) {
    plan("done drop");
    EXPECT_EQ(fill(0x1000)[0], kNone);
    plan("done delay=50ms");
    EXPECT_EQ(fill(0x1000, 4)[0], kNone);
    EXPECT_EQ(pop({{OP_WAIT, 0, 1u << SOC_LINE_DONE, 0}})[0], 4u);
    plan("done duplicate");
    EXPECT_EQ(fill(0x1000, 5)[0], 5u);
    EXPECT_EQ(pop()[0], 5u);
    EXPECT_EQ(pop()[0], kNone);
    plan("done fail");
    const auto failed = fill(0x1000, 6);
    EXPECT_EQ(failed[0], 6u);
    EXPECT_EQ(failed[1], ORR_DONE_FAULT);
    EXPECT_EQ(failed[2], ORR_FAULT_PAGE_RANGE);
}

TEST_F(FaultyCard, WalksFail) {
    plan("walk asid=3 fail");
    const auto failed = fill(0x1000);
    EXPECT_EQ(failed[1], ORR_DONE_FAULT);
    EXPECT_EQ(failed[2], ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(fill(0x1000)[1], ORR_DONE_OK);
}

TEST_F(FaultyCard, DmaFailsVanishesOrReadsWrong) {
    // An engine's write into guest memory; some of the script's results go there before it.
    bool lost = false;
    for (unsigned i = 1; i < 15 && !lost; ++i) {
        std::memset(rig_.ram(kData), 0, 4096);
        rig_.card().faults()->clear();
        plan("dma-write first=" + std::to_string(i) + " drop");
        EXPECT_EQ(fill(0x8000)[1], ORR_DONE_OK) << "and nobody is told";
        lost = rig_.word(kData + 8) == 0;
    }
    EXPECT_TRUE(lost);
    rig_.card().faults()->clear();
    EXPECT_EQ(fill(0x8000)[1], ORR_DONE_OK);
    EXPECT_EQ(rig_.word(kData + 8), 0x1122334455667788u);
    // The core's own reads: the third, after the fetch of the script's operation.
    const auto load = [&] {
        const std::uint64_t at = ORR_HOST_WINDOW(kData);
        return rig_.run({{OP_READ, at, 0, 0}})[0].result;
    };
    rig_.word(kData) = 0x5555;
    EXPECT_EQ(load(), 0x5555u);
    rig_.word(kData) = 0x5a5a;
    // Every read of guest memory may be hit; that of the operand is one of them, and the script's words are
    // others.
    bool ones = false;
    for (unsigned i = 1; i < 12 && !ones; ++i) {
        rig_.card().faults()->clear();
        plan("dma-read first=" + std::to_string(i) + " all-ones");
        rig_.start({{OP_READ, ORR_HOST_WINDOW(kData), 0, 0}});
        rig_.settle();
        ones = rig_.results(1)[0].result == kNone;
        if (!ones) {  // it hit the script itself: the firmware may have gone astray
            rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
            rig_.settle();
            rig_.boot_script();
        }
    }
    EXPECT_TRUE(ones);
}

TEST_F(FaultyCard, RegistersReadAllOnesOrWrong) {
    plan("register offset=" + std::to_string(ORR_R_ID) + " first=2 count=2 all-ones");
    EXPECT_EQ(rig_.read32(ORR_R_ID), ORR_ID_MAGIC);
    EXPECT_EQ(rig_.read32(ORR_R_ID), 0xffffffffu);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RUNNING);
    EXPECT_EQ(rig_.read32(ORR_R_ID), 0xffffffffu);
    EXPECT_EQ(rig_.read32(ORR_R_ID), ORR_ID_MAGIC);
    plan("register corrupt");
    EXPECT_EQ(std::popcount(rig_.read32(ORR_R_ID) ^ ORR_ID_MAGIC), 1);
}

TEST_F(FaultyCard, TheMailboxIsSilent) {
    plan("mailbox drop");
    rig_.start({{OP_CYCLES, 0, 0, 0}});
    rig_.settle();
    EXPECT_EQ(rig_.results(1)[0].result, 0u) << "the firmware was not told";
    rig_.write32(ORR_R_MBOX_DOORBELL, 0);
    rig_.settle();
    EXPECT_NE(rig_.results(1)[0].result, 0u);
}

TEST_F(FaultyCard, HangsUntilItIsReset) {
    plan("msi hang");  // as the script says that it has ended
    rig_.start({{OP_CYCLES, 0, 0, 0}});
    rig_.settle();
    const std::uint64_t then = rig_.read64(ORR_R_MODEL_TIME);
    rig_.start({{OP_CYCLES, 0, 0, 0}});
    rig_.settle();
    EXPECT_EQ(rig_.read64(ORR_R_MODEL_TIME), then);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RUNNING) << "registers still answer";
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RESET);
    rig_.boot_script();
    EXPECT_GT(rig_.read64(ORR_R_MODEL_TIME), then);
}

TEST_F(FaultyCard, DiesWhereItIsTold) {
    plan("dispatch first=2 die");
    fill(0x1000);
    EXPECT_EQ(deaths_, 0u);
    fill(0x1000);
    EXPECT_EQ(deaths_, 1u);
}

// The same plan, the same arrivals: the same times, and a recording that says so and replays.
TEST(FaultPlans, AreTheSameOnEveryRunAndInTheRecording) {
    const std::string file = testing::TempDir() + "faults-" + std::to_string(::getpid()) + ".otrace";
    const std::string text = "seed 11\ndone count=all chance=0.3 delay=3us\nmsi count=all chance=0.2 drop\n";
    const auto history = [&](bool record) {
        CardConfig config = CardRig::config();
        config.faults = *FaultPlan::parse(text);
        if (record) config.record = file;
        CardRig rig(std::move(config));
        rig.boot_script();
        rig.map_page(kAsid, 0x1000, 0x1000, kRw);
        rig.run(rig.set_root(kAsid));
        std::vector<std::uint64_t> seen;
        for (unsigned i = 0; i < 30; ++i) {
            rig.run({CardRig::write(SOC_ENGINE(0) + SOC_ENGINE_START, i),
                     {OP_WAIT, 0, 1u << SOC_LINE_DONE, 0},
                     CardRig::read(SOC_DONE_POP),
                     CardRig::read(SOC_DONE_END_PS)});
            seen.push_back(rig.read64(ORR_R_MODEL_TIME));
            seen.push_back(rig.raised.size());
        }
        EXPECT_NE(rig.card().faults()->hits().find("struck="), std::string::npos);
        return seen;
    };
    const auto first = history(false);
    EXPECT_EQ(history(false), first);
    EXPECT_EQ(history(true), first);
    {
        auto replayer = Replayer::open(file);
        ASSERT_TRUE(replayer) << replayer.error();
        EXPECT_EQ((*replayer)->info().seed, 11u);
        EXPECT_EQ((*replayer)->info().plan_text, text);
        EXPECT_FALSE((*replayer)->divergence());
        EXPECT_GT((*replayer)->hashes_checked(), 0u);
    }
    std::filesystem::remove(file);
}

// The control socket, as a program uses it.
TEST(FaultControlSocket, OrdersAndCounts) {
    const std::string path = testing::TempDir() + "faults-" + std::to_string(::getpid()) + ".sock";
    CardConfig config = CardRig::config();
    config.control = path;
    CardRig rig(std::move(config));
    const CardThread thread(rig.card());
    const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    std::string input;
    // Up to the line that ends an answer.
    const auto ask = [&](const std::string& command) {
        EXPECT_EQ(::send(client.get(), command.data(), command.size(), 0),
                  static_cast<ssize_t>(command.size()));
        for (;;) {
            for (const std::string_view end : {"ok\n", "error: "}) {
                const std::size_t at = input.find(end);
                if (at == std::string::npos || input.find('\n', at) == std::string::npos) continue;
                return std::exchange(input, {});
            }
            std::array<char, 512> bytes;
            const ssize_t got = ::recv(client.get(), bytes.data(), bytes.size(), 0);
            if (got <= 0) return std::string("closed");
            input.append(bytes.data(), static_cast<std::size_t>(got));
        }
    };
    EXPECT_EQ(ask("hits\n"), "ok\n");
    EXPECT_NE(ask("add doorbell explode\n").find("error: fault plan, line 1: 'explode' is no action"),
              std::string::npos);
    EXPECT_EQ(ask("add register first=2 all-ones\n"), "ok\n");
    EXPECT_EQ(rig.read32(ORR_R_ID), ORR_ID_MAGIC);
    EXPECT_EQ(rig.read32(ORR_R_ID), 0xffffffffu);
    EXPECT_EQ(ask("hits\n"), "0 passed=2 struck=1 register first=2 all-ones\nok\n");
    EXPECT_EQ(ask("clear\n"), "ok\n");
    EXPECT_EQ(ask("what\n").substr(0, 7), "error: ");
    EXPECT_EQ(ask("unplug 3\n"), "error: there is no link at port 3\n");
    EXPECT_EQ(ask("unplug x\n"), "error: unplug 'x': the number of a link port is needed\n");
}

}  // namespace
}  // namespace orrery::emu
