// How many ports a switch has and how fast they are: a file as those of emulator/skus, with a few keys.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace orrery::emu {

struct SwitchModel {
    std::string name = "Switch 1";
    std::uint32_t ports = 32;        // 2 .. 32
    std::uint32_t forward_ns = 300;  // from a message's head at one port to its head at another
    // Of each port.
    std::uint32_t lanes = 4;
    std::uint32_t gbps = 400;        // of all lanes, one direction
    std::uint32_t latency_ns = 500;  // one way
    std::uint32_t retries = 8;
    std::uint32_t retrain_ns = 20'000;

    // The built-in one of that name, or a file. Errors are a line.
    static std::expected<SwitchModel, std::string> find(const std::string& name);
    static std::expected<SwitchModel, std::string> parse(std::string_view text, const std::string& file);
};

}  // namespace orrery::emu
