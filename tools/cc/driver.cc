#include "tools/cc/driver.h"

#include <fmt/format.h>
#include <orrery/orrery.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "tools/cc/process.h"

namespace orrery::cc {
namespace {

namespace fs = std::filesystem;

struct Folders {
    std::vector<std::string> includes;
    std::string runtime;
};

std::optional<Folders> find_folders() {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    const fs::path installed = self.parent_path().parent_path();
    if (!error && fs::exists(installed / "lib/orrery/cc/memory.cc", error)) {
        return Folders{{installed / "include", installed / "lib/orrery/cc/include"},
                       installed / "lib/orrery/cc/memory.cc"};
    }
    const fs::path root = ORRERY_CC_SOURCE_ROOT;
    if (fs::exists(root / "tools/cc/runtime/memory.cc", error)) {
        return Folders{{root / "umd/include", root / "emulator/include", root / "tools/cc/runtime/include"},
                       root / "tools/cc/runtime/memory.cc"};
    }
    fmt::print(
        stderr,
        "orrery-cc: its headers are neither beside it ({}/include) nor in the checkout that it was built "
        "from ({}): build it again\n",
        installed.string(), root.string());
    return std::nullopt;
}

// A folder for object files that goes away with the object.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (fs::temp_directory_path() / "orrery-cc-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code error;
        if (!path_.empty()) fs::remove_all(path_, error);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

int run_step(const Options& options, const std::vector<std::string>& command) {
    if (options.verbose) {
        std::string line;
        for (const auto& argument : command)
            line += (line.empty() ? "" : " ") + argument;
        fmt::print(stderr, "{}\n", line);
    }
    return run(command);
}

std::vector<std::string> compile_command(const std::string& compiler, const Options& options,
                                         const Folders& folders) {
    std::vector<std::string> command = {
        compiler,
        "--target=riscv64-unknown-elf",
        "-march=rv64imafdc",
        "-mabi=lp64d",
        "-mcmodel=medany",
        "-std=c++23",
        "-x",
        "c++",
        "-ffreestanding",
        "-nostdinc++",
        "-fPIC",
        "-fvisibility=hidden",
        "-fno-exceptions",
        "-fno-rtti",
        "-fno-threadsafe-statics",
        "-fno-asynchronous-unwind-tables",
        "-fno-stack-protector",
        "-ffunction-sections",
        "-fdata-sections",
        "-Wall",
        options.optimisation,
    };
    command.insert(command.end(), options.passed_on.begin(), options.passed_on.end());
    for (const auto& folder : folders.includes) {
        command.push_back("-isystem");
        command.push_back(folder);
    }
    return command;
}

int check_module(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(in), {}};
    if (!in || orrModuleCheckData(image.data(), image.size()) != orrSuccess) {
        fmt::print(stderr, "orrery-cc: {}: {}\n", path, in ? orrGetLastErrorText() : "cannot be read back");
        return 1;
    }
    return 0;
}

}  // namespace

int compile(const Options& options) {
    const auto compiler = find_program({"clang++-19", "clang++"});
    if (!compiler) {
        fmt::print(stderr, "orrery-cc: clang++-19 is not installed: apt-get install clang-19\n");
        return 127;
    }
    const auto linker = find_program({"ld.lld-19", "ld.lld"});
    if (!linker) {
        fmt::print(stderr, "orrery-cc: ld.lld-19 is not installed: apt-get install lld-19\n");
        return 127;
    }
    const auto folders = find_folders();
    if (!folders) return 1;
    std::error_code error;
    if (!fs::is_regular_file(options.source, error)) {
        fmt::print(stderr, "orrery-cc: {}: no such file\n", options.source);
        return 1;
    }

    const TemporaryFolder temporary;
    if (temporary.path().empty()) {
        fmt::print(stderr, "orrery-cc: cannot make a temporary folder: is TMPDIR writable?\n");
        return 1;
    }
    const std::string object =
        options.save_temps ? options.output + ".o" : (temporary.path() / "kernel.o").string();
    const std::string runtime = (temporary.path() / "runtime.o").string();

    auto step = compile_command(*compiler, options, *folders);
    if (options.save_temps) {
        auto assembly = step;
        assembly.insert(assembly.end(), {"-S", options.source, "-o", options.output + ".s"});
        if (int status = run_step(options, assembly)) return status;
    }
    step.insert(step.end(), {"-c", options.source, "-o", object});
    if (!options.dependencies.empty())
        step.insert(step.end(), {"-MD", "-MF", options.dependencies, "-MT", options.output});
    if (int status = run_step(options, step)) return status;

    Options plain;
    plain.verbose = options.verbose;
    step = compile_command(*compiler, plain, *folders);
    // Or the compiler makes of memcpy's loop a call of memcpy.
    step.insert(step.end(), {"-fno-builtin", "-c", folders->runtime, "-o", runtime});
    if (int status = run_step(options, step)) return status;

    // Written aside, so that no half-made or refused module stays under the wanted name.
    const std::string made = options.output + ".tmp" + std::to_string(::getpid());
    int status = run_step(options, {*linker,
                                    "-m",
                                    "elf64lriscv",
                                    "-shared",
                                    "-Bsymbolic",
                                    "--no-undefined",
                                    "--gc-sections",
                                    "--hash-style=sysv",
                                    "-z",
                                    "separate-code",
                                    "-z",
                                    "norelro",
                                    "-z",
                                    "max-page-size=4096",
                                    "-z",
                                    "noexecstack",
                                    "-z",
                                    "text",
                                    object,
                                    runtime,
                                    "-o",
                                    made});
    if (status == 0) status = check_module(made);
    if (status == 0 && std::rename(made.c_str(), options.output.c_str()) != 0) {
        fmt::print(stderr, "orrery-cc: {} cannot be written\n", options.output);
        status = 1;
    }
    if (status != 0) fs::remove(made, error);
    return status;
}

}  // namespace orrery::cc
