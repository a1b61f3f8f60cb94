// Counters of the control core and of links against what the test itself can count.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "emulator/time/rate.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint32_t kAsid = 2;
constexpr std::uint64_t kLocalVa = 0x10000, kPeerVa = 0x20000, kGranted = 0x100000;
constexpr std::uint64_t kSnapshot = kRamBase + 0x200000;

// As a snapshot has it: some counters know only then.
std::uint64_t now_is(CardRig& rig, orr_counter number) {
    rig.write64(ORR_R_SNAPSHOT, kSnapshot | 1);
    EXPECT_EQ(rig.read32(ORR_R_SNAPSHOT_DONE), 1u);
    return rig.word(kSnapshot + 8 * number);
}

// One for the doorbell that starts a script, one for each time that the timer runs out, and one for the jobs
// that end before anybody looks.
TEST(CounterTruth, OfTheCoresInterrupts) {
    CardRig rig;
    rig.boot_script();
    rig.map_page(kAsid, 0x1000, 0x1000, kRw);
    rig.run(rig.set_root(kAsid));
    const auto interrupts = [&](const std::vector<script_op>& script) {
        const std::uint64_t before = now_is(rig, ORR_CTR_CORE_INTERRUPTS);
        rig.run(script);
        return now_is(rig, ORR_CTR_CORE_INTERRUPTS) - before;
    };
    EXPECT_EQ(interrupts({}), 1u);
    EXPECT_EQ(interrupts({CardRig::read(SOC_TIME), CardRig::read(SOC_TIME)}), 1u);
    for (const unsigned sleeps : {1u, 2u, 7u}) {
        EXPECT_EQ(interrupts(std::vector<script_op>(sleeps, {OP_SLEEP, 0, 5'000'000, 0})), 1 + sleeps);
    }
    orr_desc_copy fill{};
    fill.op = ORR_DESC_FILL;
    fill.pattern_bytes = 8;
    fill.asid = kAsid;
    fill.dst = 0x1000;
    fill.row_bytes = 64;
    fill.rows = 1;
    std::vector<script_op> jobs;
    for (unsigned n = 0; n < 3; ++n) {
        const auto job = CardRig::start_job(0, fill, n);
        jobs.insert(jobs.end(), job.begin(), job.end());
        jobs.push_back({OP_WAIT, 0, 1u << SOC_LINE_DONE, 0});
        jobs.push_back(CardRig::read(SOC_DONE_POP));
    }
    EXPECT_EQ(interrupts(jobs), 1u + 3u);
}

TEST(CounterTruth, OfTheCoresAtomics) {
    CardRig rig;
    rig.boot_script();
    std::uint64_t done = now_is(rig, ORR_CTR_CORE_ATOMICS);
    for (const unsigned number : {0u, 1u, 9u}) {
        rig.run(std::vector<script_op>(number, {OP_AMO, ORR_SRAM_BASE + 0x60000, 1, 0}));
        done += number;
        EXPECT_EQ(now_is(rig, ORR_CTR_CORE_ATOMICS), done);
    }
}

// By its own clock. What it does before and behind its looks at that is always the same.
TEST(CounterTruth, OfWhatTheCoreDoesForLinks) {
    CardRig rig;
    rig.boot_script();
    const auto beside_the_clock = [&](unsigned loads) {
        std::vector<script_op> script(loads, {OP_READ, ORR_VRAM_WINDOW, 0, 0});
        script.insert(script.begin(),
                      {CardRig::write(SOC_ACTIVITY(ORR_ACTIVITY_LINKS), ~0ull), CardRig::read(SOC_TIME)});
        script.insert(script.end(),
                      {CardRig::read(SOC_TIME), CardRig::write(SOC_ACTIVITY(ORR_ACTIVITY_OTHER), 0)});
        const std::uint64_t before = now_is(rig, ORR_CTR_CORE_LINKS_PS);
        const auto ran = rig.run(script);
        const std::uint64_t charged = now_is(rig, ORR_CTR_CORE_LINKS_PS) - before;
        const std::uint64_t took = ran[ran.size() - 2].result - ran[1].result;
        EXPECT_GT(charged, took);
        return charged - took;
    };
    const std::uint64_t always = beside_the_clock(0);
    EXPECT_EQ(beside_the_clock(1), always);
    EXPECT_EQ(beside_the_clock(20), always);
}

