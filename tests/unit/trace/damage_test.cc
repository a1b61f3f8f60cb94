// Cut and corrupted recordings are refused, with where and why; those of a recorder that died are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>
#include <thread>

#include "emulator/card/card_thread.h"
#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

using testing::HasSubstr;

class Damage : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        const TemporaryFile file;
        record_firmware(file.path(), 2);
        good_ = new std::vector<std::uint8_t>(bytes_of(file.path()));
    }
    static void TearDownTestSuite() {
        delete good_;
        good_ = nullptr;
    }
    static std::vector<std::uint8_t> good() { return *good_; }
    static std::vector<TraceBlock> blocks() {
        const auto reader = TraceReader::parse(good(), "good");
        EXPECT_TRUE(reader) << reader.error();
        return {reader->blocks().begin(), reader->blocks().end()};
    }
    static std::string error_of(std::vector<std::uint8_t> bytes) {
        const auto reader = TraceReader::parse(std::move(bytes), "x.otrace");
        if (reader) return "taken";
        EXPECT_THAT(reader.error(), HasSubstr("x.otrace: offset 0x"));
        return reader.error();
    }
    // With this block's checksum made good again.
    static void seal(std::vector<std::uint8_t>& bytes, std::uint64_t offset) {
        orr_otrace_block block;
        std::memcpy(&block, bytes.data() + offset, sizeof block);
        block.checksum = 0;
        std::memcpy(bytes.data() + offset, &block, sizeof block);
        block.checksum = XXH3_64bits(bytes.data() + offset, sizeof block + block.stored_bytes);
        std::memcpy(bytes.data() + offset, &block, sizeof block);
    }

  private:
    static std::vector<std::uint8_t>* good_;
};
std::vector<std::uint8_t>* Damage::good_ = nullptr;

TEST_F(Damage, NoneIsTaken) {
    EXPECT_EQ(error_of(good()), "taken");
    EXPECT_GE(blocks().size(), 3u);
}

// Of the header every byte; of the first block of each kind every byte of its header, of the others each
// 13th, another one each time; and some of each payload.
TEST_F(Damage, EveryKindOfByteCounts) {
    const std::vector<std::uint8_t> bytes = good();
    std::vector<std::size_t> places;
    for (std::size_t at = 0; at < blocks().front().offset; ++at)
        places.push_back(at);
    std::set<std::uint32_t> kinds;
    std::size_t others = 0;
    for (const TraceBlock& block : blocks()) {
        const bool first = kinds.insert(block.header.kind).second;
        for (std::size_t i = first ? 0 : others++ % 13; i < sizeof(orr_otrace_block); i += first ? 1 : 13)
            places.push_back(block.offset + i);
        for (std::size_t i = 0; i < block.header.stored_bytes; i += 1 + block.header.stored_bytes / 5)
            places.push_back(block.offset + sizeof(orr_otrace_block) + i);
    }
    for (std::size_t i = 0; i < sizeof(orr_otrace_block); ++i)
        places.push_back(bytes.size() - 1 - i);  // the end mark
    ASSERT_GE(places.size(), 300u);
    for (const std::size_t at : places) {
        std::vector<std::uint8_t> bad = bytes;
        bad[at] ^= 0x10;
        ASSERT_NE(error_of(std::move(bad)), "taken") << "byte " << at;
    }
}

TEST_F(Damage, EveryCutIsSeen) {
    const std::vector<std::uint8_t> bytes = good();
    std::vector<std::size_t> lengths = {0, 1, 100, sizeof(orr_otrace_header), bytes.size() - 1};
    for (const TraceBlock& block : blocks()) {
        lengths.push_back(block.offset);
        lengths.push_back(block.offset + 17);
        lengths.push_back(block.offset + sizeof(orr_otrace_block) + 1);
    }
    for (const std::size_t length : lengths) {
        std::vector<std::uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_NE(error_of(std::move(cut)), "taken") << length;
    }
    EXPECT_THAT(error_of({bytes.begin(), bytes.end() - 1}), HasSubstr("the file is cut"));
}

TEST_F(Damage, MoreThanThereShouldBe) {
    std::vector<std::uint8_t> bytes = good();
    bytes.push_back(0);
    EXPECT_THAT(error_of(bytes), HasSubstr("behind the end mark"));
}

TEST_F(Damage, BlocksHaveTheirOrder) {
    const auto all = blocks();
    std::vector<std::uint8_t> bytes = good();
    orr_otrace_block block;
    std::memcpy(&block, bytes.data() + all[1].offset, sizeof block);
    block.sequence = 7;
    std::memcpy(bytes.data() + all[1].offset, &block, sizeof block);
    seal(bytes, all[1].offset);
    EXPECT_THAT(error_of(bytes), HasSubstr("block 7 stands where block 1 belongs"));

    bytes = good();
    std::memcpy(&block, bytes.data() + all.back().offset, sizeof block);
    block.first_step += 1;
    std::memcpy(bytes.data() + all.back().offset, &block, sizeof block);
    seal(bytes, all.back().offset);
    EXPECT_THAT(error_of(bytes), HasSubstr("does not follow"));
}

TEST_F(Damage, OtherVersionsAndOtherFiles) {
    std::vector<std::uint8_t> bytes = good();
    bytes[10] = 9;
    EXPECT_THAT(error_of(bytes), HasSubstr("format version 9."));
    bytes = good();
    bytes[0] = 'X';
    EXPECT_THAT(error_of(bytes), HasSubstr("this is no recording"));
    EXPECT_FALSE(TraceReader::open("/nonexistent/x.otrace"));
    EXPECT_FALSE(TraceReader::open("/dev/zero"));
    EXPECT_FALSE(TraceReader::open("/tmp"));
}

