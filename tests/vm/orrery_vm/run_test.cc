// How a run is made: the command's stdin, the time limit, what --dry-run prints, another QEMU.
#include <pty.h>

#include <algorithm>

#include "tests/vm/orrery_vm/fixture.h"

namespace orrery::vm {
namespace {

class Running : public OrreryVm {
  protected:
    // A program in the place of QEMU that leaves its arguments in home_/arguments.
    Outcome with_false_qemu(std::vector<std::string> options) {
        const fs::path program = home_ / "qemu";
        std::ofstream(program) << "#!/bin/sh\nprintf '%s\\n' \"$@\" > " << (home_ / "arguments").string()
                               << "\necho no such machine >&2\nexit 1\n";
        fs::permissions(program, fs::perms::owner_all);
        options.insert(options.end(), {"--qemu", program.string()});
        return command({"true"}, options);
    }
    std::string arguments() const { return read_file(home_ / "arguments").value(); }
};

TEST_F(Running, StdinReachesTheCommandByteForByteAndEnds) {
    std::string bytes;
    for (unsigned i = 0; i < 600000; ++i)
        bytes += static_cast<char>(i * 2654435761u >> 24);
    std::ofstream(home_ / "input", std::ios::binary) << bytes;
    const auto outcome =
        capture({"sh", "-c",
                 ORRERY_VM " --cards 0 --no-module --user 1000 --logs " + (home_ / "logs").string() +
                     " -- sh -c 'cat /dev/stdin; echo after the end' < " + (home_ / "input").string()});
    ASSERT_TRUE(outcome) << outcome.error().text;
    EXPECT_TRUE(*outcome == bytes + "after the end\n") << outcome->size() << " bytes";
}

TEST_F(Running, AJobInTheBackgroundLeavesTheTerminalToOthers) {
    const std::string line = "set -m; " ORRERY_VM " --cards 0 --no-module --logs " +
                             (home_ / "logs").string() + " -- true & wait $!; echo status $?";
    int terminal = -1;
    const pid_t shell = ::forkpty(&terminal, nullptr, nullptr, nullptr);
    ASSERT_GE(shell, 0);
    if (shell == 0) {
        ::execlp("bash", "bash", "-c", line.c_str(), nullptr);
        ::_exit(127);
    }
    const Fd master(terminal);
    ASSERT_EQ(::write(master.get(), "typed\n", 6), 6);  // for whoever has the terminal
    std::string shown;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(master.get(), buffer, sizeof buffer)) > 0;)
        shown.append(buffer, static_cast<std::size_t>(n));
    int status = 0;
    ASSERT_EQ(::waitpid(shell, &status, 0), shell);
    EXPECT_THAT(shown, HasSubstr("status 0")) << shown;  // 149: stopped by SIGTTIN
}

TEST_F(Running, DryRunPrintsAndRunsNothing) {
    const auto outcome = run({"--dry-run", "--cards", "2", "--nvme", "--append", "quiet 'x'", "--", "true"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("a time limit of 300 s"));
    EXPECT_THAT(outcome.out, HasSubstr("orrery-card --socket DIRECTORY/card1.sock --index 1"));
    EXPECT_THAT(outcome.out, HasSubstr("0:connect:DIRECTORY/link-0.0-1.0.sock"));
    EXPECT_THAT(outcome.out, HasSubstr("qemu-system-x86_64"));
    EXPECT_THAT(outcome.out, HasSubstr("-accel tcg,thread=multi"));
    EXPECT_FALSE(fs::exists(outcome.logs));
    EXPECT_THAT(left_behind(), IsEmpty());
    // A shell reads the lines as they are meant.
    std::ofstream(home_ / "lines") << outcome.out;
    const auto words = capture({"sh", "-c",
                                "sed -n 's/.*qemu-system-x86_64//p' " + (home_ / "lines").string() + " > " +
                                    (home_ / "qemu-line").string() + "; eval set -- \"$(cat " +
                                    (home_ / "qemu-line").string() + ")\"; printf '%s\\n' \"$@\""});
    ASSERT_TRUE(words) << words.error().text;
    EXPECT_THAT(*words, HasSubstr(" quiet 'x'\n"));
    EXPECT_EQ(run({"--dry-run", "--kernel", "9.9", "--", "true"}).status, kExitUsage);
}

TEST_F(Running, AMissingRootIsNamedWithTheCommandThatMakesIt) {
    const auto tree = capture({ORRERY_CHECKOUT "/tools/vm/tree.sh", "--path"});
    ASSERT_TRUE(tree);
    ::setenv("ORRERY_VM_TREE", tree->substr(0, tree->find('\n')).c_str(), 1);
    ::setenv("XDG_CACHE_HOME", (home_ / "empty").c_str(), 1);
    const auto missing = command({"true"}, {"--root", "debian+python3"});
    const auto wrong = command({"true"}, {"--root", "slackware"});
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("ORRERY_VM_TREE");
    EXPECT_EQ(missing.status, kExitSetup);
    EXPECT_THAT(missing.err, HasSubstr("make root ROOT=debian+python3"));
    EXPECT_EQ(wrong.status, kExitSetup);
    EXPECT_THAT(wrong.err, HasSubstr("'slackware' is no image"));
}

TEST_F(Running, OnATerminalThereIsNoTimeLimit) {
    int ours = -1;
    int theirs = -1;
    ASSERT_EQ(::openpty(&ours, &theirs, nullptr, nullptr, nullptr), 0);
    const Fd master(ours);
    Fd slave(theirs);
    for (const bool limited : {false, true}) {
        const fs::path file = home_ / (limited ? "limited" : "free");
        auto out = open_log(file.string());
        std::vector<std::string> argv{ORRERY_VM, "--dry-run", "--", "true"};
        if (limited) argv.insert(argv.begin() + 1, {"--timeout", "7"});
        auto child =
            Child::start({.argv = argv, .in = -1, .out = out->get(), .err = slave.get(), .keep = {}});
        ASSERT_TRUE(child);
        ASSERT_TRUE(child->wait(kLimit));
        EXPECT_THAT(read_file(file).value(), HasSubstr(limited ? "a time limit of 7 s" : "no time limit"));
    }
}

TEST_F(Running, KvmOnlyWhenItIsAskedFor) {
    const auto plain = with_false_qemu({});
    EXPECT_EQ(plain.status, kExitVmEnded);
    EXPECT_THAT(plain.err, HasSubstr("no such machine"));
    EXPECT_THAT(arguments(), HasSubstr("-accel\ntcg,thread=multi\n-cpu\nmax,la57=off\n"));
    EXPECT_EQ(arguments().find("kvm"), std::string::npos);
    EXPECT_EQ(plain.err.find("kvm"), std::string::npos);

    const auto kvm = with_false_qemu({"--accel", "kvm"});
    EXPECT_EQ(kvm.status, kExitVmEnded);
    EXPECT_THAT(arguments(), HasSubstr("-accel\nkvm\n-cpu\nhost,la57=off\n"));
    EXPECT_EQ(arguments().find("tcg"), std::string::npos);
    EXPECT_THAT(kvm.err, HasSubstr("the default, tcg"));
}

}  // namespace
}  // namespace orrery::vm