// Lines of 64 bytes, whatever of them it wants. Of a script's operation it loads three words of the host's
// memory, and answers with one.
TEST(CounterTruth, OfTheCoresMemory) {
    CardRig rig;
    rig.boot_script();
    struct Moved {
        std::uint64_t vram, read, written;
        bool operator==(const Moved&) const = default;
    };
    const auto moved = [&](const std::vector<script_op>& script) {
        const auto now = [&] {
            return Moved{now_is(rig, ORR_CTR_VRAM_CORE_BYTES), now_is(rig, ORR_CTR_PCIE_READ_BYTES),
                         now_is(rig, ORR_CTR_PCIE_WRITE_BYTES)};
        };
        const Moved before = now();
        rig.run(script);
        const Moved after = now();
        return Moved{after.vram - before.vram, after.read - before.read, after.written - before.written};
    };
    constexpr std::uint64_t kLine = 64, kHost = ORR_HOST_WINDOW(kRamBase + 0x3000);
    const Moved none = moved({});
    EXPECT_EQ(none.vram, 0u);
    std::vector<script_op> script;
    script.insert(script.end(), 5, {OP_READ, ORR_VRAM_WINDOW + 0x1000, 0, 0});
    script.insert(script.end(), 3, {OP_WRITE, ORR_VRAM_WINDOW + 0x2000, 7, 0});
    script.insert(script.end(), 2, {OP_READ8, kHost, 0, 0});
    script.insert(script.end(), 4, {OP_WRITE, kHost, 7, 0});
    EXPECT_EQ(moved(script), (Moved{(5 + 3) * kLine, none.read + (3 * script.size() + 2) * kLine,
                                    none.written + (script.size() + 4) * kLine}));
}

// What passes while nothing is to do is idle time, all of it; while one thing is at work, all but its length.
// How long that is comes from what it does, not from what counts it.
class IdleTruth : public testing::Test {
  protected:
    // How much passes while `work` is done, and for how much of that those of the counter are not idle.
    struct Did {
        ModelTime passed, at_work;
    };
    template <class Work>
    Did during(orr_counter idle, std::uint64_t units, Work work) {
        const ModelTime began = rig_.card().events().now();
        const std::uint64_t before = now_is(rig_, idle);
        work();
        const ModelTime passed = rig_.card().events().now() - began;
        return {passed, passed * units - (now_is(rig_, idle) - before)};
    }
    void pass(ModelTime ps) { rig_.card().events().advance_to(rig_.card().events().now() + ps); }
    const Sku& sku() { return rig_.card().sku(); }
    void boot() {
        rig_.boot_script();
        rig_.map_page(kAsid, kLocalVa, 0x40000, kRw | ORR_PTE_EXEC);
        rig_.run(rig_.set_root(kAsid));
    }
    template <class Descriptor>
    void run_job(unsigned port, const Descriptor& job) {
        std::vector<script_op> script = CardRig::start_job(port, job, 1);
        script.push_back({OP_WAIT, 0, 1u << SOC_LINE_DONE, 0});
        script.push_back(CardRig::read(SOC_DONE_POP));
        script.push_back(CardRig::read(SOC_DONE_STATUS));
        EXPECT_EQ(rig_.run(script).back().result, ORR_DONE_OK);
    }

    // Interrupts arrive at once, so that nothing comes behind a script's end.
    static CardConfig config() {
        CardConfig config = CardRig::config();
        config.sku.pcie_msi_ps = 0;
        return config;
    }
    CardRig rig_{config()};
};

TEST_F(IdleTruth, OfTimeWithNothingToDo) {
    const auto idle = [&] {
        return std::array{now_is(rig_, ORR_CTR_CORE_IDLE_PS), now_is(rig_, ORR_CTR_COPY_IDLE_PS),
                          now_is(rig_, ORR_CTR_VECTOR_IDLE_PS)};
    };
    const auto of_all = [&](ModelTime ps) {
        return std::array{ps, ps * sku().copy_engines, ps * sku().vector_cores};
    };
    ModelTime passed = 0;
    for (const ModelTime ps : {0u, 1u, 999u, 1'000'000u, 123'456'789u}) {
        pass(ps);
        passed += ps;
        EXPECT_EQ(idle(), of_all(passed)) << "since the card was made";
    }
    boot();
    auto expected = idle();
    constexpr ModelTime kMore = 5'000'001;
    pass(kMore);
    for (std::size_t n = 0; n < expected.size(); ++n)
        expected.at(n) += of_all(kMore).at(n);
    EXPECT_EQ(idle(), expected) << "its core waits for a doorbell";
}

