// The boot ROM: each image with a fault has its status, and nothing runs that is not signed.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

// A good image whose header or ELF a test changes before it is signed again.
class Image {
  public:
    Image() : bytes_(make_image(script_elf())) {}
    orr_image_header& header() { return *reinterpret_cast<orr_image_header*>(bytes_.data()); }
    Elf64_Ehdr& elf() { return *reinterpret_cast<Elf64_Ehdr*>(bytes_.data() + sizeof(orr_image_header)); }
    Elf64_Phdr& segment(unsigned number) {
        return *reinterpret_cast<Elf64_Phdr*>(bytes_.data() + sizeof(orr_image_header) + elf().e_phoff +
                                              number * sizeof(Elf64_Phdr));
    }
    // The first segment that is loaded.
    unsigned load() {
        for (unsigned i = 0; i < elf().e_phnum; ++i) {
            if (segment(i).p_type == PT_LOAD) return i;
        }
        return 0;
    }
    std::vector<std::uint8_t>& bytes() { return bytes_; }
    Image& sign_again() {
        sign(bytes_);
        return *this;
    }

  private:
    std::vector<std::uint8_t> bytes_;
};

class Boot : public testing::Test {
  protected:
    void expect(Image& image, std::uint32_t status, std::uint32_t detail = 0) {
        EXPECT_EQ(rig_.boot(image.bytes()), status);
        EXPECT_EQ(rig_.read32(ORR_R_BOOT_DETAIL), detail);
        EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_BOOT_FAILED);
        EXPECT_EQ(rig_.counter(ORR_CTR_CORE_INSTRUCTIONS), 0u);
    }
    CardRig rig_;
};

TEST_F(Boot, RunsASignedImage) {
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RESET);
    EXPECT_EQ(rig_.read32(ORR_R_BOOT_STATUS), ORR_BOOT_IDLE);
    rig_.boot_script();
    EXPECT_EQ(rig_.read32(ORR_R_PROGRESS), ORR_PROGRESS_READY);
    EXPECT_GT(rig_.counter(ORR_CTR_CORE_INSTRUCTIONS), 10u);
    EXPECT_EQ(rig_.soc(SOC_BOOT_ARG), CardRig::kScript);
    EXPECT_EQ(rig_.soc(SOC_BOOT_ENTRY), ORR_SRAM_BASE);
    EXPECT_GE(rig_.read64(ORR_R_MODEL_TIME), rig_.card().sku().boot_ps);
}

// The ROM reads and hashes piece by piece: no event of the card's thread takes a whole image, and the time
// goes by the size.
TEST_F(Boot, ALargeImageTakesItsTimeAndManyEvents) {
    Image image;
    const std::size_t small = image.bytes().size();
    ASSERT_EQ(rig_.boot(image.bytes()), ORR_BOOT_OK);
    const Sku& sku = rig_.card().sku();
    std::vector<std::uint8_t> large = image.bytes();
    large.resize(ORR_IMAGE_MAX_SIZE);  // what is behind the image is no part of it
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.settle();
    const ModelTime before = rig_.card().events().now();
    const std::uint64_t fired = rig_.card().events().fired();
    ASSERT_EQ(rig_.boot(large), ORR_BOOT_OK);
    EXPECT_GT(rig_.card().events().fired() - fired, 200u);
    EXPECT_GE(rig_.card().events().now() - before,
              sku.boot_ps + (ORR_IMAGE_MAX_SIZE - small) * (kPsPerSecond / sku.boot_bytes_per_s));
}

TEST_F(Boot, MemoryThatGoesWhileItIsReadIsToldOf) {
    std::vector<std::uint8_t> large = Image().bytes();
    large.resize(ORR_IMAGE_MAX_SIZE);
    std::ranges::copy(large, rig_.ram(CardRig::kImage));
    rig_.write64(ORR_R_BOOT_IMAGE, CardRig::kImage);
    rig_.write32(ORR_R_BOOT_SIZE, static_cast<std::uint32_t>(large.size()));
    rig_.write32(ORR_R_BOOT_START, 1);
    rig_.steps(4);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_BOOTING);
    rig_.unmap_ram();
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_BOOT_FAILED);
    EXPECT_EQ(rig_.read32(ORR_R_BOOT_STATUS), ORR_BOOT_BAD_ADDRESS);
}

TEST_F(Boot, FailsWithoutMappedMemory) {
    Image image;
    rig_.write64(ORR_R_BOOT_IMAGE, 0x1000);
    rig_.write32(ORR_R_BOOT_SIZE, 1000);
    rig_.write32(ORR_R_BOOT_START, 1);
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_BOOT_STATUS), ORR_BOOT_BAD_ADDRESS);
    // Half of it mapped.
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.write64(ORR_R_BOOT_IMAGE, kRamBase + kRamBytes - 4096);
    rig_.write32(ORR_R_BOOT_SIZE, 4097);
    rig_.write32(ORR_R_BOOT_START, 1);
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_BOOT_STATUS), ORR_BOOT_BAD_ADDRESS);
}

