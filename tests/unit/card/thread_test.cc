// The card on its own thread: sleep, wake-ups, and the order in which the two threads see things.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "emulator/card/card_thread.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kEcho = kRamBase + 0x10000;

// A rig whose card has booted and serves doorbells on its own thread.
class Running {
  public:
    explicit Running(std::uint32_t spin_us) : rig_(config(spin_us)) {
        rig_.boot_script();
        for (unsigned i = 0; i < 4; ++i) {
            rig_.run({CardRig::write(SOC_DB_PAGE, i), CardRig::write(SOC_DB_SLOT, i),
                      CardRig::write(SOC_DB_TAG, i), CardRig::write(SOC_DB_CMD, SOC_DB_BIND)});
        }
        rig_.start({{OP_SERVE, 0, kEcho, 0}});
        rig_.settle();
        thread_.emplace(rig_.card());
    }
    CardRig& rig() { return rig_; }

    static std::uint64_t load(std::uint64_t& word) {
        return std::atomic_ref(word).load(std::memory_order_acquire);
    }
    // As a driver does: store, fence, kick if the card asks for it. Returns once the echo has come.
    void ring_and_wait(unsigned number, std::uint64_t value) {
        rig_.ring(number, number, value);
        if (load(rig_.page(number).need_wakeup) != 0) rig_.kick(number, number);
        while (load(rig_.word(kEcho + 16 * number)) != value)
            std::this_thread::yield();
    }

  private:
    static CardConfig config(std::uint32_t spin_us) {
        CardConfig made = CardRig::config();
        made.spin_us = spin_us;
        return made;
    }
    CardRig rig_;
    std::optional<CardThread> thread_;
};

// A lost wake-up hangs here, and the test's time limit finds it.
void ring_often(std::uint32_t spin_us, int rounds) {
    Running running(spin_us);
    for (int i = 1; i <= rounds; ++i) {
        running.ring_and_wait(static_cast<unsigned>(i) % 4, static_cast<std::uint64_t>(i));
        // Gaps of all lengths around the spin time.
        if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 300));
    }
    EXPECT_EQ(running.rig().counter(ORR_CTR_DOORBELLS), static_cast<std::uint64_t>(rounds));
}

TEST(CardThread, NoRingIsLostWithoutSpinning) {
    ring_often(0, 3000);
}

TEST(CardThread, NoRingIsLostWithALittleSpinning) {
    ring_often(5, 3000);
}

TEST(CardThread, NoRingIsLostWithMuchSpinning) {
    ring_often(200, 3000);
}

TEST(CardThread, ABlockedCardAnswersRegistersAndMaps) {
    Running running(0);
    CardRig& rig = running.rig();
    for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_RUNNING);
        EXPECT_NE(rig.map_ram(), 0);
        rig.unmap_ram(0x5000, 0x1000);
    }
    rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    // On a busy host one read may be answered before the card has had time for it.
    while (rig.read32(ORR_R_STATE) != ORR_STATE_RESET)
        std::this_thread::yield();
}

TEST(CardThread, FirmwareThatNeverSleepsDoesNotHoldTheIoThread) {
    Running running(0);
    CardRig& rig = running.rig();
    rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    while (rig.read32(ORR_R_STATE) != ORR_STATE_RESET)
        std::this_thread::yield();
    const auto image = make_image(script_elf());
    std::memcpy(rig.ram(CardRig::kImage), image.data(), image.size());
    rig.write64(ORR_R_BOOT_IMAGE, CardRig::kImage);
    rig.write32(ORR_R_BOOT_SIZE, static_cast<std::uint32_t>(image.size()));
    rig.write64(ORR_R_BOOT_ARG, CardRig::kScript);
    rig.write32(ORR_R_BOOT_START, 1);
    const auto boots = [&] {
        const std::uint32_t state = rig.read32(ORR_R_STATE);
        return state == ORR_STATE_RESET || state == ORR_STATE_BOOTING;
    };
    while (boots())
        std::this_thread::yield();
    ASSERT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_RUNNING);
    rig.start({{OP_SPIN, 0, 0, 0}});
    const std::uint64_t before = rig.read64(ORR_R_MODEL_TIME);
    for (int i = 0; i < 100; ++i) {
        rig.unmap_ram();
        ASSERT_EQ(rig.map_ram(), 0);
    }
    // The host may give the card's thread its time late.
    for (int i = 0; i < 30'000 && rig.read64(ORR_R_MODEL_TIME) <= before; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(rig.read64(ORR_R_MODEL_TIME), before);
    EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_RUNNING);
    rig.device().reset(ResetKind::kFunction);
    EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_RESET);
}

TEST(CardThread, MoreCommandsThanTheQueueHolds) {
    Running running(0);
    CardRig& rig = running.rig();
    for (unsigned i = 0; i < 3 * CommandQueue::kCapacity; ++i) {
        rig.write32(ORR_R_LINK(0) + ORR_R_LINK_GRANT_CMD, ORR_LINK_GRANT_CLEAR);
    }
    // As a driver does: on a busy host one read may be answered before the card has had time for all of them.
    const auto done = [&] { return rig.read32(ORR_R_LINK(0) + ORR_R_LINK_GRANT_DONE); };
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (done() < 3 * CommandQueue::kCapacity && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    EXPECT_EQ(done(), 3 * CommandQueue::kCapacity) << "commands that the card carried out";
}

// One that is not at work yet, or no more, has its commands carried out all the same, and each once. The
// first of them come while the thread still starts.
TEST(CardThread, ThatStartsTakesEachCommandOnce) {
    constexpr std::uint64_t kMapped = kRamBase + 2 * kRamBytes, kGoes = 50, kRounds = 40;
    for (std::uint64_t go = 0; go < kGoes; ++go) {
        CardRig rig;
        const UniqueFd memory(::memfd_create("more", MFD_CLOEXEC));
        ASSERT_EQ(::ftruncate(memory.get(), ORR_PAGE_SIZE), 0);
        std::uint64_t maps = rig.counter(ORR_CTR_DMA_MAPS), grants = 0;
        const auto post = [&] {
            DmaMap map;
            map.address = kMapped;
            map.size = ORR_PAGE_SIZE;
            map.fd = UniqueFd(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0));
            map.readable = map.writable = true;
            ++maps;
            ++grants;
            rig.write32(ORR_R_LINK(0) + ORR_R_LINK_GRANT_CMD, ORR_LINK_GRANT_CLEAR);
            ASSERT_EQ(rig.device().dma_map(std::move(map)), 0) << go;
            rig.unmap_ram(kMapped, ORR_PAGE_SIZE);
        };
        {
            CardThread thread(rig.card());
            for (std::uint64_t n = 0; n < kRounds; ++n)
                ASSERT_NO_FATAL_FAILURE(post());
            thread.stop();
        }
        for (std::uint64_t n = 0; n < 3; ++n)
            ASSERT_NO_FATAL_FAILURE(post());
        ASSERT_EQ(rig.counter(ORR_CTR_DMA_MAPS), maps) << go;
        ASSERT_EQ(rig.read32(ORR_R_LINK(0) + ORR_R_LINK_GRANT_DONE), grants) << go;
    }
}

}  // namespace
}  // namespace orrery::emu