// It waits until it hears of the doorbell. From there to where it waits again it does nothing but its script,
// but for what it sleeps.
TEST_F(IdleTruth, OfTheCore) {
    boot();
    const auto script = [&](const std::vector<script_op>& ops) {
        return during(ORR_CTR_CORE_IDLE_PS, 1, [&] { rig_.run(ops); });
    };
    for (const unsigned loads : {0u, 1u, 40u}) {
        const Did did = script(std::vector<script_op>(loads, {OP_READ, ORR_VRAM_WINDOW + 0x1000, 0, 0}));
        EXPECT_EQ(did.passed - did.at_work, sku().pcie_doorbell_ps) << loads;
        EXPECT_GT(did.at_work, loads * sku().vram_load_ps) << loads;
    }
    const Did shortly = script({{OP_SLEEP, 0, 2'000'000, 0}}), longer = script({{OP_SLEEP, 0, 9'000'000, 0}});
    EXPECT_EQ(longer.passed - shortly.passed, 7'000'000u);
    EXPECT_EQ(longer.at_work, shortly.at_work) << "sleeping is no work";
    EXPECT_LT(shortly.passed - shortly.at_work - sku().pcie_doorbell_ps, 2'000'000u)
        << "it looks at its clock before it sleeps";
    // One that never sleeps.
    rig_.start({{OP_SPIN, 0, 0, 0}});
    rig_.steps(3);
    const Did spun = during(ORR_CTR_CORE_IDLE_PS, 1, [&] { rig_.steps(10); });
    EXPECT_GT(spun.passed, 0u);
    EXPECT_EQ(spun.at_work, spun.passed);
}

TEST_F(IdleTruth, OfCopyEngines) {
    boot();
    orr_desc_copy fill{};
    fill.op = ORR_DESC_FILL;
    fill.pattern_bytes = 8;
    fill.asid = kAsid;
    fill.dst = kLocalVa;
    fill.rows = 1;
    fill.row_bytes = 8;
    run_job(0, fill);  // the translation of its page is at hand from here on
    for (const std::uint32_t bytes : {64u, 1000u, 4096u}) {
        fill.row_bytes = bytes;
        const Did did = during(ORR_CTR_COPY_IDLE_PS, sku().copy_engines, [&] { run_job(0, fill); });
        EXPECT_EQ(did.at_work, sku().copy_setup_ps + duration_ps(bytes, sku().copy_engine_bytes_per_s))
            << bytes;
    }
}

TEST_F(IdleTruth, OfVectorCores) {
    boot();
    constexpr unsigned kTimes = 500;
    // li t0, kTimes; 1: addi t0, t0, -1; bnez t0, 1b; ret
    constexpr std::array<std::uint32_t, 4> kCode{kTimes << 20 | 0x293, 0xfff28293, 0xfe029ee3, 0x8067};
    std::memcpy(rig_.card().vram().at(0x40000, sizeof kCode), kCode.data(), sizeof kCode);
    const std::uint64_t cycles = sku().vector_item_cycles + 1 + 2 * kTimes + 1;
    orr_desc_kernel kernel{};
    kernel.op = ORR_DESC_KERNEL;
    kernel.asid = kAsid;
    kernel.entry = kLocalVa;
    kernel.grid_y = kernel.grid_z = 1;
    kernel.block_x = kernel.block_y = kernel.block_z = 1;
    for (const std::uint32_t groups : {1u, 2u, 7u, 20u}) {
        kernel.grid_x = groups;
        const Did did =
            during(ORR_CTR_VECTOR_IDLE_PS, sku().vector_cores, [&] { run_job(sku().copy_engines, kernel); });
        EXPECT_EQ(did.at_work, groups * duration_ps(cycles, sku().vector_hz)) << groups;
    }
}

// Two cards whose link is slow: what is sent at once waits for what was sent before.
class LinkTruth : public testing::Test {
  protected:
    LinkTruth() : path_(fmt::format("/tmp/orrery-link-truth-{}", ::getpid())) {}
    ~LinkTruth() override { std::filesystem::remove(path_); }

