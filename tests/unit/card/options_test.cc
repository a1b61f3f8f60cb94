#include "emulator/main/options.h"

#include "emulator/api/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::emu {
namespace {

using testing::HasSubstr;

std::expected<Options, std::string> parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "orrery-card");
    return Options::parse(static_cast<int>(arguments.size()), arguments.data());
}

TEST(CardOptions, HaveDefaults) {
    const auto options = parse({"--socket", "/tmp/x", "--index", "3"});
    ASSERT_TRUE(options) << options.error();
    EXPECT_EQ(options->socket, "/tmp/x");
    EXPECT_EQ(options->card.uid, 0x4f520004u);
    EXPECT_EQ(options->interrupts, InterruptMode::kMsix);
    EXPECT_EQ(options->card.spin_us, 200u);
    EXPECT_TRUE(options->card.host_atomics);
    EXPECT_FALSE(options->card.key);
}

TEST(CardOptions, TheLastOfTwoCounts) {
    const auto options = parse(
        {"--socket", "s",         "--index", "0",           "--vram",      "1G",          "--irq",
         "msix",     "--threads", "4",       "--vram=512M", "--irq=msi",   "--threads=1", "--check",
         "race",     "--check",   "memory",  "--link",      "0:listen:/a", "--link",      "1:connect:/b"});
    ASSERT_TRUE(options) << options.error();
    EXPECT_EQ(options->card.vram_bytes, std::uint64_t{512} << 20);
    EXPECT_EQ(options->interrupts, InterruptMode::kMsi);
    EXPECT_EQ(options->card.threads, 1u);
    EXPECT_EQ(options->card.check, kCheckRace | kCheckMemory);
    EXPECT_EQ(options->card.links.size(), 2u);
}

TEST(CardOptions, AFlightRecorderThatCannotBeIsRefused) {
    const auto with = [](std::vector<const char*> more) {
        more.insert(more.begin(), {"--socket", "s", "--index", "0"});
        const auto options = parse(std::move(more));
        return options ? options->card.flight_segment == 0 ? "none" : "made" : options.error();
    };
    constexpr const char* kNone = "--flight-file: there is no flight recorder; give --flight MIB too";
    EXPECT_EQ(with({"--flight", "16", "--record", "r"}),
              "--flight: a recording (--record) has all of it; give one of the two");
    EXPECT_EQ(with({"--flight-file", "f"}), kNone);
    EXPECT_EQ(with({"--flight", "0", "--flight-file", "f"}), kNone);
    EXPECT_EQ(with({"--flight", "0", "--record", "r"}), "none");
    EXPECT_EQ(with({"--flight", "16", "--flight-file", "f"}), "made");
}

TEST(CardOptions, TakeEverythingThatIsDocumented) {
    const auto options = parse({"--socket",
                                "s",
                                "--index",
                                "0",
                                "--vram",
                                "64G",
                                "--irq",
                                "single",
                                "--spin-us",
                                "0",
                                "--uid",
                                "77",
                                "--link",
                                "0:listen:/tmp/a",
                                "--link",
                                "1:local:connect:/tmp/b",
                                "--log",
                                "l",
                                "--check",
                                "race,memory",
                                "--no-host-atomics",
                                "--threads",
                                "2",
                                "--launches",
                                "launches.txt"});
    ASSERT_TRUE(options) << options.error();
    EXPECT_EQ(options->card.check, kCheckRace | kCheckMemory);
    EXPECT_FALSE(options->card.host_atomics);
    EXPECT_EQ(options->card.threads, 2u);
    EXPECT_EQ(options->card.launches, "launches.txt");
    EXPECT_EQ(options->card.vram_bytes, std::uint64_t{64} << 30);
    EXPECT_EQ(options->interrupts, InterruptMode::kSingle);
    EXPECT_EQ(options->card.spin_us, 0u);
    EXPECT_EQ(options->card.uid, 77u);
    ASSERT_EQ(options->card.links.size(), 2u);
    EXPECT_TRUE(options->card.links[0].listen);
    EXPECT_EQ(options->card.links[1].path, "/tmp/b");
    EXPECT_EQ(options->log, "l");
}

TEST(CardOptions, BadOnesGetOneClearLine) {
    const auto error = [](std::vector<const char*> more) {
        std::vector<const char*> all{"--socket", "s", "--index", "0"};
        all.insert(all.end(), more.begin(), more.end());
        const auto options = parse(all);
        EXPECT_FALSE(options);
        const std::string text = options ? "" : options.error();
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
        return text;
    };
    EXPECT_THAT(parse({}).error(), HasSubstr("--socket is required"));
    EXPECT_THAT(error({"--vram", "100M"}), HasSubstr("--vram"));
    EXPECT_THAT(error({"--vram", "128G"}), HasSubstr("power of two"));
    EXPECT_THAT(error({"--irq", "intx"}), HasSubstr("--irq"));
    EXPECT_THAT(error({"--link", "9:listen:x"}), HasSubstr("--link"));
    EXPECT_THAT(error({"--link", "0:roce:listen:x"}), HasSubstr("no kind of link 'roce'"));
    EXPECT_THAT(error({"--sku", "/nonexistent"}), HasSubstr("/nonexistent"));
    EXPECT_THAT(error({"--fuses", "/nonexistent"}), HasSubstr("/nonexistent"));
    EXPECT_THAT(error({"--uid", "0"}), HasSubstr("--uid"));
    EXPECT_THAT(error({"--spin-us", "x"}), HasSubstr("--spin-us"));
    EXPECT_THAT(error({"--check", "races"}), HasSubstr("--check"));
    EXPECT_THAT(error({"--colour", "red"}), HasSubstr("--colour"));
    EXPECT_THAT(error({"file"}), HasSubstr("file"));
}

TEST(CardOptions, ALinkPortMustExistOnce) {
    CardConfig config;
    config.links.push_back(*LinkConfig::parse("5:connect:/tmp/none"));
    EXPECT_THAT(Card::create(config).error(), HasSubstr("this SKU has 4 ports"));
    config.links = {*LinkConfig::parse("1:connect:/tmp/none"), *LinkConfig::parse("1:connect:/tmp/none")};
    EXPECT_THAT(Card::create(config).error(), HasSubstr("given twice"));
}

}  // namespace
}  // namespace orrery::emu