TEST_F(Boot, RefusesAShortHeader) {
    Image image;
    image.bytes().resize(sizeof(orr_image_header) - 1);
    expect(image, ORR_BOOT_TOO_SMALL, sizeof(orr_image_header));
}

TEST_F(Boot, RefusesNothingAtAll) {
    Image image;
    image.bytes().clear();
    expect(image, ORR_BOOT_TOO_SMALL, sizeof(orr_image_header));
}

TEST_F(Boot, RefusesATruncatedImage) {
    Image image;
    const auto whole = static_cast<std::uint32_t>(image.bytes().size());
    image.bytes().pop_back();
    expect(image, ORR_BOOT_TOO_SMALL, whole);
}

TEST_F(Boot, RefusesWhatIsNoImage) {
    Image image;
    image.header().magic ^= 1;
    expect(image, ORR_BOOT_BAD_MAGIC);
}

TEST_F(Boot, RefusesSizesThatMakeNoSense) {
    for (int fault = 0; fault < 5; ++fault) {
        CardRig rig;
        Image image;
        switch (fault) {
            case 0:
                image.header().header_size = 223;
                break;
            case 1:
                image.header().image_size = 223;
                break;
            case 2:
                image.header().image_size = ORR_IMAGE_MAX_SIZE + 1;
                break;
            case 3:
                image.header().reserved0 = 1;
                break;
            default:
                image.header().reserved1[63] = 1;
                break;
        }
        image.sign_again();
        EXPECT_EQ(rig.boot(image.bytes()), ORR_BOOT_BAD_HEADER) << fault;
    }
}

TEST_F(Boot, RefusesAnImageOverTheLimit) {
    Image image;
    image.bytes().resize(ORR_IMAGE_MAX_SIZE + 1);
    expect(image, ORR_BOOT_BAD_HEADER);
}

TEST_F(Boot, RefusesAnotherHardwareVersion) {
    Image image;
    image.header().hw_version = ORR_HW_VERSION + 1;
    image.sign_again();
    expect(image, ORR_BOOT_HW_VERSION, ORR_HW_VERSION + 1);
}

TEST_F(Boot, RefusesAnotherMajorVersion) {
    Image image;
    image.header().hw_version = (ORR_HW_VERSION_MAJOR + 1) << 16;
    image.sign_again();
    expect(image, ORR_BOOT_HW_VERSION, (ORR_HW_VERSION_MAJOR + 1) << 16);
}

TEST_F(Boot, RefusesACorruptedImage) {
    Image image;
    image.bytes().back() ^= 1;
    expect(image, ORR_BOOT_BAD_HASH);
}

TEST_F(Boot, RefusesAnUnsignedImage) {
    Image image;
    std::memset(image.header().signature, 0, sizeof image.header().signature);
    expect(image, ORR_BOOT_UNSIGNED);
}

TEST_F(Boot, RefusesAnotherKeysSignature) {
    Image image;
    sign(image.bytes(), TestKey::another());
    expect(image, ORR_BOOT_BAD_SIGNATURE);
}

TEST_F(Boot, RefusesASignedHeaderThatWasChanged) {
    Image image;
    image.header().build_id[0] ^= 1;
    expect(image, ORR_BOOT_BAD_SIGNATURE);
}

TEST_F(Boot, NeedsAKeyInItsFuses) {
    CardConfig config = CardRig::config();
    config.key.reset();
    CardRig rig(config);
    Image image;
    EXPECT_EQ(rig.boot(image.bytes()), ORR_BOOT_NO_KEY);
}

TEST_F(Boot, RefusesWhatIsNoElf) {
    const auto with = [](auto change) {
        CardRig rig;
        Image image;
        change(image);
        image.sign_again();
        const std::uint32_t status = rig.boot(image.bytes());
        EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_BOOT_FAILED);
        return status;
    };
    EXPECT_EQ(with([](Image& i) { i.elf().e_ident[0] = 0; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.elf().e_ident[EI_CLASS] = ELFCLASS32; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.elf().e_ident[EI_DATA] = ELFDATA2MSB; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.elf().e_machine = EM_X86_64; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.elf().e_type = ET_DYN; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.elf().e_phentsize = 55; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.elf().e_phoff = ~0ull; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.elf().e_phoff = ~0ull - 55; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.elf().e_phnum = 0xffff; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.elf().e_phnum = 0; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.segment(i.load()).p_type = PT_INTERP; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.segment(i.load()).p_filesz = ~0ull; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) { i.segment(i.load()).p_offset = ~0ull; }), ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) {
                  i.bytes().resize(sizeof(orr_image_header) + 10);
                  i.header().image_size = sizeof(orr_image_header) + 10;
              }),
              ORR_BOOT_BAD_ELF);
    EXPECT_EQ(with([](Image& i) {
                  i.bytes().resize(sizeof(orr_image_header));
                  i.header().image_size = sizeof(orr_image_header);
              }),
              ORR_BOOT_BAD_ELF);
}

