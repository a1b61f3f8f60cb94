// orrery-prof sku-compare: starts a VM for each kind of card and records the same work in it.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "emulator/api/sku.h"
#include "tools/prof/show.h"
#include "tools/prof/skus/compare.h"
#include "tools/text/files.h"
#include "tools/text/shell.h"
#include "tools/text/shown.h"

namespace orrery::prof {
namespace {

namespace fs = std::filesystem;
using text::fail;
using text::Result;

constexpr const char* kHelp =
    "usage: orrery-prof sku-compare [--quick] [--csv FILE] [--html FILE] [--keep FOLDER] [SKU...]\n"
    "Runs classes of work on cards of each SKU (a name or file; orrery-0 orrery-1 orrery-edge), in a VM for\n"
    "each, and tells how they compare with the first: time of the model, what limits it, an estimate of\n"
    "energy, and how many cards of one stand for one of the other.\n"
    "\n"
    "  --quick        less work\n"
    "  --csv FILE     all numbers\n"
    "  --html FILE    a page for a browser\n"
    "  --keep FOLDER  keeps the profiles there, FOLDER/SKU/CLASS.prof\n"
    "Exit status: 0, 1 a VM or a class failed, 2 a mistake in the command line.\n";

struct Options {
    std::vector<std::string> skus;
    std::string csv, html, keep;
    bool quick = false;
};

int mistake(std::string_view what) {
    fmt::print(stderr, "orrery-prof: {}\n{}", text::shown(what), kHelp);
    return 2;
}

int problem(std::string_view what) {
    fmt::print(stderr, "orrery-prof: {}\n", text::shown(what));
    return 1;
}

// A folder of one run; it goes with its end unless it is the user's.
class Folder {
  public:
    static Result<Folder> create(const std::string& keep) {
        std::error_code error;
        if (!keep.empty()) {
            fs::create_directories(keep, error);
            if (error) return fail("{} cannot be made: {}", keep, error.message());
            return Folder(fs::absolute(keep), true);
        }
        std::string path = (fs::temp_directory_path(error) / "orrery-skus-XXXXXX").string();
        if (::mkdtemp(path.data()) == nullptr) return fail("{} cannot be made (TMPDIR says where)", path);
        return Folder(path, false);
    }
    ~Folder() {
        std::error_code ignored;
        if (!kept_) fs::remove_all(path_, ignored);
    }
    Folder(Folder&& other) noexcept : path_(std::move(other.path_)), kept_(other.kept_) {
        other.kept_ = true;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    Folder& operator=(Folder&&) = delete;
    const fs::path& path() const { return path_; }
    bool kept() const { return kept_; }
    void keep() { kept_ = true; }

  private:
    Folder(fs::path path, bool kept) : path_(std::move(path)), kept_(kept) {}
    fs::path path_;
    bool kept_;
};

// Its profiles are in a folder of that name; "": there is no such folder beside others.
std::string name_of(const std::string& sku) {
    const std::string name = fs::path(sku).stem().string();
    return name == "." || name == ".." ? "" : name;
}

enum class Start : std::uint8_t { kLook, kRun };

// kLook: only whether there is such a SKU, and all else is there.
Result<void> run_vm(const std::string& sku, unsigned link_ports, const fs::path& share, bool quick,
                    Start start) {
    std::error_code error;
    const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
    // In lockstep, as what crosses a link would else depend on the host.
    const std::string command = fmt::format(
        "{}{} --sku {} {} --sync lockstep --vram 128M --logs {} --share {} -- sh -c {} </dev/null >{} 2>&1",
        text::shell_quote((programs / "orrery-vm").string()), start == Start::kLook ? " --dry-run" : "",
        text::shell_quote(sku), link_ports == 0 ? "--cards 1" : "--cards 2 --topology pair",
        text::shell_quote((share / "vm").string()), text::shell_quote(share.string()),
        text::shell_quote(guest_script(quick, link_ports)), text::shell_quote((share / "log").string()));
    const int status = std::system(command.c_str());
    if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    const auto said = text::read_file((share / "log").string());
    std::string end = said ? std::string(said->begin(), said->end()) : std::string();
    end = end.substr(end.size() - std::min<std::size_t>(end.size(), 2'000));
    return fail("{} cards of {}:\n{}",
                start == Start::kLook ? "there can be no VM with" : "the VM failed that has", sku, end);
}

std::string first_line(const std::string& file) {
    const auto bytes = text::read_file(file);
    const std::string all = bytes ? std::string(bytes->begin(), bytes->end()) : std::string();
    return all.substr(0, all.find('\n'));
}

// What a program said last; how its profile went is said elsewhere.
std::string last_words(const std::string& file) {
    const auto bytes = text::read_file(file);
    std::istringstream all(bytes ? std::string(bytes->begin(), bytes->end()) : std::string());
    std::string last;
    for (std::string line; std::getline(all, line);) {
        if (line.find_first_not_of(" \t\r") != std::string::npos && !line.starts_with("orrery-prof: "))
            last = line;
    }
    return last;
}

Measured read_class(const WorkClass& one, const fs::path& share, std::string& card) {
    const std::string base = (share / one.name).string();
    Measured measured;
    const std::string status = first_line(base + ".status");
    if (status != "0") {
        measured.problem = status.empty() ? "it did not run"
                                          : fmt::format("{} ended with {}: {}", one.command, status,
                                                        last_words(base + ".log"));
        return measured;
    }
    const auto model = read_model(base + ".prof");
    if (!model) {
        measured.problem = model.error().text;
        return measured;
    }
    for (const Activity& activity : model->processes) {
        if (!activity.process->cards.empty()) card = activity.text(activity.process->cards[0].head.text);
    }
    return measured_of(*model, one.range);
}

// It is there then, with what it had before.
Result<void> can_be_written(const std::string& file) {
    std::FILE* const out = std::fopen(file.c_str(), "ab");
    if (out == nullptr) return fail("{}: {}", file, std::strerror(errno));
    (void)std::fclose(out);
    return {};
}

// `ran`: a VM was started, so that there may be more to see in the folder.
Result<Comparison> compare(const Options& options, const Folder& folder, bool& ran) {
    Comparison all;
    all.quick = options.quick;
    const auto share_of = [&](const std::string& sku) { return folder.path() / name_of(sku); };
    std::vector<unsigned> link_ports;
    for (const std::string& sku : options.skus) {
        const auto card = emu::Sku::find(sku);
        if (!card) return fail("there can be no VM with cards of {}: {}", sku, card.error());
        link_ports.push_back(card->link_ports);
        const fs::path share = share_of(sku);
        std::error_code error;
        fs::create_directories(share, error);
        if (error) return fail("{} cannot be made: {}", share.string(), error.message());
        if (auto good = run_vm(sku, link_ports.back(), share, options.quick, Start::kLook); !good)
            return std::unexpected(good.error());
    }
    for (const std::string& sku : options.skus) {
        const fs::path share = share_of(sku);
        const unsigned ports = link_ports[all.skus.size()];
        SkuRun run;
        run.name = name_of(sku);
        fmt::print(stderr, "orrery-prof: {} of {}: {}\n", all.skus.size() + 1, options.skus.size(),
                   text::shown(sku));
        std::error_code error;
        for (const WorkClass& one : work_classes()) {  // of a run before, in a folder that is kept
            for (const char* ending : {".prof", ".log", ".status"})
                if (!error) fs::remove(share / (std::string(one.name) + ending), error);
        }
        if (error) return fail("what {} has of a run before stays: {}", share.string(), error.message());
        ran = true;
        if (auto good = run_vm(sku, ports, share, options.quick, Start::kRun); !good)
            return std::unexpected(good.error());
        for (const WorkClass& one : work_classes()) {
            Measured measured;
            measured.problem = why_left_out(one, ports);
            measured.left_out = !measured.problem.empty();
            run.measured.push_back(measured.left_out ? measured : read_class(one, share, run.card));
        }
        all.skus.push_back(std::move(run));
    }
    return all;
}

}  // namespace

int run_sku_compare(const std::vector<std::string>& words) {
    Options options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool more = i + 1 < words.size();
        if (words[i] == "--quick") {
            options.quick = true;
        } else if (words[i] == "--csv" && more) {
            options.csv = words[++i];
        } else if (words[i] == "--html" && more) {
            options.html = words[++i];
        } else if (words[i] == "--keep" && more) {
            options.keep = words[++i];
        } else if (words[i] == "--help" || words[i] == "-h") {
            fmt::print("{}", kHelp);
            return 0;
        } else if (words[i].empty() || words[i].starts_with("-")) {
            return mistake(fmt::format("sku-compare does not know {}", words[i]));
        } else {
            options.skus.push_back(words[i]);
        }
    }
    if (options.skus.empty()) options.skus = {"orrery-0", "orrery-1", "orrery-edge"};
    if (options.skus.size() < 2) return mistake("sku-compare wants two SKUs or more");
    for (std::size_t i = 0; i < options.skus.size(); ++i) {
        if (name_of(options.skus[i]).empty()) return mistake(fmt::format("{} is no SKU", options.skus[i]));
        for (std::size_t j = 0; j < i; ++j) {
            if (name_of(options.skus[i]) == name_of(options.skus[j]))
                return mistake(fmt::format("two SKUs are called {}", name_of(options.skus[i])));
        }
    }
    for (const std::string& file : {options.csv, options.html}) {
        if (file.empty()) continue;  // before the VMs, which take minutes
        if (auto good = can_be_written(file); !good) return problem(good.error().text);
    }
    auto folder = Folder::create(options.keep);
    if (!folder) return problem(folder.error().text);
    bool ran = false;
    const auto failed = [&] {
        if (!ran || folder->kept()) return 1;
        folder->keep();
        return problem(fmt::format("profiles and logs are in {}", folder->path().string()));
    };
    const auto all = compare(options, *folder, ran);
    if (!all) {
        (void)problem(all.error().text);
        return failed();
    }
    fmt::print("{}", comparison_text(*all));
    bool good = std::fflush(stdout) == 0;
    for (const SkuRun& run : all->skus) {
        for (std::size_t i = 0; i < run.measured.size(); ++i) {
            if (run.measured[i].ps != 0 || run.measured[i].left_out) continue;
            good = false;
            (void)problem(
                fmt::format("{} on {}: {}", work_classes()[i].name, run.name, run.measured[i].problem));
        }
    }
    const auto write = [&](const std::string& file, const std::string& bytes) {
        if (file.empty()) return;
        if (const auto written = text::write_file(file, bytes); !written)
            good = problem(written.error().text) == 0;
    };
    write(options.csv, comparison_csv(*all));
    write(options.html, comparison_page(*all));
    return good ? 0 : failed();
}

}  // namespace orrery::prof
