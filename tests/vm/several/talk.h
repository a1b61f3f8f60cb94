// What programs of several VMs say to each other by files in /share, and of their checks.
#pragma once

#include <fmt/format.h>
#include <orrery/orrery.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace orrery::vm::test {

[[noreturn]] inline void fail(const std::string& what) {
    fmt::print(stderr, "{}: {}\n", program_invocation_short_name, what);
    std::exit(1);
}

inline void say(const std::string& what) {
    fmt::print("{}\n", what);
    std::fflush(stdout);
}

inline void check(bool good, const std::string& what) {
    if (!good) fail(fmt::format("{} ({})", what, orrGetLastErrorText()));
    say(what);
}

inline void must(orrError_t code) {
    if (code != orrSuccess) fail(fmt::format("{}: {}", orrGetErrorName(code), orrGetLastErrorText()));
}

inline void check(orrError_t got, orrError_t wanted, const char* part, const std::string& what) {
    const std::string text = orrGetLastErrorText();
    if (got != wanted || text.find(part) == std::string::npos)
        fail(fmt::format("{}: {} and not {} with '{}': {}", what, orrGetErrorName(got),
                         orrGetErrorName(wanted), part, text));
    say(what);
}

inline void put(const std::string& name, const void* bytes = "", std::size_t size = 0) {
    std::ofstream("/share/" + name + ".new", std::ios::binary)
        .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    std::filesystem::rename("/share/" + name + ".new", "/share/" + name);
}

inline void await(const std::string& name) {
    for (int tries = 0; !std::filesystem::exists("/share/" + name); ++tries) {
        if (tries == 3000) fail(fmt::format("the other did not come to '{}' in a minute", name));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

inline orrFabricHandle get(const std::string& name) {
    await(name);
    orrFabricHandle handle{};
    std::ifstream("/share/" + name, std::ios::binary).read(reinterpret_cast<char*>(&handle), sizeof handle);
    return handle;
}

inline orrSemaphore_t give_semaphore(const std::string& name) {
    orrSemaphore_t semaphore = nullptr;
    must(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    must(orrSemaphoreSetName(semaphore, name.c_str()));
    orrFabricHandle handle{};
    must(orrFabricExportSemaphore(&handle, semaphore, 0));
    put(name, &handle, sizeof handle);
    return semaphore;
}

inline orrSemaphore_t take_semaphore(const std::string& name) {
    const orrFabricHandle handle = get(name);
    orrSemaphore_t semaphore = nullptr;
    must(orrFabricImportSemaphore(&semaphore, &handle, 0));
    return semaphore;
}

}  // namespace orrery::vm::test
