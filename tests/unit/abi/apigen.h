// Runs orrery-apigen on headers and lists of a test's own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace orrery::test {

inline std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

class Apigen : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / fmt::format("orrery-apigen-{}", ::getpid());
        for (const char* part : {"include/orrery", "releases", "out"})
            std::filesystem::create_directories(folder_ / part);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
    void header(const std::string& text) {
        const std::string version =
            fmt::format("#pragma once\n#define ORR_VERSION_MAJOR 0\n#define ORR_VERSION_MINOR {}\n", minor_);
        write("include/orrery/api.h",
              version + "#include <stddef.h>\n#define ORR_API __attribute__((visibility(\"default\")))\n" +
                  text);
    }
    // Exit status; what it printed is in output_.
    int run() { return apigen("include releases out"); }
    int list(const std::string& version) { return apigen("list " + version + " include releases"); }
    int release(const std::string& version) { return apigen("release " + version + " releases"); }
    std::string made(const std::string& name) { return contents(folder_ / name); }

    std::filesystem::path folder_;
    std::string output_;
    int minor_ = 2;  // of the headers to come

  private:
    int apigen(const std::string& parameters) {
        const std::string command =
            fmt::format("cd {} && {} {} > output 2>&1", folder_.string(), APIGEN, parameters);
        const int status = std::system(command.c_str());
        output_ = contents(folder_ / "output");
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
};

}  // namespace orrery::test
