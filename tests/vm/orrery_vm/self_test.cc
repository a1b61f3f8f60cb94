// What orrery-vm promises, seen from outside: it is run as a program, without cards.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <ctime>

#include "tests/vm/orrery_vm/fixture.h"
#include "tools/bundle/bundle.h"

namespace orrery::vm {
namespace {

TEST_F(OrreryVm, PassesStatusesOnExactly) {
    EXPECT_EQ(command({"false"}).status, 1);  // vm.boots shows 0
    EXPECT_EQ(command({"sh", "-c", "exit 42"}).status, 42);
}

TEST_F(OrreryVm, ASignalIs128AndItsNumber) {
    EXPECT_EQ(command({"sh", "-c", "kill -SEGV $$"}).status, 128 + SIGSEGV);
    const auto missing = command({"no-such-program"});
    EXPECT_EQ(missing.status, 127);
    EXPECT_THAT(missing.err, HasSubstr("no-such-program"));
}

TEST_F(OrreryVm, OutputArrivesAsItWasWritten) {
    const auto outcome = command({"sh", "-c",
                                  "printf 'a\\r\\n\\000\\377b\\tc\\n\\n'; cat /bin/busybox; "
                                  "echo wrong >&2; echo again >/dev/stderr; echo end >/dev/stdout"});
    EXPECT_EQ(outcome.status, 0);
    // The guest's busybox is a file of megabytes with every byte value; compare with its other copy by
    // checksum.
    const std::string head("a\r\n\0\377b\tc\n\n", 10);
    ASSERT_EQ(outcome.out.substr(0, head.size()), head);
    EXPECT_EQ(outcome.out.substr(outcome.out.size() - 4), "end\n");
    const std::string body = outcome.out.substr(head.size(), outcome.out.size() - head.size() - 4);
    const auto tree = capture({ORRERY_CHECKOUT "/tools/vm/tree.sh", "--path"});
    ASSERT_TRUE(tree);
    const auto busybox = read_file(fs::path(tree->substr(0, tree->find('\n'))) / "usr/bin/busybox");
    ASSERT_TRUE(busybox);
    EXPECT_TRUE(body == *busybox) << body.size() << " bytes instead of " << busybox->size();
    EXPECT_EQ(outcome.err, "wrong\nagain\n");
}

TEST_F(OrreryVm, ArgumentsEnvironmentAndUser) {
    const auto outcome =
        command({"sh", "-c", "id -u; id -Gn; echo \"$X\"; for a; do echo \"<$a>\"; done; pwd", "sh",
                 "two words", "it's", "", "$HOME"},
                {"--user", "1234", "--env", "X=a 'b' $c"});
    EXPECT_EQ(outcome.out, "1234\nuser render\na 'b' $c\n<two words>\n<it's>\n<>\n<$HOME>\n/root\n");
    const auto outside = command({"id", "-Gn"}, {"--user", "1234", "--no-device-group"});
    EXPECT_EQ(outside.out, "user\n");
}

TEST_F(OrreryVm, FilesGoInAndResultsComeOut) {
    fs::create_directories(home_ / "share");
    fs::create_directories(home_ / "data/deep");
    std::ofstream(home_ / "share/in") << "shared\n";
    std::ofstream(home_ / "data/deep/file") << "content\n";
    std::ofstream(home_ / "one") << "single\n";
    // A program for another machine, and a link, as they are.
    std::string foreign = read_file("/bin/dash").value();
    foreign[18] = '\xb7';  // e_machine: aarch64
    std::ofstream(home_ / "data/deep/foreign", std::ios::binary) << foreign;
    fs::create_symlink("deep/file", home_ / "data/link");
    std::ofstream(home_ / "share/foreign", std::ios::binary) << foreign;
    const auto outcome =
        command({"sh", "-ec",
                 "cat one /etc/data/deep/file; readlink /etc/data/link; cmp /share/foreign "
                 "/etc/data/deep/foreign; cat /share/in > /share/out; /root/dash -c 'echo host program'"},
                {"--share", (home_ / "share").string(), "--file", (home_ / "one").string(), "--file",
                 (home_ / "data").string() + ":/etc/data", "--file", "/bin/dash"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "single\ncontent\ndeep/file\nhost program\n");
    EXPECT_EQ(read_file(home_ / "share/out").value(), "shared\n");
}

TEST_F(OrreryVm, OptionalDevices) {
    const auto outcome = command({"sh", "-ec",
                                  "dd if=/bin/busybox of=/dev/nvme0n1 bs=1M count=1 conv=fsync 2>/dev/null; "
                                  "dd if=/dev/nvme0n1 bs=1M count=1 "
                                  "2>/dev/null | cmp -n 1048576 - /bin/busybox; ls /sys/class/iommu; nproc; "
                                  "grep MemTotal /proc/meminfo"},
                                 {"--nvme", "--viommu", "--smp", "3", "--memory", "512M", "--qmp"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("dmar0\n3\nMemTotal:         4"));
}

TEST_F(OrreryVm, TheConsoleTakesInputAndGivesTheShellsStatus) {
    // Without a terminal, what stands on stdin is typed.
    const auto text = capture({"sh", "-c",
                               "echo 'echo sum $((6*7)); exit 7' | timeout 240 " ORRERY_VM
                               " --cards 0 --no-module --shell --logs " +
                                   (home_ / "logs").string() + "; echo status $?"});
    ASSERT_TRUE(text);
    EXPECT_THAT(*text, HasSubstr("sum 42"));
    EXPECT_THAT(*text, HasSubstr("status 7"));
}

TEST_F(OrreryVm, AKernelPanicIsAFailureThatSaysSo) {
    auto pipe = socket_pair();
    ASSERT_TRUE(pipe);
    auto started = start({"--cards", "0", "--no-module", "--", "sh", "-c",
                          "echo before; read -r go; echo c > /proc/sysrq-trigger"},
                         "panic", pipe->second.get());
    wait_for_output(started, "before");
    ASSERT_EQ(::write(pipe->first.get(), "go\n", 3), 3);
    const auto outcome = finish(started);
    EXPECT_EQ(outcome.status, kExitKernelReport);
    EXPECT_EQ(outcome.out, "before\n");
    EXPECT_THAT(outcome.err, HasSubstr("orrery-vm: error: the guest kernel panicked"));
    EXPECT_THAT(outcome.err, HasSubstr("sysrq triggered crash"));
    EXPECT_THAT(outcome.err, HasSubstr(outcome.logs.string()));
    EXPECT_THAT(read_file(outcome.logs / "guest.log").value(), HasSubstr("Kernel panic"));
}

TEST_F(OrreryVm, AKernelWarningIsAFailureUnlessAllowed) {
    const std::vector<std::string> words{"sh", "-c",
                                         "echo 'WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2' > /dev/kmsg"};
    const auto outcome = command(words);
    EXPECT_EQ(outcome.status, kExitKernelReport);
    EXPECT_THAT(outcome.err, HasSubstr("the guest kernel warned: WARNING: CPU: 0 PID: 1 at a.c:1"));
    EXPECT_THAT(outcome.err, HasSubstr("the command ended with status 0"));
    EXPECT_EQ(command(words, {"--allow-warnings"}).status, 0);
    const auto fault =
        command({"sh", "-c", "echo 'BUG: KASAN: slab-out-of-bounds in f' > /dev/kmsg"}, {"--allow-warnings"});
    EXPECT_EQ(fault.status, kExitKernelReport);
    EXPECT_THAT(fault.err, HasSubstr("the guest kernel reported a fault: BUG: KASAN"));
}

TEST_F(OrreryVm, AHangEndsWithTheTimeLimit) {
    const auto outcome = command({"sleep", "1000"}, {"--timeout", "8"});
    EXPECT_EQ(outcome.status, kExitTimeLimit);
    EXPECT_THAT(outcome.err, HasSubstr("the time limit of 8 s (--timeout) passed"));
}

TEST_F(OrreryVm, AGuestThatPowersOffByItselfIsAFailure) {
    const auto outcome = command({"sh", "-c", "poweroff -f; sleep 100"});
    EXPECT_EQ(outcome.status, kExitVmEnded);
    EXPECT_THAT(outcome.err, HasSubstr("before the command's end; the last thing seen: the command started"));
}

TEST_F(OrreryVm, NeitherAProcessLeftBehindNorEndlessInputHoldsTheVm) {
    const auto text = capture({"sh", "-c",
                               "yes | " ORRERY_VM " --cards 0 --no-module --logs " +
                                   (home_ / "logs").string() + " -- sh -c 'sleep 1000 & head -n 2'"});
    ASSERT_TRUE(text) << text.error().text;
    EXPECT_EQ(*text, "y\ny\n");
}

TEST_F(OrreryVm, AnInterruptLeavesNothing) {
    for (const int number : {SIGINT, SIGTERM}) {
        auto started =
            start({"--cards", "0", "--no-module", "--", "sleep", "1000"}, "signal" + std::to_string(number));
        const pid_t qemu = qemu_of(started);
        EXPECT_EQ(::kill(qemu, 0), 0);
        started.process.signal(number);
        const auto outcome = finish(started);
        EXPECT_EQ(outcome.status, 128 + number);
        EXPECT_TRUE(ends(qemu));
        EXPECT_THAT(left_behind(), IsEmpty());
    }
}

TEST_F(OrreryVm, AKilledRunTakesQemuWithItAndTheNextOneSweeps) {
    auto started = start({"--cards", "0", "--no-module", "--", "sleep", "1000"}, "killed");
    const pid_t qemu = qemu_of(started);
    started.process.signal(SIGKILL);
    EXPECT_TRUE(started.process.wait(kLimit));
    EXPECT_TRUE(ends(qemu));
    ASSERT_THAT(left_behind(), testing::SizeIs(1));
    // Only directories that have been left for a minute are swept; give it the age.
    const timespec old[2] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, left_behind()[0].c_str(), old, 0), 0);
    EXPECT_EQ(command({"true"}).status, 0);
}

TEST_F(OrreryVm, TwoAtOnce) {
    auto first = start({"--cards", "0", "--no-module", "--", "sh", "-c", "echo first; exit 3"}, "first");
    auto second = start({"--cards", "0", "--no-module", "--", "sh", "-c", "echo second; exit 4"}, "second");
    const auto one = finish(first);
    const auto two = finish(second);
    EXPECT_EQ(one.status, 3);
    EXPECT_EQ(two.status, 4);
    EXPECT_EQ(one.out, "first\n");
    EXPECT_EQ(two.out, "second\n");
}

// The rest ends before QEMU starts.

TEST_F(OrreryVm, WhatCannotStartIsNamed) {
    const auto option = run({"--nonsense"});
    EXPECT_EQ(option.status, kExitUsage);
    EXPECT_THAT(option.err, HasSubstr("--nonsense"));
    const auto kernel = command({"true"}, {"--kernel", "9.9"});
    EXPECT_EQ(kernel.status, kExitUsage);
    EXPECT_THAT(kernel.err, HasSubstr("backports ("));
    const auto file = command({"true"}, {"--file", "/no/such/file"});
    EXPECT_EQ(file.status, kExitSetup);
    EXPECT_THAT(file.err, HasSubstr("/no/such/file"));
    const auto module = run({"--cards", "0", "--module", "/no/orrery.ko", "--", "true"});
    EXPECT_EQ(module.status, kExitSetup);
    EXPECT_THAT(module.err, HasSubstr("tools/vm/kbuild.sh"));
    const auto share = command({"true"}, {"--share", "/no/such/directory"});
    EXPECT_EQ(share.status, kExitUsage);
}

TEST_F(OrreryVm, AMissingTreeIsNamedWithTheCommandThatMakesIt) {
    ::setenv("XDG_CACHE_HOME", (home_ / "empty").c_str(), 1);
    const auto outcome = command({"true"});
    ::unsetenv("XDG_CACHE_HOME");
    EXPECT_EQ(outcome.status, kExitSetup);
    EXPECT_THAT(outcome.err, HasSubstr("there is no VM tree"));
    EXPECT_THAT(outcome.err, HasSubstr("tools/vm/tree.sh"));
}

class OrreryVmWithFalseCard : public OrreryVm {
  protected:
    // A program in the place of orrery-card.
    Outcome with_card(const std::string& script) {
        const fs::path program = home_ / "card";
        std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
        fs::permissions(program, fs::perms::owner_all);
        return run({"--cards", "1", "--no-module", "--card-program", program.string(), "--", "true"});
    }
};

TEST_F(OrreryVmWithFalseCard, ACardThatEndsAtItsStart) {
    const auto outcome = with_card("echo no such SKU >&2; exit 3");
    EXPECT_EQ(outcome.status, kExitSetup);
    EXPECT_THAT(outcome.err, HasSubstr("card 0 exited with status 3 at its start"));
    EXPECT_THAT(outcome.err, HasSubstr("no such SKU"));
}

TEST_F(OrreryVmWithFalseCard, ACardThatIsNotThere) {
    const auto outcome =
        run({"--cards", "1", "--no-module", "--card-program", "/no/orrery-card", "--", "true"});
    EXPECT_EQ(outcome.status, kExitSetup);
    EXPECT_THAT(outcome.err, HasSubstr("cannot start /no/orrery-card"));
}

TEST_F(OrreryVmWithFalseCard, ACardThatDoesNotListen) {
    const auto outcome = with_card("echo ready; exec sleep 1000");
    EXPECT_EQ(outcome.status, kExitVmEnded);
    EXPECT_THAT(outcome.err, HasSubstr("the end of qemu.log"));
    EXPECT_THAT(outcome.err, HasSubstr("card0.sock"));
}

// With real cards, which the guest leaves alone.

TEST_F(OrreryVm, ACardThatIsKilledIsAFailureThatSaysSo) {
    auto started = start({"--cards", "2", "--no-module", "--", "sleep", "1000"}, "dead-card");
    const pid_t qemu = qemu_of(started);
    const auto run = nlohmann::json::parse(read_file(started.logs / "run.json").value());
    ASSERT_EQ(run.at("cards").size(), 2U);
    const auto other = run.at("cards")[0].at("pid").get<pid_t>();
    ASSERT_EQ(::kill(run.at("cards")[1].at("pid").get<pid_t>(), SIGKILL), 0);
    const auto outcome = finish(started);
    EXPECT_EQ(outcome.status, kExitCardDied);
    EXPECT_THAT(outcome.err, HasSubstr("card 1 (orrery-card) was killed by signal 9"));
    EXPECT_THAT(outcome.err, HasSubstr("card1.log"));
    EXPECT_TRUE(ends(qemu));
    EXPECT_TRUE(ends(other));
    const auto report = bundle::read(started.logs / "report.tar");
    ASSERT_TRUE(report) << report.error().text;
    const auto& cards = report->manifest.at("cards");
    EXPECT_FALSE(cards[0].contains("died")) << "it was told to end";
    EXPECT_THAT(cards[1].at("died").get<std::string>(), HasSubstr("was killed by signal 9"));
    EXPECT_EQ(report->manifest.at("ended").at("how"), "card");
    EXPECT_EQ(report->files.count("card0.otrace"), 1U);
    EXPECT_EQ(report->files.count("card1.otrace"), 1U) << "its memory outlives it";
}

TEST_F(OrreryVm, AReportIsMadeAtOnceAndAtTheEnd) {
    const fs::path file = home_ / "bundle", more = home_ / "a.prof", odd = home_ / "odd name";
    std::ofstream(more) << "a profile";
    std::ofstream(odd) << "another";
    auto started = start({"--cards", "1", "--no-module", "--report", file.string(), "--report-file",
                          more.string(), "--report-file", odd.string(), "--report-file",
                          (home_ / "none").string(), "--", "sh", "-c", "echo here; sleep 1000"},
                         "report");
    wait_for_output(started, "here");
    started.process.signal(SIGUSR1);
    for (int i = 0; i < kLimit / 10 && !fs::exists(file); ++i)
        ::usleep(10000);
    auto report = bundle::read(file);
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_EQ(report->manifest.at("ended").at("how"), "it has not");
    EXPECT_FALSE(report->manifest.at("cards")[0].contains("died"));
    EXPECT_EQ(report->files.at("a.prof"), "a profile");
    EXPECT_EQ(report->files.at("file1"), "another");
    EXPECT_THAT(report->manifest.at("missing")[0].get<std::string>(), HasSubstr("none"));
    EXPECT_EQ(report->files.count("card0.otrace"), 1U);
    EXPECT_FALSE(started.process.wait(0)) << "the run goes on";
    started.process.signal(SIGTERM);
    EXPECT_EQ(finish(started).status, 128 + SIGTERM);
    report = bundle::read(file);
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_EQ(report->manifest.at("ended").at("how"), "signal");
}

TEST_F(OrreryVm, ACommandThatFailsHasAReportOnlyIfOneIsWanted) {
    const auto outcome = command({"false"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_FALSE(fs::exists(outcome.logs / "report.tar"));
}

TEST_F(OrreryVm, AnInterruptTakesTheCardsToo) {
    auto started = start({"--cards", "2", "--no-module", "--", "sleep", "1000"}, "interrupted");
    qemu_of(started);
    const auto run = nlohmann::json::parse(read_file(started.logs / "run.json").value());
    started.process.signal(SIGINT);
    EXPECT_EQ(finish(started).status, 128 + SIGINT);
    for (const auto& card : run.at("cards"))
        EXPECT_TRUE(ends(card.at("pid").get<pid_t>()));
}

}  // namespace
}  // namespace orrery::vm
