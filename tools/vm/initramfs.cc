#include "tools/vm/initramfs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tools/text/shell.h"
#include "tools/topology/file.h"
#include "tools/vm/debug_info.h"
#include "tools/vm/files.h"
#include "tools/vm/guest_archive.h"
#include "tools/vm/here.h"
#include "tools/vm/process.h"
#include "tools/vm/programs.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCommandDirectory = "/root";
constexpr const char* kTopologyFile = "/etc/orrery/topology.toml";

// The build's shared libraries, beside its programs.
fs::path library_dir(const Options& options) {
    return options.programs.parent_path() / "lib";
}

constexpr const char* kTreeDirectory = "/opt/vm-tree";

constexpr const char* kLayer = "/orrery/files";

std::optional<OtherRoot> other_root(const RootImage* root) {
    if (root == nullptr) return std::nullopt;
    return OtherRoot{kLayer, root->libraries};
}

// While the kernel unpacks the archive it holds it twice, and lets files take half of the memory at most.
Result<void> fits_in_memory(std::uint64_t bytes, const Options& options) {
    const std::uint64_t mib = bytes >> 20;
    if (mib * 5 <= options.memory_mib * 2) return {};
    return fail(fmt::format(
        "{} MiB of files are too much for a guest with {} MiB: give --memory {}M or more, or show "
        "it a folder with --share",
        mib, options.memory_mib, mib * 5 / 2 + 64));
}

class Builder {
  public:
    Builder(const Options& options, const GuestParts& parts)
        : options_(options), parts_(parts), archive_(library_dir(options), other_root(parts.root)) {}

    Result<void> busybox();
    void modules();
    Result<void> firmware();
    Result<void> programs();
    Result<void> tree_programs();
    Result<void> runtime_library();
    Result<void> files();
    void settings();
    std::string finish() { return cpio_.finish(); }

  private:
    const Options& options_;
    const GuestParts& parts_;
    GuestArchive archive_;
    Cpio& cpio_ = archive_.cpio();
};

Result<void> Builder::busybox() {
    const fs::path program = parts_.tree.path() / "usr/bin/busybox";
    auto bytes = read_file(program);  // needs no libraries
    if (!bytes) return std::unexpected(bytes.error());
    cpio_.file("/bin/busybox", *bytes, 0755);
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
    cpio_.directory(archive_.at("/tmp"), 01777);
    cpio_.directory(archive_.at(kCommandDirectory));  // Debian's is root's alone
    cpio_.directory("/share", 0755);
    const fs::path init = source_dir() / "tools/vm/guest/init";
    auto script = read_file(init);
    if (!script) return std::unexpected(script.error());
    cpio_.file("/init", *script, 0755);
    return {};
}

void Builder::modules() {
    const GuestModules& chosen = parts_.modules;
    const std::string directory = "/lib/modules/" + parts_.kernel.release;
    std::string list;
    for (const auto& module : chosen.first) {
        const std::string guest = fmt::format("{}/{}.ko", directory, module.name);
        cpio_.file(guest, module.bytes);
        list += guest + "\n";
    }
    cpio_.file("/etc/orrery/modules", list);
    if (options_.module) cpio_.file(directory + "/orrery.ko", without_debug_info(chosen.orrery));
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
        if (auto done = archive_.need(options_.programs / name, "/usr/local/bin/" + name); !done) return done;
    if (!options_.here.empty())
        for (const auto& file : named_here(options_.command, options_.here))
            if (std::error_code error; fs::is_regular_file(file, error))
                if (auto done = archive_.libraries_of(fs::canonical(file, error)); !done) return done;
    return runtime_library();
}

// perf and trace-cmd, if the command names them: they are the tree's, with another C library than this host's
// programs have. So each starts through the tree's loader, with its libraries, out of a folder of their own.
Result<void> Builder::tree_programs() {
    if (parts_.root != nullptr) return {};  // an image has its own, or none
    const auto words = words_of(options_.command);
    for (const char* name : {"perf", "trace-cmd"}) {
        const std::string wrapper = fmt::format("/usr/local/bin/{}", name);
        if (std::ranges::find(words, name) == words.end() || cpio_.contains(wrapper)) continue;
        const auto program = parts_.tree.guest_program(name, parts_.kernel);
        if (!program) continue;
        const auto loader = parts_.tree.program("");
        auto closure = library_closure(*program, loader.front(), loader[2]);
        if (!closure) return std::unexpected(closure.error());
        closure->paths.push_back(program->string());
        const auto in_guest = [this](const std::string& path) {
            return kTreeDirectory + path.substr(parts_.tree.path().string().size());
        };
        for (const auto& path : closure->paths) {
            auto bytes = read_file(path);
            if (!bytes) return std::unexpected(bytes.error());
            cpio_.file(in_guest(path), *bytes, 0755);
        }
        cpio_.file(wrapper,
                   fmt::format("#!/bin/sh\nexec {} --library-path {} --argv0 {} {} \"$@\"\n",
                               in_guest(loader[0]), in_guest(loader[2]), name, in_guest(program->string())),
                   0755);
    }
    return {};
}

// Where a program without an rpath finds it.
Result<void> Builder::runtime_library() {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(library_dir(options_), error)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with("liborrery.so.")) continue;
        const fs::path file = fs::canonical(entry.path(), error);
        if (auto done = archive_.need(file, file.string()); !done) return done;
        if (auto done = archive_.libraries_of(file); !done) return done;
        cpio_.symlink(archive_.at("/usr/lib/x86_64-linux-gnu/" + name), file.string());
    }
    return {};
}