// Good checksums, and a state that is another: a divergence, with its place.
TEST_F(Damage, AnotherStateIsADivergence) {
    std::vector<std::uint8_t> bytes = good();
    const auto all = blocks();
    orr_otrace_block block;
    std::memcpy(&block, bytes.data() + all.back().offset, sizeof block);
    block.state_hash ^= 1;
    std::memcpy(bytes.data() + all.back().offset, &block, sizeof block);
    seal(bytes, all.back().offset);
    auto reader = TraceReader::parse(bytes, "x.otrace");
    ASSERT_TRUE(reader) << reader.error();
    const auto replayer = Replayer::open(*std::move(reader));
    ASSERT_TRUE(replayer) << replayer.error();
    ASSERT_TRUE((*replayer)->divergence());
    EXPECT_EQ((*replayer)->divergence()->offset, all.back().offset);
    EXPECT_THAT((*replayer)->divergence()->reason, HasSubstr("state hash"));
    EXPECT_EQ((*replayer)->end(), all.back().header.first_step) << "up to what is known to be good";
}

TEST_F(Damage, ImagesAreNotUnpackedWithoutEnd) {
    const auto all = blocks();
    const auto image = std::ranges::find(all, std::uint32_t{ORR_OTRACE_IMAGE}, [](const TraceBlock& block) {
        return std::uint32_t{block.header.kind};
    });
    ASSERT_NE(image, all.end());
    // Images of nothing but zeros.
    const std::vector<std::uint8_t> zeros(4 << 20);
    std::vector<std::uint8_t> packed(ZSTD_compressBound(zeros.size()));
    packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 1));
    const auto with_images = [&](std::uint64_t count) {
        std::vector<std::uint8_t> bytes = good();
        bytes.resize(all.front().offset);
        for (std::uint64_t i = 0; i < count; ++i) {
            orr_otrace_block block = image->header;
            block.sequence = i;
            block.first_step = block.last_step = all.front().header.first_step;
            block.first_ps = block.last_ps = all.front().header.first_ps;
            block.codec = ORR_OTRACE_ZSTD;
            block.raw_bytes = static_cast<std::uint32_t>(zeros.size());
            block.stored_bytes = static_cast<std::uint32_t>(packed.size());
            const std::uint64_t offset = bytes.size();
            bytes.resize(offset + sizeof block);
            std::memcpy(bytes.data() + offset, &block, sizeof block);
            bytes.insert(bytes.end(), packed.begin(), packed.end());
            seal(bytes, offset);
        }
        const std::uint64_t committed[2] = {bytes.size(), ~std::uint64_t{bytes.size()}};
        std::memcpy(bytes.data() + offsetof(orr_otrace_header, committed), committed, sizeof committed);
        return error_of(std::move(bytes));
    };
    const std::uint64_t most = TraceReader::kMaxImageBytes / zeros.size();
    EXPECT_EQ(with_images(most), "taken");
    EXPECT_THAT(with_images(most + 1), HasSubstr("more firmware images than any recording has"));
}

TEST_F(Damage, ADyingRecorderLeavesAReadableFile) {
    std::vector<std::uint8_t> bytes = good();
    const auto all = blocks();
    // The last block was being written: half of it is there, and the header does not know it.
    bytes.resize(all.back().offset + 50);
    const std::uint64_t committed[2] = {all.back().offset, ~all.back().offset};
    std::memcpy(bytes.data() + offsetof(orr_otrace_header, committed), committed, sizeof committed);
    auto reader = TraceReader::parse(bytes, "x.otrace");
    ASSERT_TRUE(reader) << reader.error();
    EXPECT_TRUE(reader->info().crashed);
    const auto replayer = Replayer::open(*std::move(reader));
    ASSERT_TRUE(replayer) << replayer.error();
    EXPECT_FALSE((*replayer)->divergence());
}

// A process that records, and dies of SIGKILL at no moment of its choosing.
TEST(Crash, AKilledCardsRecordingIsReadable) {
    const TemporaryFile file;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        CardConfig config = CardRig::config();
        config.record = file.path();
        FirmwareRig fw(FirmwareRig::config(std::move(config)));
        const CardThread thread(fw.card());
        fw.boot();
        fw.make_queue(1);
        orr_packet_fill nop{};
        nop.header.opcode = ORR_PKT_NOP;
        for (;;) {
            fw.push(1, nop);
            fw.submit(1);
            while (std::atomic_ref(fw.ring(1).consumer).load(std::memory_order_acquire) !=
                   fw.ring(1).producer)
                std::this_thread::yield();
        }
    }
    // Its file tells when there is something to find in it.
    constexpr std::uint64_t kSteps = 100'000;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (bool enough = false; !enough && std::chrono::steady_clock::now() < until;) {
        const auto so_far = Replayer::open(file.path());
        enough = so_far && (*so_far)->end() > kSteps;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto replayer = Replayer::open(file.path());
    ASSERT_TRUE(replayer) << replayer.error();
    EXPECT_TRUE((*replayer)->info().crashed);
    EXPECT_FALSE((*replayer)->divergence());
    EXPECT_GT((*replayer)->end(), kSteps);
    EXPECT_GT((*replayer)->record_count(), 10u);
}

}  // namespace
}  // namespace orrery::emu
