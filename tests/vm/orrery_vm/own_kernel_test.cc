// A kernel of one's own, given by its path.
#include "tests/vm/orrery_vm/fixture.h"

namespace orrery::vm {
namespace {

class OwnKernel : public OrreryVm {
  protected:
    void SetUp() override {
        OrreryVm::SetUp();
        const auto path = capture({ORRERY_CHECKOUT "/tools/vm/tree.sh", "--path"});
        ASSERT_TRUE(path) << path.error().text;
        tree_ = path->substr(0, path->find('\n'));
        std::string name;
        std::ifstream(tree_ / "etc/orrery/kernels") >> name >> release_;
        fs::copy_file(tree_ / "boot" / ("vmlinuz-" + release_), home_ / "bzImage");
    }

    // What a build of a kernel makes, as far as orrery-vm looks at it before it boots.
    void fake_image(const std::string& name, const std::string& release) {
        std::string image(0x400, '\0');
        image.replace(0x202, 4, "HdrS");
        image[0x20f] = '\x01';
        image.replace(0x300, release.size(), release);
        std::ofstream(home_ / name, std::ios::binary) << image;
    }

    Outcome boot(const std::string& image, std::vector<std::string> more) {
        std::vector<std::string> arguments{"--kernel", (home_ / image).string()};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run(arguments);
    }

    fs::path tree_;
    std::string release_;
};

TEST_F(OwnKernel, BootsWithItsModulesAndOurs) {
    // As `make modules_install` leaves them, with our module among them.
    const fs::path modules = home_ / "root/lib/modules" / release_;
    fs::create_directories(modules / "updates");
    fs::create_directory_symlink(tree_ / "lib/modules" / release_ / "kernel", modules / "kernel");
    fs::copy_file(tree_ / "lib/modules" / release_ / "modules.dep", modules / "modules.dep");
    fs::copy_file(fs::path(ORRERY_CHECKOUT) / "build/kmod" / release_ / "orrery.ko",
                  modules / "updates/orrery.ko");
    std::ofstream(modules / "modules.dep", std::ios::app) << "updates/orrery.ko:\n";
    const auto outcome =
        boot("bzImage", {"--modules", (home_ / "root").string(), "--cards", "1", "--share", home_.string(),
                         "--", "sh", "-c", "uname -r; ls -d /share/bzImage /dev/accel/*"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, release_ + "\n/dev/accel/accel0\n/share/bzImage\n");
}

TEST_F(OwnKernel, WithoutAModuleForItOneLineSaysWhatToDo) {
    fake_image("other", "9.9.9-own");
    const auto outcome = boot("other", {"--", "true"});
    EXPECT_EQ(outcome.status, kExitSetup);
    EXPECT_THAT(outcome.err, HasSubstr("no orrery module for kernel 9.9.9-own"));
    EXPECT_THAT(outcome.err, HasSubstr("/kmod KDIR="));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;

    const std::string module = ORRERY_CHECKOUT "/build/kmod/" + release_ + "/orrery.ko";
    const auto wrong = boot("other", {"--module", module, "--", "true"});
    EXPECT_EQ(wrong.status, kExitSetup);
    EXPECT_THAT(wrong.err, HasSubstr("is for kernel " + release_ + ", and the guest boots 9.9.9-own"));

    const auto helpers = boot("bzImage", {"--module", module, "--", "true"});
    EXPECT_EQ(helpers.status, kExitSetup);
    EXPECT_THAT(helpers.err, HasSubstr("--modules DIRECTORY"));
}

TEST_F(OwnKernel, WhatIsNoneIsNamed) {
    std::ofstream(home_ / "vmlinux") << "\177ELF";
    EXPECT_THAT(boot("vmlinux", {"--", "true"}).err, HasSubstr("no bzImage"));
    EXPECT_THAT(boot("nothing", {"--", "true"}).err, HasSubstr("cannot read"));
    const auto modules = boot("bzImage", {"--modules", home_.string(), "--", "true"});
    EXPECT_EQ(modules.status, kExitSetup);
    EXPECT_THAT(modules.err, HasSubstr("no modules of kernel " + release_));
    EXPECT_EQ(run({"--modules", home_.string(), "--", "true"}).status, kExitUsage);
}

}  // namespace
}  // namespace orrery::vm
