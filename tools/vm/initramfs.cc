#include "tools/vm/initramfs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/vm/cpio.h"
#include "tools/vm/modules.h"
#include "tools/vm/process.h"
#include "tools/vm/programs.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxCpioFile = 0xffffffff;  // eight hexadecimal digits of the format
constexpr const char* kCommandDirectory = "/root";

class Builder {
  public:
    Builder(const Options& options, const Tree& tree, const Kernel& kernel)
        : options_(options), tree_(tree), kernel_(kernel) {}

    Result<void> busybox();
    Result<void> modules();
    Result<void> firmware();
    Result<void> programs();
    Result<void> files();
    Result<void> settings(const TerminalSize& terminal);
    const std::string& finish() { return cpio_.finish(); }

  private:
    Result<void> add(const fs::path& host, const std::string& guest);
    Result<void> add_tree(const fs::path& host, const std::string& guest);

    const Options& options_;
    const Tree& tree_;
    const Kernel& kernel_;
    Cpio cpio_;
};

// A regular file; a program brings its libraries.
Result<void> Builder::add(const fs::path& host, const std::string& guest) {
    if (cpio_.contains(guest)) return {};
    std::error_code error;
    const auto size = fs::file_size(host, error);
    if (error) return fail(fmt::format("cannot read {}: {}", host.string(), error.message()));
    if (size > kMaxCpioFile) return fail(fmt::format("{} is larger than 4 GiB: use --share", host.string()));
    auto bytes = read_file(host);
    if (!bytes) return std::unexpected(bytes.error());
    const bool executable = ::access(host.c_str(), X_OK) == 0;
    cpio_.file(guest, *bytes, executable ? 0755 : 0644);
    const std::string interpreter = elf_interpreter(*bytes);
    if (interpreter.empty()) return {};
    auto libraries = library_closure(host, interpreter);
    if (!libraries) return std::unexpected(libraries.error());
    for (const auto& library : *libraries) {
        auto library_bytes = read_file(library);
        if (!library_bytes) return std::unexpected(library_bytes.error());
        cpio_.file(library, *library_bytes, 0755);
    }
    return {};
}

Result<void> Builder::add_tree(const fs::path& host, const std::string& guest) {
    std::error_code error;
    if (!fs::is_directory(host, error)) return add(host, guest);
    cpio_.directory(guest);
    for (const auto& entry : fs::recursive_directory_iterator(host, error)) {
        const std::string to = guest + "/" + entry.path().lexically_relative(host).string();
        if (entry.is_directory(error)) {
            cpio_.directory(to);
        } else if (auto done = add(entry.path(), to); !done) {
            return done;
        }
    }
    if (error) return fail(fmt::format("cannot read {}: {}", host.string(), error.message()));
    return {};
}

Result<void> Builder::busybox() {
    const fs::path program = tree_.path() / "usr/bin/busybox";
    if (auto done = add(program, "/bin/busybox"); !done) return done;
    auto list = capture({program.string(), "--list"});
    if (!list) return std::unexpected(list.error());
    std::string_view names = *list;
    while (!names.empty()) {
        const auto end = std::min(names.find('\n'), names.size());
        cpio_.symlink(fmt::format("/bin/{}", names.substr(0, end)), "busybox");
        names.remove_prefix(std::min(end + 1, names.size()));
    }
    for (const char* path :
         {"/dev", "/proc", "/sys", "/run", "/var", "/etc/orrery", "/usr/bin", kCommandDirectory})
        cpio_.directory(path);
    cpio_.directory("/tmp", 01777);
    cpio_.directory("/share", 0755);
    const fs::path init = source_dir() / "tools/vm/guest/init";
    auto script = read_file(init);
    if (!script) return std::unexpected(script.error());
    cpio_.file("/init", *script, 0755);
    return {};
}

Result<void> Builder::modules() {
    auto dep = read_file(kernel_.modules / "modules.dep");
    if (!dep) return std::unexpected(dep.error());
    const auto index = ModuleIndex::parse(*dep);
    std::vector<std::string> order;
    if (!options_.share.empty())
        for (const char* name : {"9pnet_virtio", "9p"})
            index.resolve(name, order);
    if (options_.nvme) index.resolve("nvme", order);

    fs::path ours = options_.module_file;
    std::string ours_bytes;
    if (options_.module) {
        if (ours.empty()) ours = source_dir() / "build/kmod" / kernel_.release / "orrery.ko";
        auto bytes = read_file(ours);
        if (!bytes) {
            // kbuild.sh leaves one line that says why there is none.
            if (auto cause = read_file(ours.parent_path() / "failed"); cause)
                return fail(cause->substr(0, cause->find('\n')));
            return fail(fmt::format(
                "no module for kernel {}: {}; build it with tools/vm/kbuild.sh --kernel {}, or give "
                "--no-module",
                kernel_.release, bytes.error().text, kernel_.name));
        }
        ours_bytes = std::move(*bytes);
        for (const auto& name : module_dependencies(ours_bytes))
            if (!index.resolve(name, order))
                return fail(
                    fmt::format("{} needs module '{}', which kernel {} does not have: build it anew with "
                                "tools/vm/kbuild.sh",
                                ours.string(), name, kernel_.release));
    }

    const std::string directory = "/lib/modules/" + kernel_.release;
    std::string list;
    for (const auto& relative : order) {
        auto file = uncompressed(tree_, kernel_, relative);
        if (!file) return std::unexpected(file.error());
        const std::string guest = fmt::format("{}/{}.ko", directory, module_name(relative));
        if (auto done = add(*file, guest); !done) return done;
        list += guest + "\n";
    }
    cpio_.file("/etc/orrery/modules", list);
    if (options_.module) cpio_.file(directory + "/orrery.ko", ours_bytes);
    return {};
}

