// A target of 64 KiB of memory that does as it is told and keeps notes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emulator/gdb/target.h"

namespace orrery::emu::gdb {

class FakeTarget : public Target {
  public:
    static constexpr std::uint64_t kBase = 0x80000000;
    static constexpr std::uint64_t kBytes = 65536;

    HartState state() override { return hart; }
    bool set_state(const HartState& state) override {
        if (reverse) return false;
        hart = state;
        return true;
    }
    bool read(std::uint64_t address, std::span<std::uint8_t> out) override {
        if (!has(address, out.size())) return false;
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = memory[address - kBase + i];
        return true;
    }
    bool write(std::uint64_t address, std::span<const std::uint8_t> in) override {
        if (!has(address, in.size())) return false;
        for (std::size_t i = 0; i < in.size(); ++i)
            memory[address - kBase + i] = in[i];
        return true;
    }
    bool insert_breakpoint(std::uint64_t address) override {
        if (points.size() >= 64) return false;
        points[address] = 0;
        return true;
    }
    bool remove_breakpoint(std::uint64_t address) override { return points.erase(address) != 0; }
    bool insert_watchpoint(std::uint64_t address, std::uint64_t bytes, Watch) override {
        points[address] = bytes;
        return true;
    }
    bool remove_watchpoint(std::uint64_t address, std::uint64_t, Watch) override {
        return points.erase(address) != 0;
    }
    bool can_reverse() const override { return reverse; }
    std::span<const std::uint8_t> program() const override { return elf; }
    void resume(Resume how) override { resumes.push_back(how); }
    bool poll(Stop& stop) override {
        if (!stops) return false;
        stop = next;
        return true;
    }
    void interrupt() override {
        next.kind = Stop::Kind::kInterrupt;
        stops = true;
    }
    void attach() override { ++attached; }
    void detach() override { --attached; }

    static bool has(std::uint64_t address, std::uint64_t size) {
        return address >= kBase && address - kBase <= kBytes && size <= kBytes - (address - kBase);
    }

    HartState hart;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kBytes);
    std::vector<std::uint8_t> elf;
    std::map<std::uint64_t, std::uint64_t> points;
    std::vector<Resume> resumes;
    Stop next;
    bool stops = true;
    bool reverse = false;
    int attached = 0;
};

}  // namespace orrery::emu::gdb
