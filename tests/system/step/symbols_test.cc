// A recording is complete: it shows functions and sources wherever it is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>

#include <orrery/hw/trace.h>

#include "tools/scenario/runner.h"
#include "tools/step/commands/debugger.h"
#include "tools/text/files.h"

namespace orrery::step {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class CarriedSymbols : public ::testing::Test {
  protected:
    ~CarriedSymbols() override { std::filesystem::remove(file_); }

    void record(const std::vector<std::uint8_t>& symbols) {
        const auto scenario = scenario::Scenario::load(SCENARIO);
        ASSERT_TRUE(scenario) << scenario.error();
        scenario::Options options;
        options.record = {file_};
        options.image.set_symbols(symbols);
        const auto result = scenario::run(*scenario, options);
        ASSERT_TRUE(result) << result.error();
    }
    std::unique_ptr<Debugger> open(const std::string& file) {
        auto session = open_session(file, {});
        if (!session) {
            problem_ = session.error().text;
            return nullptr;
        }
        auto debugger = Debugger::make(std::move(*session), {});
        EXPECT_TRUE(debugger) << debugger.error().text;
        return debugger ? std::move(*debugger) : nullptr;
    }

    const std::string file_ = ::testing::TempDir() + fmt::format("orrery-symbols-{}.otrace", ::getpid());
    const std::vector<std::uint8_t> built_ = scenario::Image::built().symbols();
    std::string problem_;
};

TEST_F(CarriedSymbols, ComeWithTheRecordingAndNeedNoSourceTree) {
    ASSERT_FALSE(built_.empty()) << "the firmware's build makes them";
    ASSERT_NO_FATAL_FAILURE(record(built_));
    EXPECT_LT(std::filesystem::file_size(file_), 512u << 10);
    const auto debugger = open(file_);
    ASSERT_TRUE(debugger) << problem_;
    EXPECT_EQ(debugger->program().name(), "in the recording");
    EXPECT_THAT(debugger->notes(), testing::IsEmpty());
    const auto list = debugger->execute("list Firmware::pass");
    ASSERT_TRUE(list) << list.error().text;
    EXPECT_THAT(list->text, HasSubstr("bool Firmware::pass()"));
    ASSERT_TRUE(debugger->execute("goto decision 3"));
    const auto bt = debugger->execute("bt");
    ASSERT_TRUE(bt) << bt.error().text;
    EXPECT_THAT(bt->text, HasSubstr("orr_main"));
    // So are the sources of all functions that are ours.
    std::size_t ours = 0;
    const Program& program = debugger->program();
    for (const Function& function : program.debug().functions()) {
        if (!function.declared || !function.declared->file.starts_with("firmware/")) continue;
        ++ours;
        EXPECT_NE(program.source_text(function.declared->file, function.declared->line, 2, {}), "")
            << function.declared->file;
    }
    EXPECT_GT(ours, 100u);
}

TEST_F(CarriedSymbols, OfAnotherBuildAreNotTaken) {
    auto other = built_;
    orr_otrace_symbols head{};
    std::memcpy(&head, other.data(), sizeof head);
    head.build_id[0] ^= 1;
    std::memcpy(other.data(), &head, sizeof head);
    ASSERT_NO_FATAL_FAILURE(record(other));
    const auto session = open_session(file_, {});
    ASSERT_TRUE(session) << session.error().text;
    EXPECT_TRUE((*session)->about().symbols.empty());
}

TEST_F(CarriedSymbols, OfOtherCodeOrDamagedOnesAreNamedAndNotBelieved) {
    const auto with = [&](std::size_t offset, std::size_t bytes) {
        auto changed = built_;
        changed[offset] ^= 0xff;
        changed.resize(bytes);
        record(changed);
        const auto debugger = open(file_);
        EXPECT_TRUE(debugger) << problem_;
        return debugger ? Program::find(debugger->session().about().elf, debugger->session().about().symbols,
                                        "", problem_)
                              ->name()
                        : "";
    };
    EXPECT_NE(with(offsetof(orr_otrace_symbols, code_sha256), built_.size()), "in the recording");
    EXPECT_THAT(problem_, HasSubstr("of another firmware than its image"));
    EXPECT_NE(with(sizeof(orr_otrace_symbols) + 100, built_.size() / 2), "in the recording");
    EXPECT_THAT(problem_, HasSubstr("damaged"));
    EXPECT_NE(with(sizeof(orr_otrace_symbols) - 1, sizeof(orr_otrace_symbols)), "in the recording");
    EXPECT_NE(with(offsetof(orr_otrace_symbols, version), built_.size()), "in the recording");
    EXPECT_THAT(problem_, HasSubstr("are of version"));
}

TEST_F(CarriedSymbols, OldRecordingsOpenWithoutThem) {
    const auto debugger = open(OLD_RECORDING);
    ASSERT_TRUE(debugger) << problem_;
    EXPECT_EQ(debugger->session().about().divergence, "");
    EXPECT_THAT(debugger->notes(), Contains(HasSubstr("no symbols and no source lines")));
    EXPECT_TRUE(debugger->execute("step 3 decision"));
    EXPECT_TRUE(debugger->execute("why"));
}

// One from before recordings told what the firmware says: it is replayed when it is opened.
TEST_F(CarriedSymbols, RecordingsOfFormat12OpenAsTheyDid) {
    const auto debugger = open(RECORDING_1_2);
    ASSERT_TRUE(debugger) << problem_;
    EXPECT_EQ(debugger->session().about().divergence, "");
    EXPECT_TRUE(debugger->session().about().verified);
    EXPECT_GT(debugger->session().about().hashes_checked, 0u);
    EXPECT_GT(debugger->history().decisions().size(), 3u);
    EXPECT_EQ(debugger->program().name(), "in the recording");
    EXPECT_TRUE(debugger->execute("step 3 decision"));
    EXPECT_TRUE(debugger->execute("why"));
    EXPECT_TRUE(debugger->execute("back 1 decision"));
    EXPECT_TRUE(debugger->execute("verify"));
}

// Makes the recording one of a later format, with a block of a kind that nobody here knows.
TEST_F(CarriedSymbols, WhatIsNewerThanTheReaderIsLeftOutOrRefused) {
    ASSERT_NO_FATAL_FAILURE(record(built_));
    auto bytes = *text::read_file(file_);
    orr_otrace_header header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    for (std::size_t at = header.header_bytes; at < bytes.size();) {
        orr_otrace_block block{};
        std::memcpy(&block, bytes.data() + at, sizeof block);
        const std::size_t size = sizeof block + block.stored_bytes;
        if (block.kind == ORR_OTRACE_SYMBOLS) {
            block.kind = 77;
            block.checksum = 0;
            std::memcpy(bytes.data() + at, &block, sizeof block);
            block.checksum = XXH3_64bits(bytes.data() + at, size);
            std::memcpy(bytes.data() + at, &block, sizeof block);
        }
        at += size;
    }
    const auto write = [&](std::uint32_t minor) {
        header.version = ORR_OTRACE_MAJOR << 16 | minor;
        orr_otrace_header plain = header;
        plain.checksum = plain.committed = plain.not_committed = 0;
        std::memcpy(bytes.data(), &plain, sizeof plain);
        header.checksum = XXH3_64bits(bytes.data(), header.header_bytes);
        std::memcpy(bytes.data(), &header, sizeof header);
        ASSERT_TRUE(text::write_file(
            file_, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
    };
    write(ORR_OTRACE_MINOR);
    EXPECT_FALSE(open(file_));
    EXPECT_THAT(problem_, HasSubstr("a block of kind 77, which is unknown"));
    EXPECT_THAT(problem_, Not(HasSubstr("\n")));
    write(ORR_OTRACE_MINOR + 1);
    const auto debugger = open(file_);
    ASSERT_TRUE(debugger) << problem_;
    EXPECT_TRUE(debugger->session().about().symbols.empty());
    EXPECT_TRUE(debugger->execute("summary"));
}

}  // namespace
}  // namespace orrery::step
