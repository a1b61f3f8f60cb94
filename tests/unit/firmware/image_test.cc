// The cross-built image itself, instruction by instruction, on the fake chip: that it boots and works as the
// native build does, and how many instructions the hot path costs.
#include <elf.h>
#include <orrery/hw/soc.h>

#include <fstream>
#include <map>

#include "emulator/core/hart.h"
#include "tests/unit/firmware/bench.h"
#include "tests/unit/firmware/documented.h"

namespace orrery::fw::test {
namespace {

class ImageBus final : public emu::Bus {
  public:
    explicit ImageBus(FakeSoc& soc) : soc_(soc), sram_(ORR_SRAM_SIZE) {}

    void load_elf(const char* path, std::uint64_t& entry) {
        std::ifstream in(path, std::ios::binary);
        const std::vector<char> elf{std::istreambuf_iterator<char>(in), {}};
        ASSERT_GE(elf.size(), sizeof(Elf64_Ehdr)) << path;
        Elf64_Ehdr header;
        std::memcpy(&header, elf.data(), sizeof(header));
        entry = header.e_entry;
        for (unsigned n = 0; n < header.e_phnum; ++n) {
            Elf64_Phdr segment;
            std::memcpy(&segment, elf.data() + header.e_phoff + n * sizeof(segment), sizeof(segment));
            if (segment.p_type != PT_LOAD) continue;
            ASSERT_LE(segment.p_vaddr - ORR_SRAM_BASE + segment.p_memsz, ORR_SRAM_SIZE);
            std::memcpy(sram_.data() + (segment.p_vaddr - ORR_SRAM_BASE), elf.data() + segment.p_offset,
                        segment.p_filesz);
        }
    }

    emu::PageRef translate(std::uint64_t va, emu::Access) override {
        const std::uint64_t offset = (va & ~(emu::kPageBytes - 1)) - ORR_SRAM_BASE;
        if (offset < ORR_SRAM_SIZE)
            return emu::PageRef::memory(sram_.data() + offset,
                                        emu::kPageRead | emu::kPageWrite | emu::kPageExec);
        if (va - ORR_SOC_BASE < ORR_SOC_SIZE || window(va)) return emu::PageRef::mmio();
        return emu::PageRef::fault();
    }
    bool load(std::uint64_t va, unsigned size, std::uint64_t& value) override {
        if (size != 8) return false;
        value = window(va) ? soc_.load(va) : soc_.reg(static_cast<std::uint32_t>(va - ORR_SOC_BASE));
        update_lines();
        return true;
    }
    bool store(std::uint64_t va, unsigned size, std::uint64_t value) override {
        if (size != 8) return false;
        if (window(va))
            soc_.store(va, value);
        else
            soc_.set_reg(static_cast<std::uint32_t>(va - ORR_SOC_BASE), value);
        update_lines();
        return true;
    }
    bool compare_exchange(std::uint64_t, unsigned, std::uint64_t, std::uint64_t, std::uint64_t&) override {
        return false;
    }

    void update_lines() {
        hart->set_irq(emu::Irq::kExternal, (soc_.lines() & soc_.irq_enable) != 0);
        hart->set_irq(emu::Irq::kTimer, soc_.timer_pending());
    }

    emu::Hart* hart = nullptr;

  private:
    static bool window(std::uint64_t va) {
        return va >> 62 != 0 || (va >= ORR_VRAM_WINDOW && va < ORR_VRAM_WINDOW + (std::uint64_t{1} << 36));
    }

    FakeSoc& soc_;
    std::vector<std::uint8_t> sram_;
};

class ImageTest : public testing::Test {
  protected:
    void SetUp() override {
        std::uint64_t entry = 0;
        bus.load_elf(FIRMWARE_ELF, entry);
        if (HasFatalFailure()) return;
        hart = std::make_unique<emu::Hart>(emu::Config{.reset_pc = entry, .trap_to_host = true}, bus);
        bus.hart = hart.get();
        bench.pass = [this] {
            bus.update_lines();
            const auto reason = hart->run(10'000'000);
            EXPECT_EQ(reason, emu::StopReason::kWfi) << to_string(reason) << " at " << std::hex
                                                     << hart->trap().pc << " tval " << hart->trap().tval;
            return false;
        };
        bench.run();
        ASSERT_EQ(bench.soc.progress, ORR_PROGRESS_READY | ORR_BB_STEP_RINGS);
        bench.create_context(1, 0);
        queue = bench.create_queue(0, 1, 64);
    }

    // Instructions from the doorbell until the core sleeps again.
    std::uint64_t cost(std::initializer_list<orr_packet> packets) {
        for (const orr_packet& p : packets)
            bench.push(queue, p);
        bench.ring(queue);
        const auto before = hart->steps();
        bench.run();
        return hart->steps() - before;
    }

