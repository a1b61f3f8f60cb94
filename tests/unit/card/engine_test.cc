// Engines through their dispatch ports: what firmware sees of them, and what happens to memory that goes
// meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include <orrery/hw/kernel_abi.h>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kRwx = kRw | ORR_PTE_EXEC;
constexpr std::uint32_t kAsid = 3;
constexpr std::uint64_t kLineDone = 1u << SOC_LINE_DONE;

class Engines : public testing::Test {
  protected:
    void SetUp() override {
        rig_.boot_script();
        rig_.run(rig_.set_root(kAsid));
    }
    static script_op read(std::uint64_t reg) { return CardRig::read(reg); }
    static script_op write(std::uint64_t reg, std::uint64_t value) { return CardRig::write(reg, value); }

    // Starts, waits, pops: {pop, status, fault, detail, start, end, used}.
    static std::vector<script_op> pop_ops() {
        return {{OP_WAIT, 0, kLineDone, 0}, read(SOC_DONE_POP),    read(SOC_DONE_STATUS),
                read(SOC_DONE_FAULT),       read(SOC_DONE_DETAIL), read(SOC_DONE_START_PS),
                read(SOC_DONE_END_PS),      read(SOC_DONE_USED_PS)};
    }
    template <class Descriptor>
    Completion complete(unsigned port, const Descriptor& descriptor, std::uint32_t tag) {
        auto script = CardRig::start_job(port, descriptor, tag);
        std::ranges::copy(pop_ops(), std::back_inserter(script));
        return completion(rig_.run(script));
    }
    static Completion completion(const std::vector<script_op>& ops) {
        const auto at = [&](std::size_t from_end) { return ops[ops.size() - from_end].result; };
        Completion result;
        result.port = static_cast<std::uint32_t>(at(7) >> 32);
        result.tag = static_cast<std::uint32_t>(at(7));
        result.status = static_cast<std::uint32_t>(at(6));
        result.fault = at(5);
        result.detail = at(4);
        result.start_ps = at(3);
        result.end_ps = at(2);
        result.used_ps = at(1);
        return result;
    }
    // Its code at kVramVa, which is mapped.
    orr_desc_kernel load_kernel(std::span<const std::uint32_t> program, std::uint32_t groups,
                                std::uint16_t items, std::uint64_t args = 0) {
        std::memcpy(rig_.card().vram().at(0x10000, program.size_bytes()), program.data(),
                    program.size_bytes());
        orr_desc_kernel desc{};
        desc.op = ORR_DESC_KERNEL;
        desc.asid = kAsid;
        desc.entry = kVramVa;
        desc.args = args;
        desc.grid_x = groups;
        desc.grid_y = desc.grid_z = 1;
        desc.block_x = items;
        desc.block_y = desc.block_z = 1;
        return desc;
    }
    static orr_desc_copy copy(std::uint64_t src, std::uint64_t dst, std::uint64_t bytes) {
        orr_desc_copy desc{};
        desc.op = ORR_DESC_COPY;
        desc.asid = kAsid;
        desc.src = src;
        desc.dst = dst;
        desc.row_bytes = bytes;
        desc.rows = 1;
        return desc;
    }
    void map_run(std::uint64_t va, std::uint64_t address, std::uint64_t bytes, std::uint64_t bits) {
        for (std::uint64_t at = 0; at < bytes; at += ORR_PAGE_SIZE) {
            rig_.map_page(kAsid, va + at, address + at, bits);
        }
    }

    static constexpr std::uint64_t kHostVa = 0x1000'0000;
    static constexpr std::uint64_t kVramVa = 0x2000'0000;
    CardRig rig_;
};

TEST_F(Engines, CopyFromHostToVram) {
    constexpr std::uint64_t kBytes = 1 << 20;
    map_run(kHostVa, kRamBase, kBytes, kRw | kHostTarget);
    map_run(kVramVa, 0, kBytes, kRw);
    std::iota(rig_.ram(kRamBase), rig_.ram(kRamBase) + kBytes, std::uint8_t{3});
    const Completion done = complete(1, copy(kHostVa, kVramVa, kBytes), 0xabcd);
    EXPECT_EQ(done.port, 1u);
    EXPECT_EQ(done.tag, 0xabcdu);
    EXPECT_EQ(done.status, ORR_DONE_OK);
    EXPECT_EQ(std::memcmp(rig_.ram(kRamBase), rig_.card().vram().data(), kBytes), 0);
    // Set-up, the first translations, and the bytes, of which the last is a round trip away.
    const Sku& sku = rig_.card().sku();
    EXPECT_EQ(done.end_ps - done.start_ps, sku.copy_setup_ps + ORR_MMU_LEVELS * sku.memory_latency_ps +
                                               duration_ps(kBytes, sku.copy_host_bytes_per_s) +
                                               sku.memory_host_latency_ps);
    EXPECT_EQ(rig_.counter(ORR_CTR_COPY_BYTES), kBytes);
    EXPECT_EQ(rig_.counter(ORR_CTR_COPY_JOBS), 1u);
    EXPECT_EQ(done.used_ps, done.end_ps - done.start_ps);
}

