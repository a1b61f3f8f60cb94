#include "emulator/api/sku.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include <orrery/hw/bar0.h>

#include "emulator/api/size.h"

namespace orrery::emu {
namespace {

using testing::HasSubstr;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

// The standard SKU with `from` replaced by `to`; the error, or "good".
std::string with(const std::string& from, const std::string& to) {
    const auto sku = Sku::parse(replaced(Sku::standard().text, from, to), "test.toml");
    return sku ? "good" : sku.error();
}

// As SKU files were before values had an origin: [value, ...] is value.
std::string plain(const std::string& text) {
    std::istringstream in(text);
    std::string out;
    for (std::string line; std::getline(in, line);) {
        const auto open = line.find("= [");
        const auto end = line.find(", \"");
        if (line[0] != '#' && open != std::string::npos) {
            line = line.substr(0, open) + "= " + line.substr(open + 3, end - open - 3);
        }
        out += line + "\n";
    }
    return out;
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, at);)
        out.push_back(part);
    return out;
}

TEST(SkuFile, TheStandardOneIsGood) {
    const Sku& sku = Sku::standard();
    EXPECT_EQ(sku.name, "Orrery 1");
    EXPECT_EQ(sku.vram_bytes, 256u << 20);
    EXPECT_EQ(sku.cycle_ps, 1000u);
    EXPECT_EQ(sku.copy_engines, 2u);
    EXPECT_EQ(sku.vector_ports, 4u);
    EXPECT_EQ(sku.vector_cores, 8u);
    EXPECT_EQ(sku.vector_hz, 1'000'000'000u);
    EXPECT_EQ(sku.copy_vram_bytes_per_s, 800'000'000'000u);
    EXPECT_EQ(sku.copy_host_bytes_per_s, 32'000'000'000u);
    EXPECT_EQ(sku.link_ports * sku.link_gbps, 1600u);
}

TEST(SkuFile, ThreeComeWithTheProgramAndEachIsGood) {
    std::set<std::string> called;
    for (const std::string_view name : Sku::names()) {
        const auto sku = Sku::find(std::string(name));
        ASSERT_TRUE(sku) << sku.error();
        called.insert(sku->name);
        ASSERT_EQ(sku->sources.size(), sku_keys().size());
        for (std::size_t n = 0; n < sku_keys().size(); ++n) {
            if (sku_keys()[n].kind == SkuKey::Kind::kName) continue;
            EXPECT_NE(sku->sources[n].origin, SkuOrigin::kUnsaid) << full_name(sku_keys()[n]);
        }
    }
    EXPECT_EQ(called, (std::set<std::string>{"Orrery 0", "Orrery 1", "Orrery Edge"}));
    EXPECT_EQ(Sku::names().front(), "orrery-1");
    EXPECT_EQ(Sku::find("orrery-1")->text, Sku::standard().text);
    EXPECT_EQ(Sku::find("orrery-2").error(),
              "orrery-2: neither a SKU that comes with Orrery (orrery-1, orrery-0, orrery-edge) nor a file");
}

TEST(SkuFile, ErrorsNameFileLineAndCause) {
    const std::string engines = "engines = [2,";
    const auto line = [](const std::string& text, const std::string& what) {
        return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(what)), '\n') +
               1;
    };
    EXPECT_EQ(with(engines, "engines = [0,"),
              fmt::format("test.toml:{}: copy.engines must be a whole number from 1 to 16",
                          line(Sku::standard().text, engines)));
    EXPECT_THAT(with(engines, "engines = [17,"), HasSubstr("whole number"));
    EXPECT_THAT(with(engines, "engines = [\"two\","), HasSubstr("whole number"));
    EXPECT_THAT(with(engines, "engines = [2.5,"), HasSubstr("whole number"));
    EXPECT_THAT(with(engines, "engines = [-2,"), HasSubstr("whole number"));
    EXPECT_THAT(with(engines, "# engines = [2,"), HasSubstr("copy.engines is missing"));
    EXPECT_THAT(with("boot_mb_per_s", "# boot_mb_per_s"), HasSubstr("core.boot_mb_per_s is missing"));
    EXPECT_THAT(with("[link]", "[lynk]"), HasSubstr("link.ports is missing"));
    EXPECT_THAT(with("[link]", "[other]\nx = 1\n[link]"), HasSubstr("'other' is no section"));
    EXPECT_THAT(with(engines, "engine = 3\nengines = [2,"),
                HasSubstr("'copy.engine' is no key of a SKU file (docs/skus.md has all)"));
    EXPECT_THAT(with("\"256M\"", "\"255M\""), HasSubstr("power of two"));
    EXPECT_THAT(with("\"256M\"", "\"many\""), HasSubstr("not a size"));
    EXPECT_THAT(with("\"256M\"", "256"), HasSubstr("text in quotes"));
    EXPECT_THAT(with("\"Orrery 1\"", "\"\""), HasSubstr("1 to 31 characters"));
    EXPECT_THAT(with("\"Orrery 1\"", "\"01234567890123456789012345678901\""),
                HasSubstr("1 to 31 characters"));
    EXPECT_THAT(with("\"Orrery 1\"", "\"\\u00e9\""), HasSubstr("printable ASCII"));
    EXPECT_THAT(with("1_000_000_000", "3_000_000_000"), HasSubstr("divide 10^12"));
    EXPECT_THAT(with("[card]", "[card"), HasSubstr("test.toml:"));
    EXPECT_EQ(with("\"256M\"", "\"64G\""), "good");
}

// What the tests of it hold for a card that there is (docs/skus.md).
TEST(SkuFile, ProfilingIsFreeAndNothingElse) {
    for (const std::string_view name : Sku::names())
        EXPECT_EQ(Sku::find(std::string(name))->profiling_record_ps, 0u) << name;
    EXPECT_THAT(with("\nrecord_ps = [0,", "\nrecord_ps = [1,"),
                HasSubstr("profiling.record_ps must be a whole number from 0 to 0"));
    EXPECT_THAT(with("\nrecord_ps", "\n# record_ps"), HasSubstr("profiling.record_ps is missing"));
}

TEST(SkuFile, EachNumberSaysWhereItIsFrom) {
    const std::string whole = "[4, \"assumed\", \"as 400 Gb Ethernet has\"]";
    EXPECT_EQ(with(whole, "[4, \"measured\",\n \"by hand\"]"), "good");
    EXPECT_THAT(with(whole, "4"), HasSubstr("link.lanes must say where it is from: [value, \"assumed\","));
    EXPECT_THAT(with(whole, "[4]"), HasSubstr("link.lanes must be [value, \"origin\", \"source\"]"));
    EXPECT_THAT(with(whole, "[]"), HasSubstr("[value, \"origin\", \"source\"]"));
    EXPECT_THAT(with(whole, "[4, \"assumed\"]"), HasSubstr("[value, \"origin\", \"source\"]"));
    EXPECT_THAT(with(whole, "[4, \"assumed\", \"x\", 1]"), HasSubstr("[value, \"origin\", \"source\"]"));
    EXPECT_THAT(with(whole, "[4, 1, \"x\"]"), HasSubstr("[value, \"origin\", \"source\"]"));
    EXPECT_THAT(with(whole, "[4, \"guessed\", \"x\"]"),
                HasSubstr("'guessed' is no origin: published, measured, derived, assumed"));
    EXPECT_THAT(with(whole, "[4, \"unsaid\", \"x\"]"), HasSubstr("'unsaid' is no origin"));
    EXPECT_THAT(with(whole, "[4, \"assumed\", \"\"]"), HasSubstr("1 to 300 characters"));
    EXPECT_THAT(with(whole, "[4, \"assumed\", \"a\\tb\"]"), HasSubstr("printable ASCII"));
    EXPECT_THAT(with(whole, "[4, \"assumed\", \"" + std::string(301, 'x') + "\"]"), HasSubstr("300"));
}

TEST(SkuFile, ThatOfAnOldRecordingIsAsItWas) {
    const std::string old = plain(Sku::standard().text);
    EXPECT_THAT(old, HasSubstr("\nengines = 2\n"));
    EXPECT_FALSE(Sku::parse(old, "old"));
    const auto sku = Sku::parse_recorded(old, "old");
    ASSERT_TRUE(sku) << sku.error();
    EXPECT_EQ(sku->copy_engines, 2u);
    EXPECT_EQ(sku->vram_bytes, 256u << 20);
    // Every key that came later may be missing, and is then what it says in the table.
    std::string older = old;
    for (const SkuKey& key : sku_keys()) {
        if (key.since > 1) older = replaced(older, fmt::format("\n{} = ", key.name), "\n# = ");
    }
    const auto first = Sku::parse_recorded(older, "older");
    ASSERT_TRUE(first) << first.error();
    EXPECT_EQ(first->boot_bytes_per_s, 0u);
    EXPECT_THAT(Sku::parse_recorded(replaced(old, "engines = 2\n", ""), "old").error(),
                HasSubstr("copy.engines is missing"));
    EXPECT_THAT(Sku::parse_recorded(replaced(old, "engines = 2", "engines = 2\nx = 1"), "old").error(),
                HasSubstr("'copy.x' is no key"));
    // Today's open as well.
    EXPECT_EQ(Sku::parse_recorded(Sku::standard().text, "new")->table(), Sku::standard().table());
}

TEST(SkuFile, AMissingFileIsAnError) {
    EXPECT_THAT(Sku::load("/nonexistent/x.toml").error(), HasSubstr("cannot be read"));
    EXPECT_FALSE(Sku::load("/"));
    EXPECT_FALSE(Sku::load("/dev/zero"));
}

TEST(SkuTable, HasALineAKeyAndValuesAsTheyAre) {
    Sku sku = Sku::standard();
    sku.vector_cores = 77;
    const std::string table = sku.table();
    EXPECT_LE(table.size(), ORR_SKU_MAX_BYTES);
    const auto lines = split(table, '\n');
    ASSERT_EQ(lines.size(), sku_keys().size());
    for (std::size_t n = 0; n < lines.size(); ++n) {
        const auto parts = split(lines[n], '\t');
        ASSERT_EQ(parts.size(), 6u) << lines[n];
        EXPECT_EQ(parts[0], full_name(sku_keys()[n]));
        EXPECT_EQ(parts[2], sku_keys()[n].unit);
        EXPECT_EQ(parts[5], sku_keys()[n].meaning);
    }
    EXPECT_TRUE(table.starts_with("card.name\tOrrery 1\t\t\t\twhat the card calls itself\n"));
    EXPECT_THAT(table, HasSubstr("\nvector.cores\t77\t\tassumed\t"));
    EXPECT_THAT(table, HasSubstr("\ncopy.vram_gb_per_s\t800\tGB/s\tassumed\ttwo stacks of HBM2E"));
    EXPECT_THAT(table, HasSubstr("card.vram\t268435456\tbytes\t"));
}

// docs/skus.md holds the table of keys: line by line what is made here.
TEST(SkuKeys, AreOnTheirPage) {
    std::ifstream in(SOURCE_FOLDER "/docs/skus.md");
    const std::string page{std::istreambuf_iterator<char>(in), {}};
    std::size_t rows = 0;
    for (const SkuKey& key : sku_keys()) {
        const std::string range =
            key.kind == SkuKey::Kind::kName   ? fmt::format("{} to {} characters", key.low, key.high)
            : key.kind == SkuKey::Kind::kSize ? fmt::format("{}M to {}G", key.low >> 20, key.high >> 30)
            : key.kind == SkuKey::Kind::kPowerOfTwo
                ? fmt::format("{} to {}, a power of two", key.low, key.high)
                : fmt::format("{} to {}", key.low, key.high);
        const std::string since = key.since == 1 ? "1" : fmt::format("{}; before: {}", key.since, key.before);
        EXPECT_THAT(page, HasSubstr(fmt::format("\n| `{}` | {} | {} | {} | {} |\n", full_name(key), key.unit,
                                                range, key.meaning, since)));
        EXPECT_FALSE(key.meaning.empty() || key.meaning.find('\t') != std::string::npos) << full_name(key);
        ++rows;
    }
    std::size_t on_page = 0;
    for (std::size_t at = 0; (at = page.find("\n| `", at)) != std::string::npos; ++at)
        ++on_page;
    EXPECT_EQ(on_page, rows) << "docs/skus.md has keys that are none";
}

TEST(Sizes, HaveBinarySuffixes) {
    EXPECT_EQ(parse_size("0"), 0u);
    EXPECT_EQ(parse_size("18446744073709551615"), ~std::uint64_t{0});
    EXPECT_EQ(parse_size("1K"), 1024u);
    EXPECT_EQ(parse_size("256M"), 256u << 20);
    EXPECT_EQ(parse_size("64G"), std::uint64_t{64} << 30);
    for (const char* bad : {"", "M", "-1", "1k", "1MB", "1.5G", " 1", "99999999999999999999",
                            "99999999999999G", "18446744073709551615K", "1T", "1KM"}) {
        EXPECT_FALSE(parse_size(bad)) << bad;
    }
}

}  // namespace
}  // namespace orrery::emu