    void bring_up(const std::string& plan) {
        a_ = make(1, "0:listen:" + path_, plan);
        b_ = make(2, "0:connect:" + path_, "");
        const auto up = [](CardRig& rig) { return rig.read32(ORR_R_LINK(0)) == ORR_LINK_UP; };
        for (int i = 0; i < 60'000 && !(up(*a_) && up(*b_)); ++i) {
            for (int n = 0; n < 100; ++n)
                step();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ASSERT_TRUE(up(*a_) && up(*b_));
        a_->join(1, 0, 2);
        b_->join(2, 0, 1);
        a_->boot_script();
        b_->boot_script();
        b_->grant(0, 0, kGranted, ORR_PAGE_SIZE, 1);
        step();
        a_->map_page(kAsid, kLocalVa, 0x40000, kRw);
        a_->map_page(kAsid, kPeerVa, kGranted, kRw | of_node(2));
        a_->run(a_->set_root(kAsid));
    }
    static std::unique_ptr<CardRig> make(std::uint64_t uid, const std::string& link,
                                         const std::string& plan) {
        CardConfig config = CardRig::config();
        config.uid = uid;
        config.sku.link_lanes = 1;
        config.sku.link_gbps = 1;
        config.links.push_back(*LinkConfig::parse(link));
        if (!plan.empty()) config.faults = *FaultPlan::parse(plan);
        return std::make_unique<CardRig>(std::move(config));
    }
    void step() {
        a_->card().step();
        b_->card().step();
    }
    // Signals the peer's semaphores 0 to count - 1, one behind the other, and gives for each the core's time
    // before it did, and then that of its arrival. Before the first a copy of so many bytes begins, which
    // takes copy_ps_.
    std::vector<std::pair<ModelTime, ModelTime>> signal(unsigned count, std::uint64_t value,
                                                        std::uint32_t bytes = 0) {
        orr_desc_copy copy{};
        copy.op = ORR_DESC_COPY;
        copy.asid = kAsid;
        copy.src = kLocalVa;
        copy.dst = kPeerVa + ORR_PAGE_SIZE / 2;
        copy.row_bytes = bytes;
        copy.rows = 1;
        std::vector<script_op> script;
        if (bytes != 0) script = CardRig::start_job(0, copy, 1);
        const std::size_t first = script.size();
        for (unsigned n = 0; n < count; ++n) {
            script.push_back(CardRig::read(SOC_TIME));
            const auto one = CardRig::signal(kAsid, kPeerVa + 16 * std::uint64_t{n}, value);
            script.insert(script.end(), one.begin(), one.end());
        }
        const std::size_t last = script.size();
        if (bytes != 0) {
            script.push_back({OP_WAIT, 0, 1u << SOC_LINE_DONE, 0});
            for (const int each : {SOC_DONE_POP, SOC_DONE_STATUS, SOC_DONE_START_PS, SOC_DONE_END_PS})
                script.push_back(CardRig::read(static_cast<std::uint64_t>(each)));
        }
        const auto ran = a_->run(script);
        if (bytes != 0) {
            EXPECT_EQ(ran[last + 2].result, ORR_DONE_OK);
            copy_ps_ = ran[last + 4].result - ran[last + 3].result;
        }
        for (int i = 0; i < 2000; ++i)
            step();
        b_->settle();
        std::vector<std::pair<ModelTime, ModelTime>> times;
        for (unsigned n = 0; n < count; ++n) {
            const std::size_t at = first + n * (last - first) / count;
            EXPECT_EQ(ran[at + 4].result, ORR_FAULT_NONE);
            orr_semaphore there{};
            std::memcpy(&there, b_->card().vram().at(kGranted + 16 * std::uint64_t{n}, sizeof there),
                        sizeof there);
            EXPECT_EQ(there.value, value);
            times.emplace_back(ran[at].result, there.time_ps);
        }
        return times;
    }

    std::string path_;
    std::unique_ptr<CardRig> a_, b_;
    ModelTime copy_ps_ = 0;
};

TEST_F(LinkTruth, OfHowLongMessagesWaitForOthers) {
    ASSERT_NO_FATAL_FAILURE(bring_up(""));
    // One alone: from the core's look at its clock to its arrival there is always as much.
    const auto alone = signal(1, 1);
    const std::uint64_t before = now_is(*a_, ORR_CTR_LINK_WAIT_PS);
    EXPECT_EQ(before, 0u);
    const ModelTime way = alone[0].second - alone[0].first;
    signal(0, 1, 2048);  // whose translations are at hand from here on
    for (const std::uint32_t bytes : {64u, 1024u, 2048u}) {
        std::uint64_t was = now_is(*a_, ORR_CTR_LINK_WAIT_PS);
        signal(0, 1, bytes);
        EXPECT_EQ(now_is(*a_, ORR_CTR_LINK_WAIT_PS), was) << "nobody else sends";
        const ModelTime copy_alone = copy_ps_;
        ModelTime signals = 0;
        for (const auto& [begun, arrived] : signal(8, 2 + bytes, bytes))
            signals += arrived - begun - way;
        // Parts of the copy wait for signals that came in between, too.
        was = now_is(*a_, ORR_CTR_LINK_WAIT_PS) - was;
        EXPECT_EQ(was, signals + (copy_ps_ - copy_alone)) << bytes;
        // Nobody waits for one that has gone long ago; several for one of 16 us.
        EXPECT_EQ(signals > 0, bytes >= 1024) << bytes;
    }
    EXPECT_EQ(now_is(*b_, ORR_CTR_LINK_WAIT_PS), 0u);
    for (CardRig* const each : {a_.get(), b_.get()}) {
        EXPECT_EQ(now_is(*each, ORR_CTR_LINK_RETRIES), 0u);
        EXPECT_EQ(now_is(*each, ORR_CTR_LINK_CREDIT_PS), 0u);
    }
}

// What a peer writes, signals and changes goes through the owner's memory in whole lines; what it reads is of
// the link, and what is denied is of nothing.
TEST_F(LinkTruth, OfTheOwnersMemory) {
    ASSERT_NO_FATAL_FAILURE(bring_up(""));
    b_->write32(ORR_R_LINK(0) + ORR_R_LINK_GRANT_RIGHTS, ORR_LINK_RIGHTS);
    b_->grant(0, 0, kGranted, ORR_PAGE_SIZE, 1);
    step();
    constexpr std::uint64_t kLine = 64;
    std::uint64_t all = 0;
    const auto expect = [&](std::uint64_t lines, const char* what) {
        for (int i = 0; i < 2000; ++i)
            step();
        b_->settle();
        all += lines * kLine;
        EXPECT_EQ(now_is(*b_, ORR_CTR_VRAM_LINK_BYTES), all) << what;
    };
    const auto copy = [&](std::uint64_t from, std::uint64_t to, std::uint32_t bytes) {
        orr_desc_copy copy{};
        copy.op = ORR_DESC_COPY;
        copy.asid = kAsid;
        copy.src = from;
        copy.dst = to;
        copy.row_bytes = bytes;
        copy.rows = 1;
        std::vector<script_op> script = CardRig::start_job(0, copy, 1);
        script.push_back({OP_WAIT, 0, 1u << SOC_LINE_DONE, 0});
        for (const int each : {SOC_DONE_POP, SOC_DONE_STATUS})
            script.push_back(CardRig::read(static_cast<std::uint64_t>(each)));
        const std::uint64_t before = a_->word(CardRig::kScript);
        a_->start(script);
        for (int i = 0; i < 200'000 && a_->word(CardRig::kScript) == before; ++i)
            step();
        EXPECT_EQ(a_->results(script.size()).back().result, ORR_DONE_OK);
    };
    expect(0, "nothing yet");
    copy(kLocalVa, kPeerVa + 2048, 2048);
    expect(32, "a copy");
    copy(kLocalVa, kPeerVa + 2048, 4);
    expect(1, "four bytes");
    copy(kLocalVa, kPeerVa + 2048 + 62, 4);
    expect(2, "four bytes on two lines");
    copy(kLocalVa, kPeerVa + 2048 + 60, 100);
    expect(3, "a hundred bytes on three");
    signal(5, 1);
    expect(5, "semaphores, of which four are on one line");
    a_->run({{OP_WRITE, ORR_CONTEXT_WINDOW(kAsid, kPeerVa + 1024), 7, 0}});
    expect(1, "a store of the firmware");
    copy(kPeerVa + 2048, kLocalVa, 1024);
    expect(0, "a read");
    // For whom the owner has no route any more.
    b_->write32(ORR_R_ROUTE(1), 0);
    constexpr std::uint64_t kDenied = 3;
    for (std::uint64_t n = 0; n < kDenied; ++n)
        a_->run(CardRig::signal(kAsid, kPeerVa, 9));
    expect(0, "what is denied");
    EXPECT_EQ(now_is(*b_, ORR_CTR_LINK_DENIED), kDenied);
    // The owner did nothing by itself.
    EXPECT_EQ(now_is(*b_, ORR_CTR_VRAM_BYTES), all);
    EXPECT_EQ(now_is(*a_, ORR_CTR_VRAM_LINK_BYTES), 0u);
}

// The plan says how often which frame comes damaged; the receiver counts those by itself.
TEST_F(LinkTruth, OfFramesThatWereSentAgain) {
    ASSERT_NO_FATAL_FAILURE(
        bring_up("wire port=0 first=2 count=3 corrupt; wire port=0 first=10 count=1 corrupt"));
    signal(10, 1);
    EXPECT_EQ(now_is(*a_, ORR_CTR_LINK_RETRIES), 4u);
    EXPECT_EQ(now_is(*b_, ORR_CTR_LINK_RETRIES), 0u);
    EXPECT_EQ(b_->read32(ORR_R_LINK(0) + ORR_R_LINK_CRC_ERRORS), 4u);
    EXPECT_EQ(now_is(*b_, ORR_CTR_LINK_RX_MESSAGES), 10u) << "each once";
}

}  // namespace
}  // namespace orrery::emu
