// A file with a line for each launch of a kernel that has ended: what it computed, and how much of it in the
// order of model time (engines/ahead/launch_account.h). For people, and for tools that take columns apart at
// tabs; docs/engines.md has the columns.
#pragma once

#include <cstdint>
#include <cstdio>
#include <expected>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "emulator/engines/ahead/launch_account.h"
#include "emulator/memory/mmu.h"

namespace orrery::emu {

class LaunchLog {
  public:
    static constexpr std::uint64_t kMostLaunches = 1'000'000;

    // Replaces the file. `mmu` outlives the log.
    static std::expected<std::unique_ptr<LaunchLog>, std::string> create(const std::filesystem::path& path,
                                                                         Mmu& mmu);
    // Card thread.
    void note(const LaunchAccount& launch);

  private:
    struct Closer {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    static constexpr std::size_t kMostNames = 256;

    LaunchLog(std::FILE* file, Mmu& mmu) : file_(file), mmu_(mmu) {}
    // Module and offset, or the address.
    const std::string& name_of(std::uint32_t asid, std::uint64_t code);

    std::unique_ptr<std::FILE, Closer> file_;
    Mmu& mmu_;
    std::uint64_t launches_ = 0;
    std::uint64_t generation_ = 0;  // of the MMU, at which names_ were right
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> names_;
};

}  // namespace orrery::emu