TEST_F(Engines, ABadDescriptorIsRefused) {
    orr_desc_copy desc = copy(kHostVa, kVramVa, 64);
    desc.rows = 0;
    EXPECT_EQ(complete(0, desc, 1).status, ORR_DONE_BAD_DESC);
    EXPECT_EQ(complete(2, desc, 1).status, ORR_DONE_BAD_DESC);
}

TEST_F(Engines, AFaultNamesItsAddress) {
    map_run(kHostVa, kRamBase, 4096, kRw | kHostTarget);
    const Completion done = complete(0, copy(kHostVa, kVramVa, 64), 1);
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.fault, ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(done.detail, kVramVa);
}

TEST_F(Engines, ABusyPortIgnoresAStart) {
    constexpr std::uint64_t kBytes = 4 << 20;
    map_run(kHostVa, kRamBase, kBytes, kRw | kHostTarget);
    map_run(kVramVa, 0, kBytes, kRw);
    auto script = CardRig::start_job(0, copy(kHostVa, kVramVa, kBytes), 1);
    script.push_back(write(SOC_ENGINE(0) + SOC_ENGINE_START, 2));
    script.push_back(read(SOC_ENGINE(0) + SOC_ENGINE_BUSY));
    std::ranges::copy(pop_ops(), std::back_inserter(script));
    script.push_back(read(SOC_ENGINE(0) + SOC_ENGINE_BUSY));
    script.push_back(read(SOC_DONE_POP));
    const auto ops = rig_.run(script);
    EXPECT_EQ(ops[10].result, 1u);
    EXPECT_EQ(ops[ops.size() - 2].result, 0u);
    EXPECT_EQ(ops.back().result, ~0ull);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 1u);
}

TEST_F(Engines, AnAbortEndsADescriptorEarly) {
    constexpr std::uint64_t kBytes = 16 << 20;
    map_run(kHostVa, kRamBase, kBytes, kRw | kHostTarget);
    map_run(kVramVa, 0, kBytes, kRw);
    auto script = CardRig::start_job(0, copy(kHostVa, kVramVa, kBytes), 7);
    script.push_back(write(SOC_ENGINE(0) + SOC_ENGINE_ABORT, 1));
    std::ranges::copy(pop_ops(), std::back_inserter(script));
    const Completion done = completion(rig_.run(script));
    EXPECT_EQ(done.status, ORR_DONE_ABORTED);
    EXPECT_EQ(done.tag, 7u);
    EXPECT_LT(done.end_ps - done.start_ps, 100'000'000u);
}

// A kernel: each item adds its number to a counter at a0 by atomic add, and returns.
TEST_F(Engines, RunAKernel) {
    const std::uint32_t program[] = {
        0xcc3022f3,  // csrr t0, 0xcc3 (item x)
        0x0055302f,  // amoadd.d zero, t0, (a0)
        0x00008067,  // ret
    };
    map_run(kVramVa, 0x10000, 4096, kRwx);
    map_run(kVramVa + 0x1000, 0x20000, 4096, kRw);
    const orr_desc_kernel desc = load_kernel(program, 10, 32, kVramVa + 0x1000);
    const Completion done = complete(3, desc, 5);
    EXPECT_EQ(done.status, ORR_DONE_OK) << done.fault << " at " << done.detail;
    EXPECT_EQ(done.port, 3u);
    std::uint64_t sum = 0;
    std::memcpy(&sum, rig_.card().vram().at(0x20000, 8), 8);
    EXPECT_EQ(sum, 10u * (31 * 32 / 2));
    EXPECT_EQ(rig_.counter(ORR_CTR_VECTOR_ITEMS), 320u);
    EXPECT_EQ(rig_.counter(ORR_CTR_VECTOR_GROUPS), 10u);
    // Ten equal groups on eight cores: hand-over and execution, without the launch.
    const Sku& sku = rig_.card().sku();
    EXPECT_GE(done.used_ps, rig_.counter(ORR_CTR_VECTOR_BUSY_PS) + 10 * sku.vector_group_ps);
    EXPECT_LE(done.used_ps, (done.end_ps - done.start_ps - sku.vector_launch_ps) * sku.vector_cores);
}