Result<void> Builder::files() {
    std::uint64_t bytes = 0;
    for (const auto& file : options_.files)
        bytes += size_of_all(file.host);
    if (auto fits = fits_in_memory(bytes, options_); !fits) return fits;
    for (const auto& file : options_.files) {
        std::error_code error;
        if (!fs::exists(file.host, error))
            return fail(fmt::format("--file: {} is not there", file.host.string()));
        fs::path host = fs::absolute(file.host, error).lexically_normal();
        if (!host.has_filename()) host = host.parent_path();  // "directory/"
        const std::string guest = file.guest.empty()
                                      ? fmt::format("{}/{}", kCommandDirectory, host.filename().string())
                                      : file.guest;
        if (auto done = archive_.carry(host, guest); !done) return done;
    }
    // A folder may hold many such programs; the first few show what is meant.
    constexpr std::size_t kToldNotes = 3;
    const auto& notes = archive_.notes();
    for (std::size_t i = 0; i < notes.size() && i < kToldNotes; ++i)
        fmt::print(stderr, "orrery-vm: note: --file: {}\n", notes[i]);
    if (notes.size() > kToldNotes)
        fmt::print(stderr, "orrery-vm: note: --file: and {} more like these\n", notes.size() - kToldNotes);
    // Real input for the samples: a text that each Debian has, and the guest's own kernel, which is a third
    // of a small guest.
    const char* text = "/usr/share/common-licenses/GPL-3";
    if (std::error_code error; fs::exists(text, error))
        if (auto done = archive_.need(text, text); !done) return done;
    const auto words = words_of(options_.command);
    const bool wanted =
        options_.shell ||
        std::ranges::any_of(
            words,
            [](const std::string& word) { return word == "histogram" || word.starts_with("/boot/"); }) ||
        std::ranges::any_of(options_.files,
                            [](const auto& file) { return file.host.filename() == "histogram"; });
    return wanted ? archive_.need(parts_.kernel.image, "/boot/vmlinuz-" + parts_.kernel.release)
                  : Result<void>{};
}

void Builder::settings() {
    const unsigned net_number = parts_.net_number;
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
    std::string hosts = "127.0.0.1 localhost\n";
    for (unsigned number = 1; net_number != 0 && number <= kLargestNumber; ++number)
        hosts += fmt::format("{} vm{}\n", segment_address(number), number);
    cpio_.file(archive_.at("/etc/hosts"), hosts);
    // Nodes that appear later (the module loaded again, a card added) get the group too.
    cpio_.file("/etc/mdev.conf",
               fmt::format("accel/accel[0-9]+ root:{} 0660\n.* root:root 0660\n", kDeviceGroup));

    const char* term = std::getenv("TERM");
    std::string run;
    const auto set = [&run](const char* name, const std::string& value) {
        run += fmt::format("{}={}\n", name, text::shell_quote(value));
    };
    set("CARDS", options_.module ? fmt::format("{}", options_.cards) : "0");
    set("MODULE", options_.module ? "/lib/modules/" + parts_.kernel.release + "/orrery.ko" : "");
    set("MODULE_PARAMS", options_.module_params);
    set("EXPECT_PROBE_FAILURE", options_.expect_probe_failure ? "yes" : "");
    set("NAME", net_number == 0 ? (options_.vm ? fmt::format("vm{}", *options_.vm) : "vm")
                                : fmt::format("vm{}", net_number));
    set("ADDRESS", net_number == 0 ? "" : segment_address(net_number));
    set("ROOT", options_.root);
    set("USER_ID", other_user ? fmt::format("{}", *options_.user) : "");
    set("USER_GROUPS", options_.device_group ? kDeviceGroup : "");
    set("SEVERAL", options_.hold >= 0 ? "yes" : "");
    set("GDB", options_.gdb ? "yes" : "");
    set("GROUP", kDeviceGroup);
    set("HERE", options_.here.string());
    set("SHARE", options_.share.empty() ? "" : "yes");
    set("COMMAND_USER", other_user ? "user" : "");
    set("COMMAND_SHELL", options_.shell ? "yes" : "");
    set("PATIENCE", fmt::format("{}", parts_.kernel.patience));
    set("ROWS", fmt::format("{}", parts_.terminal.rows));
    set("COLUMNS", fmt::format("{}", parts_.terminal.columns));
    set("TERMINAL", term != nullptr ? term : "linux");
    cpio_.file("/etc/orrery/run", run);

    std::string command = fmt::format(
        "cd {}\n", options_.here.empty() ? kCommandDirectory : text::shell_quote(options_.here.string()));
    if (options_.joined.cards != 0) {
        cpio_.file(archive_.at(kTopologyFile), topology::text_of(options_.joined));
        command += fmt::format("export ORR_TOPOLOGY={}\n", kTopologyFile);
    }
    for (const auto& entry : options_.env) {
        const auto equals = entry.find('=');
        command += fmt::format("export {}={}\n", entry.substr(0, equals),
                               text::shell_quote(entry.substr(equals + 1)));
    }
    command += "exec";
    for (const auto& word : options_.command)
        command += " " + text::shell_quote(word);
    cpio_.file(archive_.at("/etc/orrery/command"), command + "\n");
}

}  // namespace

Result<std::string> build_initramfs(const Options& options, const GuestParts& parts) {
    Builder builder(options, parts);
    if (auto done = builder.busybox(); !done) return std::unexpected(done.error());
    builder.modules();
    if (auto done = builder.firmware(); !done) return std::unexpected(done.error());
    if (auto done = builder.programs(); !done) return std::unexpected(done.error());
    if (auto done = builder.files(); !done) return std::unexpected(done.error());
    if (auto done = builder.tree_programs(); !done) return std::unexpected(done.error());
    builder.settings();
    std::string archive = builder.finish();
    if (auto fits = fits_in_memory(archive.size(), options); !fits) return std::unexpected(fits.error());
    return archive;
}

}  // namespace orrery::vm
