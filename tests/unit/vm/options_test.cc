#include "tools/vm/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tools/vm/qemu.h"
#include "tools/vm/run/several.h"
#include "tools/vm/terminal.h"

namespace orrery::vm {
namespace {

Options good(const std::vector<std::string>& arguments) {
    auto parsed = parse_options(arguments);
    EXPECT_TRUE(std::holds_alternative<Options>(parsed));
    return std::holds_alternative<Options>(parsed) ? std::get<Options>(parsed) : Options{};
}

int status(const std::vector<std::string>& arguments) {
    auto parsed = parse_options(arguments);
    const int* code = std::get_if<int>(&parsed);
    return code != nullptr ? *code : -1;
}

TEST(Options, AllAfterTheDashesIsTheCommand) {
    const Options options = good({"--cards", "2", "--", "prog", "--cards", "9", "--", "x"});
    EXPECT_EQ(options.cards, 2U);
    EXPECT_EQ(options.command, (std::vector<std::string>{"prog", "--cards", "9", "--", "x"}));
}

TEST(Options, RepeatedOptionsKeepTheirOrder) {
    const Options options = good({"--qemu-arg", "-device", "--qemu-arg", "foo", "--file", "/a", "--file",
                                  "b:/c", "--no-module", "--", "x"});
    EXPECT_EQ(options.qemu_args, (std::vector<std::string>{"-device", "foo"}));
    ASSERT_EQ(options.files.size(), 2U);
    EXPECT_EQ(options.files[0].guest, "");
    EXPECT_EQ(options.files[1].host, "b");
    EXPECT_EQ(options.files[1].guest, "/c");
    EXPECT_FALSE(options.module);
}

TEST(Options, AnArgumentForTheCardsMayNameOneOfThem) {
    using Arguments = std::vector<std::vector<std::string>>;
    EXPECT_EQ(good({"--cards", "3", "--card-arg", "--workers=1", "--card-arg", "2:--threads=2", "--card-arg",
                    "0:--gdb", "--card-arg", "0:1234", "--card-arg", "--link=0:listen:/x", "--", "x"})
                  .card_args,
              (Arguments{{"--workers=1", "--link=0:listen:/x", "--gdb", "1234"},
                         {"--workers=1", "--link=0:listen:/x"},
                         {"--workers=1", "--link=0:listen:/x", "--threads=2"}}));
    EXPECT_EQ(status({"--cards", "2", "--card-arg", "2:--threads=2", "--", "x"}), kExitUsage);
}

TEST(Options, SeveralVmsShareTheCardsOfATopology) {
    const Options all =
        good({"--vms", "2", "--cards", "2", "--topology", "ring", "--faults", "3:drop", "--", "x"});
    EXPECT_EQ(all.cards, 2U);
    EXPECT_EQ(all.joined.cards, 4U);
    EXPECT_EQ(all.faults, (std::vector<std::string>{"", "", "", "drop"}));
    EXPECT_EQ(good({"--vms", "3", "--", "x"}).joined.cards, 3U);
    const Options second = options_of(all, 1);
    EXPECT_EQ(second.first_card(), 2U);
    EXPECT_EQ(second.env, (std::vector<std::string>{"ORR_VM=1", "ORR_VMS=2"}));
    EXPECT_EQ(second.module_params, "first_node=512 nodes=511");
    EXPECT_EQ(status({"--vms", "4", "--cards", "5", "--", "x"}), kExitUsage);
    EXPECT_EQ(status({"--vms", "0", "--", "x"}), kExitUsage);
    EXPECT_EQ(status({"--vms", "9", "--", "x"}), kExitUsage);
    EXPECT_EQ(status({"--vms", "2", "--shell"}), kExitUsage);
    EXPECT_EQ(status({"--vms", "2", "--net", "lab:1", "--", "x"}), kExitUsage);
    EXPECT_EQ(status({"--vms", "2", "--vm", "1", "--", "x"}), kExitUsage);
    const std::string file = testing::TempDir() + "three.toml" + std::to_string(::getpid());
    std::ofstream(file) << "cards = 3\nshape = \"ring\"\n";
    EXPECT_EQ(status({"--vms", "2", "--topology", file, "--", "x"}), kExitUsage) << "not so many in each";
    std::remove(file.c_str());
}

TEST(Options, CardsAreJoinedInAChainOrAsTheTopologySays) {
    using topology::Shape;
    EXPECT_EQ(good({"--", "x"}).cards, 1U);
    EXPECT_EQ(good({"--cards", "0", "--", "x"}).cards, 0U);
    EXPECT_EQ(good({"--cards", "3", "--", "x"}).joined.links, topology::make(Shape::kChain, 3)->links);
    EXPECT_EQ(good({"--cards", "4", "--topology", "ring", "--", "x"}).joined.links,
              topology::make(Shape::kRing, 4)->links);
    EXPECT_EQ(status({"--cards", "17", "--", "x"}), kExitUsage);
    EXPECT_EQ(status({"--topology", "ring", "--", "x"}), kExitUsage);
    EXPECT_EQ(status({"--cards", "2", "--topology", "no-such-file", "--", "x"}), kExitUsage);
}

TEST(Options, ATopologyFileMaySayHowManyCardsThereAre) {
    const std::string file = testing::TempDir() + "topology.toml" + std::to_string(::getpid());
    std::ofstream(file) << "shape = 'torus'\ntorus = [3, 4]\n";
    EXPECT_EQ(good({"--topology", file, "--vram", "64M", "--", "x"}).cards, 12U);
    EXPECT_EQ(good({"--topology", file, "--vram", "64M", "--card-arg", "11:--threads=1", "--", "x"})
                  .card_args.size(),
              12U);
    EXPECT_EQ(status({"--topology", file, "--cards", "9", "--", "x"}), kExitUsage);
    const Options drawn = good({"--topology", file, "--vram", "64M", "--picture", "x.svg"});
    EXPECT_EQ(drawn.planned.cards.size(), 12U);
    EXPECT_EQ(drawn.planned.links.size(), 24U);
    EXPECT_TRUE(drawn.planned.ports.empty());
    std::remove(file.c_str());
}

TEST(Options, ATopologyNeedsNoMorePortsThanTheSkuHas) {
    EXPECT_EQ(status({"--cards", "8", "--topology", "mesh", "--", "x"}), kExitUsage);
    EXPECT_EQ(good({"--cards", "8", "--topology", "mesh", "--sku", "orrery-0", "--vram", "64M", "--", "x"})
                  .joined.links.size(),
              28U);
    EXPECT_EQ(good({"--cards", "8", "--topology", "mesh", "--card-arg", "--sku=orrery-0", "--", "x"})
                  .joined.links.size(),
              28U);
}

TEST(Options, Sizes) {
    const Options options = good({"--memory", "2G", "--vram", "1G", "--", "x"});
    EXPECT_EQ(options.memory_mib, 2048U);
    EXPECT_EQ(options.vram_bytes, std::uint64_t{1} << 30);
    for (const char* option : {"--memory", "--vram"})
        EXPECT_EQ(status({option, "1T", "--", "x"}), kExitUsage) << option;
}

TEST(Options, ChecksAreNames) {
    EXPECT_EQ(good({"--check", "race,memory", "--", "x"}).checks,
              (std::vector<std::string>{"race", "memory"}));
    EXPECT_EQ(status({"--check", "races", "--", "x"}), kExitUsage);
}

TEST(Options, ASkuIsANameOrAFileAndSaysHowMuchVramThereIs) {
    EXPECT_EQ(good({"--", "x"}).vram_bytes, std::uint64_t{256} << 20);
    EXPECT_EQ(good({"--sku", "orrery-0", "--", "x"}).vram_bytes, std::uint64_t{32} << 30);
    EXPECT_EQ(good({"--sku", "orrery-0", "--vram", "1G", "--", "x"}).vram_bytes, std::uint64_t{1} << 30);
    EXPECT_EQ(status({"--sku", "/nonexistent", "--", "x"}), kExitUsage);
    EXPECT_EQ(status({"--sku", "orrery-2", "--", "x"}), kExitUsage);
    testing::internal::CaptureStdout();
    EXPECT_EQ(status({"--sku", "list"}), 0);
    EXPECT_NE(testing::internal::GetCapturedStdout().find("orrery-edge\n"), std::string::npos);
}

TEST(Options, TheTimeLimitIsForRunsThatNobodyWatches) {
    EXPECT_EQ(default_timeout(false), 300U);
    EXPECT_EQ(default_timeout(true), 0U);
    EXPECT_FALSE(good({"--", "x"}).timeout);
    EXPECT_EQ(good({"--timeout", "0", "--", "x"}).timeout, 0U);
}

TEST(Options, BadOnesAreRefused) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(status({"--help"}), 0);
    const std::string help = testing::internal::GetCapturedStdout();
    EXPECT_NE(help.find("--no-module "), std::string::npos);
    EXPECT_EQ(help.find("{false}"), std::string::npos) << "for people";
    for (const std::vector<std::string>& wrong :
         std::vector<std::vector<std::string>>{{},
                                               {"--nonsense", "--", "x"},
                                               {"command-without-dashes"},
                                               {"--shell", "--", "x"},
                                               {"--cards", "17", "--", "x"},
                                               {"--cards", "-1", "--", "x"},
                                               {"--cards", "two", "--", "x"},
                                               {"--smp", "0", "--", "x"},
                                               {"--memory", "1", "--", "x"},
                                               {"--vram", "big", "--", "x"},
                                               {"--vram", "64G", "--cards", "4", "--", "x"},
                                               {"--irq", "intx", "--", "x"},
                                               {"--env", "=x", "--", "x"},
                                               {"--env", "novalue", "--", "x"},
                                               {"--no-module", "--expect-probe-failure", "--", "x"},
                                               {"--file", "", "--", "x"},
                                               {"--accel", "hvf", "--", "x"},
                                               {"--kernel", "lts", "--modules", "/m", "--", "x"}})
        EXPECT_EQ(status(wrong), kExitUsage) << (wrong.empty() ? "" : wrong[0] + " " + wrong.back());
}

TEST(Qemu, PortsLeaveRoomForBothBars) {
    EXPECT_EQ(port_reserve(std::uint64_t{256} << 20), std::uint64_t{512} << 20);
    EXPECT_EQ(port_reserve(std::uint64_t{300} << 20), std::uint64_t{1} << 30);
    EXPECT_EQ(port_reserve(std::uint64_t{64} << 30), std::uint64_t{128} << 30);
    EXPECT_EQ(pci_window(std::uint64_t{256} << 20, 16), std::uint64_t{32} << 30);
    EXPECT_EQ(pci_window(std::uint64_t{64} << 30, 2), kMaxPciWindow);
    EXPECT_EQ(port_reserve(~std::uint64_t{0}), std::uint64_t{2} << 40);
}

TEST(Terminal, CtrlAXLeaves) {
    EscapeFilter filter;
    std::string out;
    EXPECT_FALSE(filter.feed("ab\x01\x01", out));
    EXPECT_FALSE(filter.feed("\x01", out));
    EXPECT_FALSE(filter.feed("cx", out));
    EXPECT_EQ(out,
              "ab\x01\x01"
              "cx");
    EXPECT_FALSE(filter.feed("\x01", out));
    EXPECT_TRUE(filter.feed("x", out));
}

}  // namespace
}  // namespace orrery::vm