TEST_F(Engines, APortTellsWhatItDoes) {
    const std::uint32_t program[] = {0x0000006f};  // an endless loop
    map_run(kVramVa, 0x10000, 4096, kRwx);
    const orr_desc_kernel desc = load_kernel(program, 3, 1);
    const std::uint64_t port = SOC_ENGINE(2);
    const auto state = [&] {
        return std::vector<script_op>{read(port + SOC_ENGINE_TAG), read(port + SOC_ENGINE_ACTIVE),
                                      read(SOC_TIME), read(port + SOC_ENGINE_USED_PS)};
    };
    auto script = CardRig::start_job(2, desc, 0x77);
    std::ranges::copy(state(), std::back_inserter(script));
    script.push_back({OP_SLEEP, 0, 20'000'000, 0});
    std::ranges::copy(state(), std::back_inserter(script));
    script.push_back({OP_SLEEP, 0, 10'000'000, 0});
    std::ranges::copy(state(), std::back_inserter(script));
    script.push_back(write(port + SOC_ENGINE_ABORT, 1));
    std::ranges::copy(pop_ops(), std::back_inserter(script));
    std::ranges::copy(state(), std::back_inserter(script));
    const auto ops = rig_.run(script);
    const auto at = [&](std::size_t n) { return ops[9 + n].result; };
    EXPECT_EQ(at(0), 0x77u);
    EXPECT_EQ(at(5), 0x77u);
    EXPECT_EQ(at(6), 3u);
    // Three cores, all the time.
    EXPECT_NEAR(static_cast<double>(at(13) - at(8)), 3.0 * static_cast<double>(at(12) - at(7)), 20'000);
    const std::size_t end = ops.size() - 4;
    EXPECT_EQ(ops[end - 6].result, ORR_DONE_ABORTED);
    EXPECT_GE(ops[end - 1].result, at(13));
    EXPECT_EQ(ops[end].result, 0x77u);
    EXPECT_EQ(ops[end + 1].result, 0u);
    EXPECT_EQ(ops[end + 3].result, 0u);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST_F(Engines, FirmwarePreemptsAndResumes) {
    const std::uint64_t area = 16 << 20;
    const std::uint32_t program[] = {
        // t1 = 100,000; do --t1; while (t1 != 0); amoadd.d zero, sp, (a0); ret
        0x00018337, 0x6a030313, 0xfff30313, 0xfe031ee3, 0x0025302f, 0x00008067,
    };
    map_run(kVramVa, 0x10000, 4096, kRwx);
    map_run(kVramVa + 0x1000, 0x20000, 4096, kRw);
    const orr_desc_kernel desc = load_kernel(program, 20, 1, kVramVa + 0x1000);
    auto script = CardRig::start_job(2, desc, 0x11);
    script.push_back({OP_SLEEP, 0, 50'000'000, 0});
    script.push_back(write(SOC_ENGINE(2) + SOC_ENGINE_SAVE, area));
    script.push_back(write(SOC_ENGINE(2) + SOC_ENGINE_PREEMPT, SOC_PREEMPT_NOW));
    std::ranges::copy(pop_ops(), std::back_inserter(script));
    const Completion saved = completion(rig_.run(script));
    EXPECT_EQ(saved.status, ORR_DONE_PREEMPTED);
    EXPECT_EQ(saved.tag, 0x11u);
    EXPECT_GT(saved.detail, 8 * 4096u);
    EXPECT_EQ(rig_.counter(ORR_CTR_SAVED_BYTES), saved.detail);
    EXPECT_EQ(rig_.counter(ORR_CTR_PREEMPTIONS), 1u);
    EXPECT_EQ(rig_.counter(ORR_CTR_VECTOR_GROUPS), 0u);
    // On another port. The area has to fit: what the firmware reads of its size is what the driver reads.
    EXPECT_EQ(rig_.soc(SOC_SAVE_BYTES), rig_.read32(ORR_R_SAVE_BYTES));
    EXPECT_EQ(rig_.read32(ORR_R_SAVE_BYTES) % 4096, 0u);
    script = {write(SOC_ENGINE(4) + SOC_ENGINE_SAVE, area), write(SOC_ENGINE(4) + SOC_ENGINE_RESUME, 0x22)};
    std::ranges::copy(pop_ops(), std::back_inserter(script));
    const Completion done = completion(rig_.run(script));
    EXPECT_EQ(done.status, ORR_DONE_OK) << done.fault << " at " << done.detail;
    EXPECT_EQ(done.port, 4u);
    EXPECT_EQ(done.tag, 0x22u);
    EXPECT_EQ(rig_.soc(SOC_ENGINE(4) + SOC_ENGINE_TAG), 0x22u);
    EXPECT_GT(done.start_ps, saved.end_ps);
    std::uint64_t sum = 0;
    std::memcpy(&sum, rig_.card().vram().at(0x20000, 8), 8);
    EXPECT_EQ(sum, 20 * ORR_STACK_TOP);
    EXPECT_EQ(rig_.counter(ORR_CTR_VECTOR_GROUPS), 20u);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
}

// Kernels beside copies on all engines, while the control core sleeps, reads registers, or does nothing but
// long accesses: what engines take is no matter of what the core does meanwhile, but for the bandwidth that
// it uses.
TEST_F(Engines, DurationsDoNotDependOnWhatTheCoreDoes) {
    const std::uint32_t program[] = {
        // t1 = 3,000; do --t1; while (t1 != 0); amoadd.d zero, sp, (a0); ret
        0x00001337, 0xbb830313, 0xfff30313, 0xfe031ee3, 0x0025302f, 0x00008067,
    };
    constexpr std::uint64_t kBytes = 256 << 10;
    map_run(kVramVa, 0x10000, 4096, kRwx);
    map_run(kVramVa + 0x1000, 0x20000, 4096, kRw);
    map_run(kVramVa + 0x100000, 0x200000, kBytes, kRw);
    map_run(kHostVa, kRamBase, kBytes, kRw | kHostTarget);
    const orr_desc_kernel desc = load_kernel(program, 100, 3, kVramVa + 0x1000);
    // The first is for translations to be at hand.
    std::vector<script_op> busy[5];
    busy[2].assign(400, {OP_READ, ORR_HOST_WINDOW(kRamBase + (60 << 20)), 0, 0});
    busy[3].assign(400, read(SOC_TIME));
    busy[4].assign(400, {OP_WRITE, ORR_VRAM_WINDOW + 0x300000, 1, 0});
    std::vector<std::array<ModelTime, 2>> durations;
    for (const auto& meanwhile : busy) {
        auto script = CardRig::start_job(2, desc, 1);
        std::ranges::copy(CardRig::start_job(0, copy(kHostVa, kVramVa + 0x100000, kBytes), 2),
                          std::back_inserter(script));
        std::ranges::copy(meanwhile, std::back_inserter(script));
        script.push_back({OP_SLEEP, 0, 200'000'000, 0});
        for (int i = 0; i < 2; ++i)
            std::ranges::copy(pop_ops(), std::back_inserter(script));
        const auto ops = rig_.run(script);
        const Completion last = completion(ops);
        const Completion first = completion({ops.begin(), ops.end() - 8});
        ASSERT_EQ(first.status, ORR_DONE_OK);
        ASSERT_EQ(last.status, ORR_DONE_OK);
        durations.push_back({first.end_ps - first.start_ps, last.end_ps - last.start_ps});
    }
    durations.erase(durations.begin());
    // The core reads its script from the host: it takes its part of PCIe from the copy, and nothing else.
    const Sku& sku = rig_.card().sku();
    const ModelTime line = duration_ps(kMemoryLine, sku.copy_host_bytes_per_s);
    for (std::size_t n = 1; n < durations.size(); ++n) {
        EXPECT_EQ(durations[n][1], durations[0][1]);
        EXPECT_GT(durations[n][0], durations[0][0]);
        EXPECT_LE(durations[n][0], durations[0][0] + (durations[n][0] / sku.host_load_ps + 1) * line);
    }
}

TEST_F(Engines, NonsenseAboutSharesAndAreasIsCounted) {
    const std::uint64_t port = SOC_ENGINE(3);
    auto values = rig_.run({write(port + SOC_ENGINE_PRIORITY, 3), write(port + SOC_ENGINE_WEIGHT, 65535),
                            write(port + SOC_ENGINE_SAVE, 0x7000), write(SOC_ENGINE(0) + SOC_ENGINE_SAVE, 8),
                            read(port + SOC_ENGINE_PRIORITY), read(port + SOC_ENGINE_WEIGHT),
                            read(port + SOC_ENGINE_SAVE), read(SOC_ENGINE(0) + SOC_ENGINE_SAVE),
                            // A port with nothing to preempt: the end of its work may have been quicker.
                            write(port + SOC_ENGINE_PREEMPT, SOC_PREEMPT_GROUP)});
    EXPECT_EQ(values[4].result, 3u);
    EXPECT_EQ(values[5].result, 65535u);
    EXPECT_EQ(values[6].result, 0x7000u);
    EXPECT_EQ(values[7].result, 8u);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
    values = rig_.run({write(port + SOC_ENGINE_PRIORITY, 4), write(port + SOC_ENGINE_WEIGHT, 0),
                       write(port + SOC_ENGINE_WEIGHT, 65536), write(port + SOC_ENGINE_PREEMPT, 0),
                       write(port + SOC_ENGINE_PREEMPT, 3), write(SOC_ENGINE(0) + SOC_ENGINE_PRIORITY, 1),
                       write(SOC_ENGINE(0) + SOC_ENGINE_WEIGHT, 1), read(SOC_ENGINE(0) + SOC_ENGINE_ACTIVE),
                       write(port + SOC_ENGINE_TAG, 1), write(port + SOC_ENGINE_USED_PS, 1)});
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), values.size());
    EXPECT_EQ(rig_.soc(port + SOC_ENGINE_PRIORITY), 3u);
    EXPECT_EQ(rig_.soc(port + SOC_ENGINE_WEIGHT), 65535u);
}

