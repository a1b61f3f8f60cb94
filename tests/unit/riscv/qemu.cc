#include "tests/unit/riscv/qemu.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "tests/unit/riscv/guest/wire.h"

namespace orrery::riscv::test {

using model::Outcome;

namespace {

void put(std::string& out, u64 word) {
    out.append(reinterpret_cast<const char*>(&word), sizeof word);
}

u64 offset_of(const Patch& patch) {
    switch (patch.place) {
        case Place::kX:
            return offsetof(wire_state, x) + 8 * patch.at;
        case Place::kF:
            return offsetof(wire_state, f) + 8 * patch.at;
        case Place::kVector:
            return offsetof(wire_state, v) + patch.at;
        case Place::kMemory:
            return kWireMemory + patch.at;
        case Place::kVstart:
            return offsetof(wire_state, vstart);
        case Place::kVtype:
            return offsetof(wire_state, vtype);
        case Place::kVl:
            return offsetof(wire_state, vl);
        case Place::kVxsat:
            return offsetof(wire_state, vxsat);
        case Place::kVxrm:
            return offsetof(wire_state, vxrm);
        case Place::kFrm:
            return offsetof(wire_state, frm);
        case Place::kFflags:
            return offsetof(wire_state, fflags);
    }
    throw std::logic_error("no such place");
}

}  // namespace

std::string qemu_of_tree() {
    FILE* pipe = popen(ORRERY_SOURCE_DIR "/tools/vm/tree.sh --path", "r");
    std::string tree;
    for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;)
        if (c != '\n') tree += static_cast<char>(c);
    if (pipe == nullptr || pclose(pipe) != 0 || tree.empty()) throw std::runtime_error("there is no VM tree");
    return tree + "/lib64/ld-linux-x86-64.so.2 --library-path " + tree + "/usr/lib/x86_64-linux-gnu " + tree +
           "/usr/bin/qemu-riscv64";
}

std::string qemu_options(unsigned vlen) {
    return " -cpu rv64,v=true,vlen=" + std::to_string(vlen) + ",zvfh=true,zvfbfmin=true,zvfbfwma=true ";
}

Qemu::Qemu(const std::string& command, unsigned vlen, const std::string& guest) {
    static_assert(kWireWindow == model::kWindow && kWireWindowBytes == model::kWindowBytes);
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) throw std::runtime_error("no pipes");
    std::vector<std::string> words;
    std::istringstream in(command + qemu_options(vlen) + guest);
    for (std::string word; in >> word;)
        words.push_back(word);
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, down[0], 0);
    posix_spawn_file_actions_adddup2(&actions, up[1], 1);
    if (posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
        process_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(down[0]);
    close(up[1]);
    to_ = down[1];
    from_ = up[0];
    signal(SIGPIPE, SIG_IGN);
}

Qemu::~Qemu() {
    close(to_);
    close(from_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
}

bool Qemu::send(const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t n = write(to_, bytes.data() + done, bytes.size() - done);
        if (n <= 0) return false;
        done += static_cast<std::size_t>(n);
    }
    return true;
}

bool Qemu::receive(void* data, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
        const ssize_t n = read(from_, static_cast<char*>(data) + done, size - done);
        if (n <= 0) return false;
        done += static_cast<std::size_t>(n);
    }
    return true;
}

std::vector<Observation> Qemu::run(const Program& program) {
    std::string bytes;
    for (const Step& step : program.steps) {
        for (const Patch& patch : step.patches) {
            put(bytes, kWirePatch | patch.words.size() << 11);
            put(bytes, offset_of(patch));
            bytes.append(reinterpret_cast<const char*>(patch.words.data()), patch.words.size() * 8);
        }
        put(bytes, kWireExecute | (step.may_store ? 1u : 0u) << 8 | u64{step.instruction} << 32);
    }
    std::string message;
    put(message, bytes.size());
    std::vector<Observation> seen;
    if (!send(message + bytes)) return seen;
    for (const Step& step : program.steps) {
        wire_state wire{};
        model::State state(program.vlen);
        if (!receive(&wire, offsetof(wire_state, v) + state.v.size())) break;
        if (step.may_store && !receive(state.memory.data(), state.memory.size())) break;
        std::memcpy(state.x.data(), wire.x, sizeof wire.x);
        std::memcpy(state.f.data(), wire.f, sizeof wire.f);
        std::memcpy(state.v.data(), wire.v, state.v.size());
        state.vstart = wire.vstart;
        state.vl = wire.vl;
        state.vtype = wire.vtype;
        state.vxsat = static_cast<u8>(wire.vxsat);
        state.vxrm = static_cast<u8>(wire.vxrm);
        state.frm = static_cast<u8>(wire.frm);
        state.fflags = static_cast<u8>(wire.fflags);
        // A signal does not say whether it was a load or a store; the model's word is taken for that, and for
        // the address within its page: of an access over two pages the host names either, and of an
        // address that no x86-64 program can have it says 0.
        model::Result result{wire.signal == 0        ? Outcome::kDone
                             : wire.signal == SIGILL ? Outcome::kIllegal
                             : step.may_store        ? Outcome::kStoreFault
                                                     : Outcome::kLoadFault,
                             0};
        if ((wire.signal == SIGSEGV || wire.signal == SIGBUS) && step.result.outcome != Outcome::kIllegal) {
            result.address = wire.address;
            if (const bool impossible = step.result.address >> 47 != 0;
                (impossible && wire.address == 0) || (wire.address ^ step.result.address) < 0x1000)
                result.address = step.result.address;
        }
        seen.push_back({result, std::move(state)});
    }
    return seen;
}

}  // namespace orrery::riscv::test
