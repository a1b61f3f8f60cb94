#include "umd/runtime/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::umd {
namespace {

using ::testing::HasSubstr;

// What a card with `has` lacks for `needs`.
std::string lacking(const char* needs, const char* has) {
    const auto needed = Isa::parse(needs);
    const auto there = Isa::parse(has);
    EXPECT_TRUE(needed) << needs;
    EXPECT_TRUE(there) << has;
    return needed && there ? needed->lacking(*there) : "?";
}

// As clang-19 writes it for -march=rv64gcv and for the default.
constexpr const char* kVector =
    "rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_v1p0_zicsr2p0_zifencei2p0_zmmul1p0_zve32f1p0_zve32x1p0_zve64d1p0_"
    "zve64f1p0_zve64x1p0_zvl128b1p0_zvl32b1p0_zvl64b1p0";
constexpr const char* kScalar = "rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_zicsr2p0_zmmul1p0";
// And for -march=rv64gcv_zvfh_zvfbfwma.
constexpr const char* kHalf =
    "rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_v1p0_zicsr2p0_zifencei2p0_zmmul1p0_zfbfmin1p0_zfhmin1p0_zve32f1p0_"
    "zve32x1p0_zve64d1p0_zve64f1p0_zve64x1p0_zvfbfmin1p0_zvfbfwma1p0_zvfh1p0_zvfhmin1p0_zvl128b1p0_zvl32b1p0_"
    "zvl64b1p0";
constexpr const char* kScalarCard = "rv64imafdc_zicntr_zicsr_zifencei";
constexpr const char* kVectorCard = "rv64imafdcv_zicntr_zicsr_zifencei_zfhmin_zvfh_zvl2048b";
constexpr const char* kHalfCard =
    "rv64imafdcv_zicntr_zicsr_zifencei_zfbfmin_zfhmin_zvfbfmin_zvfbfwma_zvfh_zvl2048b";

TEST(Isa, ReadsWhatCompilersAndCardsWrite) {
    EXPECT_EQ(Isa::parse(kScalar)->text(), "rv64imafdc_zicsr_zmmul");
    EXPECT_EQ(Isa::parse(kScalar)->vlen(), 0u);
    EXPECT_EQ(Isa::parse(kVector)->vlen(), 128u);
    EXPECT_EQ(Isa::parse("rv64gcv")->vlen(), 128u);
    EXPECT_EQ(Isa::parse("rv64gcv_zvl512b")->vlen(), 512u);
    EXPECT_EQ(Isa::parse("rv64imafd_zvl1024b1p0")->vlen(), 1024u);
    EXPECT_EQ(lacking("rv64gc", "rv64imafdc_zicsr_zifencei"), "");
    EXPECT_EQ(lacking("rv64imafdc_zicsr_zifencei", "rv64gc"), "");
}

TEST(Isa, SaysWhatACardLacks) {
    EXPECT_EQ(lacking(kScalar, kScalarCard), "");
    EXPECT_EQ(lacking(kScalar, kVectorCard), "");
    EXPECT_EQ(lacking(kVector, kVectorCard), "");
    EXPECT_EQ(lacking(kVector, kScalarCard), "v with VLEN >= 128");
    EXPECT_EQ(lacking("rv64gcv_zvl512b", kScalarCard), "v with VLEN >= 512");
    EXPECT_EQ(lacking("rv64gcv_zvl4096b", kVectorCard), "VLEN >= 4096");
    EXPECT_EQ(lacking("rv64gcv_zvl2048b", kVectorCard), "");
    EXPECT_EQ(lacking("rv64gc_zve32x", kScalarCard), "vectors with VLEN >= 32");
    EXPECT_EQ(lacking("rv64gc_zve32x", kVectorCard), "");
    EXPECT_EQ(lacking("rv64gcv_zvfh_zvfhmin_zfhmin_zbb_zba", kVectorCard), "zba, zbb");
    EXPECT_EQ(lacking("rv64gcv_zvfh", kScalarCard), "v with VLEN >= 128, zvfh, zvfhmin");
    EXPECT_EQ(lacking("rv64gcv_zvfbfwma", kVectorCard), "zvfbfmin, zvfbfwma");
    EXPECT_EQ(lacking(kHalf, kHalfCard), "");
    EXPECT_EQ(lacking(kHalf, kVectorCard), "zfbfmin, zvfbfmin, zvfbfwma");
    EXPECT_EQ(lacking(kHalf, "rv64imafdcv_zicsr_zifencei_zvfbfwma_zvfh"), "zfbfmin, zfhmin");
    EXPECT_EQ(lacking("rv64gch", kVectorCard), "h");
}

TEST(Isa, OneThatIsNoneIsAnError) {
    for (const char* text : {"", "rv64", "rv32gc", "rv64_", "rv64G", "rv64gc_", "rv64gc_zv\n", "rv64gc z",
                             "rv64gc_Z", "rv642p0", "x", "rv64gc_zbb-"}) {
        const auto isa = Isa::parse(text);
        ASSERT_FALSE(isa) << text;
        EXPECT_THAT(isa.error().text, HasSubstr("is no ISA of a 64-bit RISC-V core"));
        EXPECT_EQ(isa.error().text.find('\n'), std::string::npos);
    }
    EXPECT_FALSE(Isa::parse("rv64g" + std::string(5000, '_')));
}

}  // namespace
}  // namespace orrery::umd
