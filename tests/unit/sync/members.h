// Members of a lockstep that are no cards: each on a thread, with events and messages in memory.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "emulator/sync/lockstep.h"

namespace orrery::emu::sync::test {

class TempFolder {
  public:
    TempFolder() {
        char name[] = "/tmp/orrery-sync-XXXXXX";
        if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = name;
    }
    ~TempFolder() { std::filesystem::remove_all(path_); }
    std::filesystem::path file() const { return path_ / "sync"; }

  private:
    std::filesystem::path path_;
};

inline std::unique_ptr<Lockstep> join(const TempFolder& folder, std::uint64_t uid, ModelTime lookahead = 500,
                                      std::vector<std::string>* notes = nullptr) {
    auto joined = Lockstep::join({.file = folder.file(),
                                  .uid = uid,
                                  .lookahead = lookahead,
                                  .silent_looks = 3,
                                  .note = [notes](const std::string& text) {
                                      if (notes != nullptr) notes->push_back(text);
                                  }});
    if (!joined) throw std::runtime_error(joined.error());
    return *std::move(joined);
}

inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b = 0) {
    std::uint64_t x = a * 0x9e3779b97f4a7c15 + b * 0xbf58476d1ce4e5b9 + 0x94d049bb133111eb;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// Something that happens at a member: what it was sent, or its own.
struct Happening {
    ModelTime at = 0;
    unsigned from = 0;  // itself: one more than all others, so it comes last of its time
    std::uint64_t number = 0;
    unsigned hops = 0;
    auto operator<=>(const Happening&) const = default;
};

// What follows from a happening depends on nothing but itself: own work, and messages to others.
struct Consequence {
    unsigned to = 0;
    Happening what;
};
inline std::vector<Consequence> consequences(unsigned members, unsigned self, const Happening& of,
                                             ModelTime lookahead) {
    std::vector<Consequence> all;
    if (of.hops == 0) return all;
    const std::uint64_t seed = mixed(mixed(of.at, of.number), self * 64 + of.from);
    const unsigned count = 1 + (seed % 8 == 0 ? 1 : 0);
    for (unsigned n = 0; n < count; ++n) {
        const std::uint64_t random = mixed(seed, n + 1);
        const unsigned to = random % 3 == 0 ? self : static_cast<unsigned>(random / 3 % members);
        Happening what{.number = random, .hops = of.hops - 1};
        if (to == self) {
            what.at = of.at + random / 64 % 3000;
            what.from = members;
        } else {
            // Times of which many are the same.
            what.at = (of.at + lookahead + random / 64 % 700 + 99) / 100 * 100;
            what.from = self;
        }
        all.push_back({to, what});
    }
    return all;
}

}  // namespace orrery::emu::sync::test
