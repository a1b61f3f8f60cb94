#include "emulator/api/sku.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "emulator/api/size.h"
#include "emulator/skus/standard_sku.h"

namespace orrery::emu {
namespace {

using testing::HasSubstr;

// The standard SKU with `from` replaced by `to`; the error, or "good".
std::string with(const std::string& from, const std::string& to) {
    std::string text = kStandardSku;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto sku = Sku::parse(text, "test.toml");
    return sku ? "good" : sku.error();
}

TEST(SkuFile, TheStandardOneIsGood) {
    const auto sku = Sku::parse(kStandardSku, "standard");
    ASSERT_TRUE(sku) << sku.error();
    EXPECT_EQ(sku->name, "Orrery 1");
    EXPECT_EQ(sku->vram_bytes, 256u << 20);
    EXPECT_EQ(sku->cycle_ps, 1000u);
    EXPECT_EQ(sku->copy_engines, 2u);
    EXPECT_EQ(sku->vector_ports, 4u);
    EXPECT_EQ(sku->vector_cores, 8u);
    EXPECT_EQ(sku->copy_host_bytes_per_s, 32'000'000'000u);
    EXPECT_EQ(Sku::standard().name, sku->name);
}

TEST(SkuFile, ErrorsNameFileLineAndCause) {
    EXPECT_EQ(with("engines = 2", "engines = 0"),
              "test.toml:19: copy.engines must be a whole number from 1 to 16");
    EXPECT_THAT(with("engines = 2", "engines = \"two\""), HasSubstr("whole number"));
    EXPECT_THAT(with("engines = 2", "engines = 2.5"), HasSubstr("whole number"));
    EXPECT_THAT(with("engines = 2", "engines = -2"), HasSubstr("whole number"));
    EXPECT_THAT(with("engines = 2", ""), HasSubstr("copy.engines is missing"));
    EXPECT_THAT(with("[link]", "[lynk]"), HasSubstr("link.ports is missing"));
    EXPECT_THAT(with("[link]", "[other]\nx = 1\n[link]"), HasSubstr("'other' is no section"));
    EXPECT_THAT(with("engines = 2", "engines = 2\nengine = 3"),
                HasSubstr("test.toml:20: 'copy.engine' is no key"));
    EXPECT_THAT(with("\"256M\"", "\"255M\""), HasSubstr("power of two"));
    EXPECT_THAT(with("\"256M\"", "\"many\""), HasSubstr("not a size"));
    EXPECT_THAT(with("\"256M\"", "256"), HasSubstr("text in quotes"));
    EXPECT_THAT(with("\"Orrery 1\"", "\"\""), HasSubstr("1 to 31 characters"));
    EXPECT_THAT(with("\"Orrery 1\"", "\"01234567890123456789012345678901\""),
                HasSubstr("1 to 31 characters"));
    EXPECT_THAT(with("\"Orrery 1\"", "\"\\u00e9\""), HasSubstr("printable ASCII"));
    EXPECT_THAT(with("1_000_000_000", "3_000_000_000"), HasSubstr("divide 10^12"));
    EXPECT_THAT(with("[card]", "[card"), HasSubstr("test.toml:4: "));
    EXPECT_EQ(with("\"256M\"", "\"64G\""), "good");
}

TEST(SkuFile, AMissingFileIsAnError) {
    EXPECT_THAT(Sku::load("/nonexistent/x.toml").error(), HasSubstr("cannot be read"));
    EXPECT_FALSE(Sku::load("/"));
    EXPECT_FALSE(Sku::load("/dev/zero"));
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