TEST_F(Boot, RefusesASegmentOutsideSram) {
    const std::uint64_t addresses[] = {0, ORR_SRAM_BASE - 1, ORR_SRAM_BASE + ORR_SRAM_SIZE, ~0ull,
                                       ORR_SRAM_BASE + ORR_SRAM_SIZE - 1};
    for (const std::uint64_t address : addresses) {
        CardRig rig;
        Image image;
        const unsigned number = image.load();
        image.segment(number).p_paddr = address;
        image.sign_again();
        EXPECT_EQ(rig.boot(image.bytes()), ORR_BOOT_ELF_RANGE) << address;
        EXPECT_EQ(rig.read32(ORR_R_BOOT_DETAIL), number);
    }
    CardRig rig;
    Image image;
    image.segment(image.load()).p_memsz = ~0ull;
    EXPECT_EQ(rig.boot(image.sign_again().bytes()), ORR_BOOT_ELF_RANGE);
}

TEST_F(Boot, RefusesAnEntryOutsideSram) {
    const std::uint64_t entries[] = {0, ORR_SRAM_BASE + 1, ORR_SRAM_BASE + ORR_SRAM_SIZE, ORR_SRAM_BASE - 2,
                                     ~0ull};
    for (const std::uint64_t entry : entries) {
        CardRig rig;
        Image image;
        image.elf().e_entry = entry;
        EXPECT_EQ(rig.boot(image.sign_again().bytes()), ORR_BOOT_ELF_RANGE) << entry;
    }
}

TEST_F(Boot, StartsAgainOnlyAfterAReset) {
    Image bad;
    bad.header().magic = 0;
    EXPECT_EQ(rig_.boot(bad.bytes()), ORR_BOOT_BAD_MAGIC);
    const Image good;
    EXPECT_EQ(rig_.boot(make_image(script_elf())), ORR_BOOT_BAD_MAGIC);
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.boot_script();
}

TEST_F(Boot, ReadsTheImageOnce) {
    // The guest changes its memory while the ROM is at work: what was checked is what runs, or nothing runs.
    const auto image = make_image(script_elf());
    unsigned events = 0;
    std::uint32_t status = ORR_BOOT_BUSY;
    for (; status != ORR_BOOT_OK && events < 300; ++events) {
        rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
        std::memcpy(rig_.ram(CardRig::kImage), image.data(), image.size());
        rig_.write64(ORR_R_BOOT_IMAGE, CardRig::kImage);
        rig_.write32(ORR_R_BOOT_SIZE, static_cast<std::uint32_t>(image.size()));
        rig_.write64(ORR_R_BOOT_ARG, CardRig::kScript);
        rig_.write32(ORR_R_BOOT_START, 1);
        EXPECT_EQ(rig_.read32(ORR_R_BOOT_STATUS), ORR_BOOT_BUSY);
        EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_BOOTING);
        for (unsigned i = 0; i < events; ++i)
            rig_.card().events().run_next(kNever - 1);
        std::memset(rig_.ram(CardRig::kImage), 0xff, image.size());
        rig_.settle();
        status = rig_.read32(ORR_R_BOOT_STATUS);
        EXPECT_TRUE(status == ORR_BOOT_OK || status == ORR_BOOT_BAD_MAGIC || status == ORR_BOOT_BAD_HASH)
            << status << " after " << events;
    }
    // As soon as it had read all.
    EXPECT_EQ(events, (image.size() + 16383) / 16384 + 1);
}

TEST(Fuses, AreRawBytesOrHexDigits) {
    const auto folder = std::filesystem::temp_directory_path();
    const auto file = folder / ("orrery-fuses-" + std::to_string(getpid()));
    const auto write = [&](const std::string& text) { std::ofstream(file, std::ios::binary) << text; };
    std::string raw(32, '\0');
    raw[0] = 1;
    raw[31] = '\xff';
    write(raw);
    auto key = load_fuses(file);
    ASSERT_TRUE(key) << key.error();
    EXPECT_EQ((*key)[31], 0xff);
    write("01" + std::string(60, '0') + "Ff\n");
    EXPECT_EQ(load_fuses(file), key);
    for (const std::string& bad : {std::string(), std::string(31, 'x'), std::string(64, 'g'),
                                   std::string(63, '0'), std::string(66, '0'), std::string(5000, '0')}) {
        write(bad);
        EXPECT_FALSE(load_fuses(file)) << bad.size();
    }
    std::filesystem::remove(file);
    EXPECT_FALSE(load_fuses(file));
    EXPECT_FALSE(load_fuses(folder));
}

}  // namespace
}  // namespace orrery::emu