    Bench bench;
    ImageBus bus{bench.soc};
    std::unique_ptr<emu::Hart> hart;
    ProcessQueue queue;
};

TEST_F(ImageTest, EmptyJobIsCheap) {
    cost({signal(kSharedVa, 1)});
    const auto one = cost({signal(kSharedVa, 2)});
    EXPECT_EQ(bench.shared(0), 2u);
    EXPECT_LE(one, 400u);
    const auto eight =
        cost({signal(kSharedVa, 3), signal(kSharedVa, 4), signal(kSharedVa, 5), signal(kSharedVa, 6),
              signal(kSharedVa, 7), signal(kSharedVa, 8), signal(kSharedVa, 9), signal(kSharedVa, 10)});
    EXPECT_EQ(bench.status(0).completed, 10u);
    expect_documented("an empty job: doorbell, packet, signal, retirement, back to sleep", 0,
                      static_cast<double>(one));
    expect_documented("each further one of a batch", 0, static_cast<double>(eight - one) / 7);
}

// A guest kernel gives semaphores other pages in each run. Of all places beside one that is waited for none
// takes another time: also not one that shares a bucket of the table with it.
TEST_F(ImageTest, WhereASemaphoreLiesTakesNoTime) {
    ProcessQueue waits = bench.create_queue(1, 1, 64);
    bench.submit(waits, {wait(kSharedVa, 1)});
    cost({signal(kSharedVa + 16, 1)});
    const std::uint64_t usual = cost({signal(kSharedVa + 32, 1)});
    std::map<std::uint64_t, unsigned> others;  // by cost: how many
    for (std::uint64_t at = 48; at < kSharedBytes; at += 16) {
        const std::uint64_t one = cost({signal(kSharedVa + at, 1)});
        if (one != usual) ++others[one];
    }
    EXPECT_TRUE(others.empty()) << others.begin()->second << " took " << others.begin()->first
                                << " instructions, and most " << usual;
    EXPECT_EQ(bench.status(1).completed, 0u);
}

// A release that comes in the midst of a look for deadlocks, or just behind it, as its host pleases: those
// who wait afterwards are looked at in the same time.
TEST_F(ImageTest, ALookThatNobodyNeedsAnyMoreTakesNoTimeLater) {
    constexpr std::uint64_t kGate = kSharedVa, kNext = kSharedVa + 16;
    std::uint64_t value = 0;
    const auto next = [&] { return cost({wait(kNext, ++value)}); };
    ProcessQueue waker = bench.create_queue(1, 1, 64);
    const auto wake = [&] { bench.submit(waker, {signal(kNext, value)}); };
    next();
    wake();
    const std::uint64_t usual = next();
    wake();

    for (std::uint32_t n = 10; n < 30; ++n) {
        ProcessQueue longer = bench.create_queue(n, 1, 64);
        bench.push(longer, wait(kGate, 1));
        for (int packets = 0; packets < 60; ++packets)
            bench.push(longer, signal(kSharedVa + 32, 1));
        bench.ring(longer);
        if (n < 29) bench.run();
    }
    unsigned loads = 0;
    bench.soc.on_load = [&](std::uint64_t) {
        if (++loads != 300) return;
        bench.push(waker, signal(kGate, 1));
        bench.ring(waker);
    };
    bench.run();
    bench.soc.on_load = nullptr;
    ASSERT_GT(loads, 300u) << "the look was over";
    EXPECT_EQ(bench.status(29).completed, 61u);
    bench.submit(queue, {nop()});  // as before the others: whose turn was last takes an instruction
    EXPECT_EQ(next(), usual);
    wake();
}

TEST_F(ImageTest, WorksAsTheNativeBuildDoes) {
    bench.submit(queue, {copy(0x1000, ORR_PKT_F_INTERRUPT), dispatch(0x2000), timestamp(kSharedVa + 64)});
    EXPECT_EQ(bench.soc.busy_ports().size(), 2u);
    EXPECT_EQ(bench.soc.engines[2].as<orr_desc_kernel>().block_y, 2u);
    bench.soc.finish(2);
    bench.soc.finish(0);
    bench.run();
    EXPECT_EQ(bench.status(0).completed, 3u);
    EXPECT_NE(bench.shared(64), 0u);
    EXPECT_EQ(bench.soc.host_irqs[ORR_IRQ_QUEUE], 1u);

    ProcessQueue other = bench.create_queue(1, 1);
    bench.submit(queue, {wait(kSharedVa, 4), packet(1234)});
    bench.submit(other, {signal(kAliasVa, 4)});
    expect_error(bench, queue, ORR_QERR_BAD_OPCODE, 4, 0, 1234);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {0}).status, ORR_STATUS_OK);
    EXPECT_EQ(bench.soc.halt, kEmpty);
    EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
}

TEST_F(ImageTest, TimerWakesIt) {
    bench.submit(queue, {dispatch(0x2000)});
    ASSERT_NE(bench.soc.timer, kEmpty);
    bench.soc.time = bench.soc.timer;
    bench.run();
    expect_error(bench, queue, ORR_QERR_TIMEOUT, 0, 0, 0);
    EXPECT_EQ(bench.soc.timer, kEmpty);
}

}  // namespace
}  // namespace orrery::fw::test
