// The signing tool: what it makes is what the boot ROM checks, and each way to break an image breaks just
// that.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <orrery/fw/boot_block.h>
#include <orrery/hw/bar0.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tools/fwsign/image.h"

namespace orrery::fwsign {
namespace {

class FwsignTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/orrery-fwsign-test-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        folder_ = name;
        ASSERT_TRUE(init());
        ASSERT_EQ(run("keygen KEY PUB"), 0) << text();
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // The tool's exit status; words in capitals are files of this test.
    int run(const std::string& arguments) {
        const std::string command = fmt::format("cd {} && ln -sf {} ELF && {} {} >TEXT 2>&1",
                                                folder_.string(), FIRMWARE_ELF, FWSIGN, arguments);
        const int status = std::system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::string text() const {
        std::ifstream in(folder_ / "TEXT");
        return {std::istreambuf_iterator<char>(in), {}};
    }
    Bytes bytes(const char* name) const { return read_file(folder_ / name, ORR_IMAGE_MAX_SIZE).value(); }
    orr_image_header header(const char* name) const {
        orr_image_header h;
        std::memcpy(&h, bytes(name).data(), sizeof(h));
        return h;
    }
    std::filesystem::path folder_;
};

TEST_F(FwsignTest, KeysAreMadeOnceAndTheSecretIsSecret) {
    struct stat status{};
    ASSERT_EQ(stat((folder_ / "KEY").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(bytes("PUB").size(), kPublicKeyBytes);
    const Bytes secret = bytes("KEY");
    const Bytes half = bytes("PUB");
    EXPECT_EQ(run("keygen KEY PUB"), 1);
    EXPECT_NE(text().find("KEY exists"), std::string::npos) << text();
    std::filesystem::remove(folder_ / "PUB");
    EXPECT_EQ(run("keygen --keep KEY PUB"), 0);
    EXPECT_EQ(bytes("KEY"), secret);
    EXPECT_EQ(bytes("PUB"), half);
}

TEST_F(FwsignTest, GoodImage) {
    ASSERT_EQ(run("sign --key KEY --elf ELF --out IMG --build-id 1.2.3+abc"), 0) << text();
    EXPECT_EQ(run("show IMG --pub PUB"), 0) << text();
    EXPECT_NE(text().find("good"), std::string::npos) << text();
    const orr_image_header h = header("IMG");
    EXPECT_EQ(h.hw_version, ORR_HW_VERSION);
    EXPECT_EQ(h.fw_abi, ORR_FW_ABI);
    EXPECT_EQ(h.fw_version, 0x010203u);
    EXPECT_STREQ(reinterpret_cast<const char*>(h.build_id), "1.2.3+abc");
    EXPECT_EQ(h.image_size, bytes("IMG").size());
    ASSERT_EQ(run("sign --key KEY --elf ELF --out TWO --build-id 1.2.3+abc"), 0);
    EXPECT_EQ(bytes("IMG"), bytes("TWO")) << "signing is not reproducible";
}

TEST_F(FwsignTest, EachDamageIsSeen) {
    ASSERT_EQ(run("sign --elf ELF --out IMG --unsigned"), 0) << text();
    EXPECT_EQ(run("show IMG --pub PUB"), 1);
    EXPECT_NE(text().find("unsigned"), std::string::npos);
    const struct {
        const char* options;
        const char* word;
    } cases[] = {{"--corrupt elf", "corrupted"},   {"--corrupt signature", "BAD"},
                 {"--corrupt header", "BAD"},      {"--corrupt magic", "no image magic"},
                 {"--truncate 1000", "truncated"}, {"--truncate 10", "less than an image header"}};
    for (const auto& c : cases) {
        ASSERT_EQ(run(fmt::format("sign --key KEY --elf ELF --out IMG {}", c.options)), 0) << text();
        EXPECT_EQ(run("show IMG --pub PUB"), 1) << c.options;
        EXPECT_NE(text().find(c.word), std::string::npos) << c.options << ": " << text();
    }
    ASSERT_EQ(run("keygen OTHER OTHERPUB"), 0);
    ASSERT_EQ(run("sign --key OTHER --elf ELF --out IMG"), 0);
    EXPECT_EQ(run("show IMG --pub PUB"), 1);
}

TEST_F(FwsignTest, VersionsCanBeClaimed) {
    ASSERT_EQ(run("sign --key KEY --elf ELF --out IMG --fw-abi 9.1 --hw-version 7.2"), 0) << text();
    EXPECT_EQ(header("IMG").fw_abi, 9u << 16 | 1);
    EXPECT_EQ(header("IMG").hw_version, 7u << 16 | 2);
    EXPECT_EQ(run("show IMG --pub PUB"), 0);
}

TEST_F(FwsignTest, RefusesWithACause) {
    const struct {
        const char* arguments;
        int status;
        const char* word;
    } cases[] = {{"sign --elf ELF --out IMG", 1, "no key"},
                 {"sign --key PUB --elf ELF --out IMG", 1, "no secret key"},
                 {"sign --key MISSING --elf ELF --out IMG", 1, "No such file"},
                 {"sign --key KEY --elf PUB --out IMG", 1, "not a firmware ELF"},
                 {"sign --key KEY --elf MISSING --out IMG", 1, "MISSING"},
                 {"sign --key KEY --elf ELF --out NOWHERE/IMG", 1, "NOWHERE"},
                 {"sign --key KEY --elf ELF --out IMG --fw-abi 1", 1, "MAJOR.MINOR"},
                 {"sign --key KEY --elf ELF --out IMG --hw-version 1.99999", 1, "MAJOR.MINOR"},
                 {"sign --key KEY --elf ELF --out IMG --truncate 9999999", 1, "only"},
                 {"sign --key KEY --elf ELF --out IMG --corrupt nothing", 2, "nothing"},
                 {"sign --key KEY --out IMG", 2, "--elf"},
                 {"show MISSING", 1, "MISSING"},
                 {"show ELF", 1, "no image magic"},
                 {"show .", 1, "directory"},
                 {"frobnicate", 2, ""},
                 {"", 2, ""}};
    for (const auto& c : cases) {
        EXPECT_EQ(run(c.arguments), c.status) << c.arguments << ": " << text();
        EXPECT_NE(text().find(c.word), std::string::npos) << c.arguments << ": " << text();
        EXPECT_FALSE(std::filesystem::exists(folder_ / "IMG")) << c.arguments;
    }
    EXPECT_EQ(run("--help"), 0);
}

}  // namespace
}  // namespace orrery::fwsign