TEST_F(Engines, HostMemoryThatGoesStopsACopyWithAFault) {
    constexpr std::uint64_t kBytes = 16 << 20;
    map_run(kHostVa, kRamBase, kBytes, kRw | kHostTarget);
    map_run(kVramVa, 0, kBytes, kRw);
    rig_.start(CardRig::start_job(0, copy(kHostVa, kVramVa, kBytes), 1));
    // Into the middle of it.
    for (int i = 0; i < 100'000 && rig_.counter(ORR_CTR_COPY_BYTES) < kBytes / 4; ++i)
        rig_.steps(1);
    rig_.unmap_ram();
    rig_.settle();
    EXPECT_LT(rig_.counter(ORR_CTR_COPY_BYTES), kBytes);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RUNNING);
    // The firmware learns of it once its memory is back.
    ASSERT_EQ(rig_.map_ram(), 0);
    rig_.start(pop_ops());
    rig_.settle();
    const Completion done = completion(rig_.results(8));
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.fault, ORR_FAULT_PAGE_RANGE);
}

TEST_F(Engines, HostMemoryThatGoesStopsAKernelWithAFault) {
    // An endless loop that reads host memory: ld t0, 0(a0); j -4
    const std::uint32_t program[] = {0x00053283, 0xffdff06f};
    map_run(kVramVa, 0x10000, 4096, kRwx);
    map_run(kHostVa, kRamBase, 4096, kRw | kHostTarget);
    const orr_desc_kernel desc = load_kernel(program, 100, 1, kHostVa);
    rig_.start(CardRig::start_job(2, desc, 9));
    rig_.steps(500);
    EXPECT_TRUE(rig_.card().step()) << "a kernel without end is still running";
    rig_.unmap_ram();
    rig_.settle();
    ASSERT_EQ(rig_.map_ram(), 0);
    rig_.start(pop_ops());
    rig_.settle();
    const Completion done = completion(rig_.results(8));
    EXPECT_EQ(done.tag, 9u);
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.detail, kHostVa);
}

TEST_F(Engines, UnreadCompletionsAreBounded) {
    orr_desc_copy desc = copy(kHostVa, kVramVa, 64);
    desc.rows = 0;
    rig_.run(CardRig::start_job(0, desc, 1));
    for (int i = 0; i < 50; ++i) {
        std::vector<script_op> script;
        for (unsigned n = 0; n < 100; ++n) {
            script.push_back(write(SOC_ENGINE(0) + SOC_ENGINE_START, n));
            script.push_back({OP_SLEEP, 0, 1'000'000, 0});
        }
        rig_.run(script);
    }
    EXPECT_GT(rig_.counter(ORR_CTR_GUEST_ERRORS), 0u);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RUNNING);
}

}  // namespace
}  // namespace orrery::emu