Result<void> Builder::firmware() {
    cpio_.directory("/lib/firmware/orrery");
    if (!options_.module || options_.firmware == "none") return {};
    fs::path image = options_.firmware;
    if (image.empty()) {
        image = options_.programs.parent_path() / "firmware/orrery-fw.bin";
        std::error_code error;
        if (!fs::exists(image, error)) {
            if (options_.cards == 0) return {};
            return fail(fmt::format("{} is missing: build the firmware, or give --firmware", image.string()));
        }
    }
    auto bytes = read_file(image);
    if (!bytes) return std::unexpected(bytes.error());
    cpio_.file("/lib/firmware/orrery/orrery-fw.bin", *bytes);
    return {};
}

Result<void> Builder::programs() {
    for (const auto& name : choose_programs(options_.programs, options_.command))
        if (auto done = add(options_.programs / name, "/usr/local/bin/" + name); !done) return done;
    return {};
}

Result<void> Builder::files() {
    for (const auto& file : options_.files) {
        std::error_code error;
        if (!fs::exists(file.host, error))
            return fail(fmt::format("--file: {} is not there", file.host.string()));
        fs::path host = fs::absolute(file.host, error).lexically_normal();
        if (!host.has_filename()) host = host.parent_path();  // "directory/"
        const std::string guest = file.guest.empty()
                                      ? fmt::format("{}/{}", kCommandDirectory, host.filename().string())
                                      : file.guest;
        if (auto done = add_tree(host, guest); !done) return done;
    }
    // Real input for the samples: a text that each Debian has, and the guest's own kernel.
    const char* text = "/usr/share/common-licenses/GPL-3";
    if (std::error_code error; fs::exists(text, error))
        if (auto done = add(text, text); !done) return done;
    return add(kernel_.image, "/boot/vmlinuz-" + kernel_.release);
}

Result<void> Builder::settings(const TerminalSize& terminal) {
    const bool other_user = options_.user.has_value() && *options_.user != 0;
    std::string passwd = "root:x:0:0:root:/root:/bin/sh\n";
    std::string group = "root:x:0:\n";
    if (other_user) {
        passwd += fmt::format("user:x:{0}:{0}:user:/tmp:/bin/sh\n", *options_.user);
        group += fmt::format("user:x:{}:\n", *options_.user);
    }
    group += fmt::format("{}:x:105:{}\n", kDeviceGroup, other_user && options_.device_group ? "user" : "");
    cpio_.file("/etc/passwd", passwd);
    cpio_.file("/etc/group", group);
    // Nodes that appear later (the module loaded again, a card added) get the group too.
    cpio_.file("/etc/mdev.conf",
               fmt::format("accel/accel[0-9]+ root:{} 0660\n.* root:root 0660\n", kDeviceGroup));

    const char* term = std::getenv("TERM");
    std::string run;
    const auto set = [&run](const char* name, const std::string& value) {
        run += fmt::format("{}={}\n", name, shell_quote(value));
    };
    set("CARDS", options_.module ? fmt::format("{}", options_.cards) : "0");
    set("MODULE", options_.module ? "/lib/modules/" + kernel_.release + "/orrery.ko" : "");
    set("MODULE_PARAMS", options_.module_params);
    set("EXPECT_PROBE_FAILURE", options_.expect_probe_failure ? "yes" : "");
    set("GROUP", kDeviceGroup);
    set("SHARE", options_.share.empty() ? "" : "yes");
    set("COMMAND_USER", other_user ? "user" : "");
    set("COMMAND_SHELL", options_.shell ? "yes" : "");
    set("PATIENCE", fmt::format("{}", kernel_.patience));
    set("ROWS", fmt::format("{}", terminal.rows));
    set("COLUMNS", fmt::format("{}", terminal.columns));
    set("TERMINAL", term != nullptr ? term : "linux");
    cpio_.file("/etc/orrery/run", run);

    std::string command = fmt::format("cd {}\n", kCommandDirectory);
    for (const auto& entry : options_.env) {
        const auto equals = entry.find('=');
        command +=
            fmt::format("export {}={}\n", entry.substr(0, equals), shell_quote(entry.substr(equals + 1)));
    }
    command += "exec";
    for (const auto& word : options_.command)
        command += " " + shell_quote(word);
    cpio_.file("/etc/orrery/command", command + "\n");
    return {};
}

}  // namespace

std::string shell_quote(const std::string& word) {
    std::string quoted = "'";
    for (const char c : word) {
        if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    }
    return quoted + "'";
}

Result<std::string> build_initramfs(const Options& options, const Tree& tree, const Kernel& kernel,
                                    const TerminalSize& terminal) {
    Builder builder(options, tree, kernel);
    if (auto done = builder.busybox(); !done) return std::unexpected(done.error());
    if (auto done = builder.modules(); !done) return std::unexpected(done.error());
    if (auto done = builder.firmware(); !done) return std::unexpected(done.error());
    if (auto done = builder.programs(); !done) return std::unexpected(done.error());
    if (auto done = builder.files(); !done) return std::unexpected(done.error());
    if (auto done = builder.settings(terminal); !done) return std::unexpected(done.error());
    return builder.finish();
}

}  // namespace orrery::vm
