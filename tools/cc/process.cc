#include "tools/cc/process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

namespace orrery::cc {

std::optional<std::string> find_program(const std::vector<std::string>& names) {
    const char* path = std::getenv("PATH");
    for (const std::string& name : names) {
        std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
        for (std::string folder; std::getline(folders, folder, ':');) {
            std::string program = folder.empty() ? "./" : folder + "/";
            program += name;
            if (::access(program.c_str(), X_OK) == 0) return program;
        }
    }
    return std::nullopt;
}

int run(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& argument : command)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    pid_t child = -1;
    if (::posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return 127;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return 127;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace orrery::cc
