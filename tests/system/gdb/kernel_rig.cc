// What gdb connects to in kernels.sh: the vector cores of a card, with a module of orrery-cc in their memory.
//   kernel_rig MODULE.elf
// Prints "port N". With each line that it reads it launches a kernel, "scale" or "fails", in two groups, and
// prints how it ended; it ends with its input.
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "emulator/card/kernel_target.h"
#include "emulator/gdb/server.h"
#include "tests/system/gdb/scale_kernel.h"
#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kModule = 0x3000'0000'0000, kModuleOffset = 1 << 20;
constexpr std::uint64_t kData = 0x10'0000'0000, kDataOffset = 16 << 20, kDataBytes = 1 << 20;
constexpr std::uint64_t kNumbers = 1000;

template <class T>
T at(const std::vector<char>& file, std::uint64_t offset) {
    T value;
    if (offset > file.size() || sizeof value > file.size() - offset) throw std::runtime_error("short file");
    std::memcpy(&value, file.data() + offset, sizeof value);
    return value;
}

// Its own build's module: nothing is checked but that it is there.
std::map<std::string, std::uint64_t> load(Rig& rig, const std::vector<char>& file) {
    const auto header = at<Elf64_Ehdr>(file, 0);
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        const auto segment = at<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr));
        if (segment.p_type != PT_LOAD) continue;
        std::memcpy(rig.vram.data() + kModuleOffset + segment.p_vaddr, file.data() + segment.p_offset,
                    segment.p_filesz);
        const std::uint64_t first = segment.p_vaddr & ~std::uint64_t{ORR_PAGE_SIZE - 1};
        const std::uint64_t rights = (segment.p_flags & PF_X) != 0 ? ORR_PTE_EXEC : 0;
        rig.map(kModule + first, segment.p_vaddr + segment.p_memsz - first, ORR_TARGET_VRAM,
                kModuleOffset + first, ORR_PTE_READ | rights);
    }
    std::map<std::string, std::uint64_t> functions;
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        const auto section = at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
        if (section.sh_type != SHT_DYNSYM) continue;
        const auto names = at<Elf64_Shdr>(file, header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
        for (std::uint64_t n = 0; n < section.sh_size / sizeof(Elf64_Sym); ++n) {
            const auto symbol = at<Elf64_Sym>(file, section.sh_offset + n * sizeof(Elf64_Sym));
            functions[file.data() + names.sh_offset + symbol.st_name] = kModule + symbol.st_value;
        }
    }
    return functions;
}

VectorConfig vectors() {
    VectorConfig config;
    config.first_port = 2;
    config.vlen = 2048;
    return config;
}

int serve(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> file{std::istreambuf_iterator<char>(in), {}};
    Rig rig;
    VectorUnit unit(vectors(), rig.context);
    auto functions = load(rig, file);
    rig.map(kData, kDataBytes, ORR_TARGET_VRAM, kDataOffset);
    auto* const args = reinterpret_cast<ScaleArgs*>(rig.vram.data() + kDataOffset);
    auto* const x = reinterpret_cast<float*>(rig.vram.data() + kDataOffset + 4096);
    float* const y = x + kNumbers;
    *args = {reinterpret_cast<const float*>(kData + 4096),
             reinterpret_cast<float*>(kData + 4096 + kNumbers * sizeof(float)), kNumbers, 2.5f};
    for (std::uint64_t i = 0; i < kNumbers; ++i)
        x[i] = static_cast<float>(i);

    KernelTarget target(unit.debugger(), [](const std::string& text) { fmt::print("{}\n", text); });
    auto server = gdb::Server::create(0);
    if (!server) throw std::runtime_error(server.error());
    fmt::print("port {}\n", (*server)->port());
    std::fflush(stdout);
    std::string line;
    for (bool input = true; input || unit.debugger().attached();) {
        (*server)->service(target);
        if (!unit.debugger().stopped()) rig.events.run_next(kNever - 1);
        for (const Completion& done : rig.done) {
            float sum = 0;
            for (std::uint64_t i = 0; i < kNumbers; ++i)
                sum += y[i];
            fmt::print("end status {} sum {} model time {}\n", done.status, sum, done.end_ps - done.start_ps);
            std::fflush(stdout);
        }
        rig.done.clear();
        pollfd ready{STDIN_FILENO, POLLIN, 0};
        const bool idle = unit.debugger().stopped() || rig.events.empty();
        if (::poll(&ready, 1, idle ? 1 : 0) <= 0 || !input || unit.port(0).busy()) continue;
        char byte = 0;
        input = ::read(STDIN_FILENO, &byte, 1) == 1;
        if (byte != '\n') {
            line += byte;
            continue;
        }
        std::fill_n(y, kNumbers, 0.0f);
        orr_desc_kernel desc{};
        desc.op = ORR_DESC_KERNEL;
        desc.asid = 1;
        desc.entry = functions.at(std::exchange(line, {}));
        desc.args = kData;
        desc.grid_x = 2;
        desc.grid_y = desc.grid_z = desc.block_x = desc.block_y = desc.block_z = 1;
        if (!unit.port(0).start(Rig::words_of(desc), 5)) throw std::runtime_error("busy");
    }
    return 0;
}

}  // namespace
}  // namespace orrery::emu::test

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: kernel_rig MODULE.elf\n", stderr);
        return 2;
    }
    try {
        return orrery::emu::test::serve(argv[1]);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
