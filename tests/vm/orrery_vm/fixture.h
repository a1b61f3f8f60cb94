// Runs orrery-vm as a program.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/vm/files.h"
#include "tools/vm/process.h"
#include "tools/vm/result.h"

namespace orrery::vm {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

inline constexpr int kLimit =
    120000;  // milliseconds; far above what a run takes, so that a hang ends the test

struct Outcome {
    int status = -1;
    std::string out;
    std::string err;
    fs::path logs;
};

class OrreryVm : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = "/tmp/orrery-vm-test-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        home_ = name;
        fs::create_directory(home_ / "runtime");
        ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", (home_ / "runtime").c_str(), 1), 0);
    }
    void TearDown() override {
        EXPECT_THAT(left_behind(), IsEmpty());
        fs::remove_all(home_);
    }

    // Sockets and other files that runs must take away with them.
    std::vector<std::string> left_behind() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(home_ / "runtime"))
            names.push_back(entry.path().string());
        return names;
    }

    struct Started {
        Child process;
        fs::path directory;
        fs::path logs;
    };

    Started start(std::vector<std::string> arguments, const std::string& name, int in = -1) {
        const fs::path directory = home_ / name;
        fs::create_directories(directory);
        std::vector<std::string> argv{ORRERY_VM, "--logs", (directory / "logs").string()};
        argv.insert(argv.end(), arguments.begin(), arguments.end());
        auto out = open_log((directory / "out").string());
        auto err = open_log((directory / "err").string());
        auto child = Child::start({.argv = argv, .in = in, .out = out->get(), .err = err->get(), .keep = {}});
        EXPECT_TRUE(child) << child.error().text;
        return {std::move(*child), directory, directory / "logs"};
    }

    Outcome finish(Started& started) {
        const auto status = started.process.wait(kLimit);
        EXPECT_TRUE(status) << "orrery-vm did not end";
        Outcome outcome;
        if (status && WIFEXITED(*status)) outcome.status = WEXITSTATUS(*status);
        outcome.out = read_file(started.directory / "out").value();
        outcome.err = read_file(started.directory / "err").value();
        outcome.logs = started.logs;
        return outcome;
    }

    Outcome run(std::vector<std::string> arguments) {
        auto started = start(std::move(arguments), "run" + std::to_string(runs_++));
        return finish(started);
    }

    // A command in a VM with neither cards nor module.
    Outcome command(std::vector<std::string> words, std::vector<std::string> options = {}) {
        std::vector<std::string> arguments{"--cards", "0", "--no-module"};
        arguments.insert(arguments.end(), options.begin(), options.end());
        arguments.push_back("--");
        arguments.insert(arguments.end(), words.begin(), words.end());
        return run(arguments);
    }

    // Waits until the run has started QEMU, and gives QEMU's process id.
    pid_t qemu_of(const Started& started) {
        const fs::path file = started.logs / "run.json";
        for (int i = 0; i < kLimit / 10 && !fs::exists(file); ++i)
            ::usleep(10000);
        return nlohmann::json::parse(read_file(file).value()).at("qemu").get<pid_t>();
    }

    // Waits until the command has written this.
    static void wait_for_output(const Started& started, const std::string& text) {
        for (int i = 0;
             i < kLimit / 10 && read_file(started.directory / "out").value().find(text) == std::string::npos;
             ++i)
            ::usleep(10000);
    }

    static bool ends(pid_t pid) {
        for (int i = 0; i < kLimit / 10; ++i) {
            if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
            ::usleep(10000);
        }
        return false;
    }

    fs::path home_;
    int runs_ = 0;
};

}  // namespace orrery::vm
