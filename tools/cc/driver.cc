#include "tools/cc/driver.h"

#include <fmt/format.h>
#include <orrery/orrery.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
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
        options.march,
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
        "-fno-math-errno",  // a square root is an instruction
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

int check_module(const std::string& path, const std::string& name) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(in), {}};
    if (!in || orrModuleCheckData(image.data(), image.size()) != orrSuccess) {
        fmt::print(stderr, "orrery-cc: {}: {}\n", name, in ? orrGetLastErrorText() : "cannot be read back");
        return 1;
    }
    return 0;
}

std::string with_suffix(const std::string& name, const char* suffix) {
    return fs::path(name).replace_extension().string() + suffix;
}

// What is made of an input when no name is given: in the current folder, wherever the input lies.
std::string default_output(const std::string& input, const char* suffix) {
    return fs::path(input).stem().string() + suffix;
}

class Driver {
  public:
    Driver(const Options& options, std::string compiler, std::string linker, Folders folders)
        : options_(options),
          compiler_(std::move(compiler)),
          linker_(std::move(linker)),
          folders_(std::move(folders)) {}

    int run() {
        if (temporary_.path().empty()) {
            fmt::print(stderr, "orrery-cc: cannot make a temporary folder: is TMPDIR writable?\n");
            return 1;
        }
        std::error_code error;
        for (const auto& input : options_.sources) {
            if (!fs::is_regular_file(input, error)) return missing(input);
        }
        for (const auto& input : options_.link_inputs) {
            if (!input.starts_with("-") && !fs::is_regular_file(input, error)) return missing(input);
        }
        return options_.objects_only ? make_objects() : make_module();
    }

  private:
    static int missing(const std::string& input) {
        fmt::print(stderr, "orrery-cc: {}: no such file\n", input);
        return 1;
    }

    // Whether two sources would become one object.
    bool clash() const {
        std::map<std::string, std::string> made;
        for (const auto& source : options_.sources) {
            const auto [other, is_new] = made.emplace(default_output(source, ".o"), source);
            if (is_new) continue;
            fmt::print(stderr, "orrery-cc: {} and {} would both become {}: compile one of them with -o\n",
                       other->second, source, other->first);
            return true;
        }
        return false;
    }

    int make_objects() {
        if (options_.output.empty() && clash()) return 1;
        for (const auto& source : options_.sources) {
            const std::string object =
                options_.output.empty() ? default_output(source, ".o") : options_.output;
            const std::string list = !options_.list_headers          ? ""
                                     : options_.dependencies.empty() ? with_suffix(object, ".d")
                                                                     : options_.dependencies;
            if (int status = make_object(source, object, with_suffix(object, ".s"), object, list))
                return status;
        }
        return 0;
    }

    int make_object(const std::string& source, const std::string& object, const std::string& assembly,
                    const std::string& target, const std::string& list) {
        auto step = compile_command(compiler_, options_, folders_);
        if (options_.save_temps) {
            auto readable = step;
            readable.insert(readable.end(), {"-S", source, "-o", assembly});
            if (int status = run_step(options_, readable)) return status;
        }
        step.insert(step.end(), {"-c", source, "-o", object});
        if (!list.empty()) step.insert(step.end(), {"-MD", "-MF", list, "-MT", target});
        return run_step(options_, step);
    }

    int make_module() {
        const std::string output =
            options_.output.empty() ? default_output(options_.sources.empty() ? options_.link_inputs.front()
                                                                              : options_.sources.front(),
                                                     ".elf")
                                    : options_.output;
        std::vector<std::string> objects, lists;
        for (std::size_t n = 0; n < options_.sources.size(); ++n) {
            const std::string& source = options_.sources[n];
            // Sources in different folders may be called the same.
            const std::string kept =
                options_.sources.size() == 1
                    ? output
                    : fmt::format("{}.{}.{}", output, n, fs::path(source).stem().string());
            objects.push_back(options_.save_temps ? kept + ".o"
                                                  : (temporary_.path() / fmt::format("{}.o", n)).string());
            std::string list;
            if (options_.list_headers) {
                lists.push_back((temporary_.path() / fmt::format("{}.d", n)).string());
                list = lists.back();
            }
            if (int status = make_object(source, objects.back(), kept + ".s", output, list)) return status;
        }
        if (options_.list_headers &&
            !join(lists, options_.dependencies.empty() ? output + ".d" : options_.dependencies))
            return 1;

        const std::string runtime = (temporary_.path() / "runtime.o").string();
        Options plain;
        plain.march = options_.march;
        plain.verbose = options_.verbose;
        auto step = compile_command(compiler_, plain, folders_);
        // Or the compiler makes of memcpy's loop a call of memcpy.
        step.insert(step.end(), {"-fno-builtin", "-c", folders_.runtime, "-o", runtime});
        if (int status = run_step(options_, step)) return status;
        objects.insert(objects.end(), options_.link_inputs.begin(), options_.link_inputs.end());
        objects.push_back(runtime);
        return link(objects, output);
    }

    // Several lists for build tools, as one: a rule for each source.
    static bool join(const std::vector<std::string>& lists, const std::string& output) {
        std::ofstream out(output, std::ios::binary);
        for (const auto& list : lists) {
            std::ifstream in(list, std::ios::binary);
            out << in.rdbuf();
        }
        out.close();
        if (!out) fmt::print(stderr, "orrery-cc: {} cannot be written\n", output);
        return static_cast<bool>(out);
    }

    int link(const std::vector<std::string>& inputs, const std::string& output) {
        // Written aside, so that no half-made or refused module stays under the wanted name.
        const std::string made = output + ".tmp" + std::to_string(::getpid());
        std::vector<std::string> step = {linker_,
                                         "-m",
                                         "elf64lriscv",
                                         "-shared",
                                         "-Bstatic",
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
                                         "text"};
        // By this name a debugger of the kernel finds the file.
        if (std::ranges::find(options_.passed_on, "-g") != options_.passed_on.end())
            step.insert(step.end(), {"-soname", fs::path(output).filename().string()});
        step.insert(step.end(), inputs.begin(), inputs.end());
        step.insert(step.end(), {"-o", made});
        int status = run_step(options_, step);
        if (status == 0) status = check_module(made, output);
        if (status == 0 && std::rename(made.c_str(), output.c_str()) != 0) {
            fmt::print(stderr, "orrery-cc: {} cannot be written\n", output);
            status = 1;
        }
        std::error_code error;
        if (status != 0) fs::remove(made, error);
        return status;
    }

    const Options& options_;
    std::string compiler_, linker_;
    Folders folders_;
    TemporaryFolder temporary_;
};

}  // namespace

int compile(const Options& options) {
    auto compiler = find_program({"clang++-19", "clang++"});
    if (!compiler) {
        fmt::print(stderr, "orrery-cc: clang++-19 is not installed: apt-get install clang-19\n");
        return 127;
    }
    auto linker = find_program({"ld.lld-19", "ld.lld"});
    if (!linker) {
        fmt::print(stderr, "orrery-cc: ld.lld-19 is not installed: apt-get install lld-19\n");
        return 127;
    }
    auto folders = find_folders();
    if (!folders) return 1;
    return Driver(options, *std::move(compiler), *std::move(linker), *std::move(folders)).run();
}

}  // namespace orrery::cc
