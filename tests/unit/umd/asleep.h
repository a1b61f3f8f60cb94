// Whether another thread sleeps in the kernel: then it waits for whoever lets it go on.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace orrery::umd::test {

inline bool asleep(pid_t thread) {
    std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t name = text.rfind(')');
    return name != std::string::npos && text.substr(name, 3) == ") S";
}

}  // namespace orrery::umd::test
