// gdb's "monitor" on a live card, with a stand-in for orrery-step: whatever that does, the card goes on to
// answer its host.
#include "emulator/card/stepper.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "emulator/card/core_target.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

class Stepper : public testing::Test {
  protected:
    Stepper() { std::filesystem::create_directories(folder_); }
    ~Stepper() override { std::filesystem::remove_all(folder_); }
    std::filesystem::path stand_in(const std::string& script) {
        const auto file = folder_ / "stand-in";
        std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        return file;
    }
    std::string ask(const std::string& script) {
        return ask_stepper(stand_in(script), folder_ / "recording", "why", [] { return true; });
    }
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("orrery-stepper-" + std::to_string(::getpid()));
};

TEST_F(Stepper, IsHeard) {
    EXPECT_EQ(ask("echo 'orrery-step> why'; echo because"), "because\n");
}

// Each of these would hang if the card waited for the program's own end.
TEST_F(Stepper, IsEndedWhateverItDoes) {
    EXPECT_EQ(ask("head -c 3000000 /dev/zero; exec sleep 1000"),
              "that is more than gdb can be told: run orrery-step on the recording\n");
    EXPECT_EQ(ask("echo 'orrery-step> why'; echo because; exec sleep 1000 >/dev/null"), "because\n");
    unsigned looks = 0;
    EXPECT_EQ(
        ask_stepper(stand_in("exec sleep 1000"), folder_ / "recording", "why", [&] { return ++looks < 10; }),
        "the card is being stopped\n");
    EXPECT_EQ(looks, 10u);
}

TEST_F(Stepper, DoesNotKeepTheHostWaiting) {
    CardConfig config = CardRig::config();
    config.record = folder_ / "recording";
    config.stepper = stand_in("echo 'orrery-step> why'; echo because");
    CardRig rig(std::move(config));
    rig.boot_script();
    const std::uint64_t before = rig.card().counters().get(ORR_CTR_RESETS);
    rig.card().post({.kind = Command::Kind::kReset});
    CoreTarget target(rig.card());
    EXPECT_EQ(target.monitor("why"), "because\n");
    EXPECT_EQ(rig.card().counters().get(ORR_CTR_RESETS), before + 1);
    rig.card().request_stop();
    EXPECT_EQ(target.monitor("why"), "the card is being stopped\n");
}

}  // namespace
}  // namespace orrery::emu
