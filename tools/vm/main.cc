#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "tools/vm/here.h"
#include "tools/vm/options.h"
#include "tools/vm/run/supervisor.h"

namespace {

// Programs and the card lie beside orrery-vm unless an option says otherwise.
bool complete(orrery::vm::Options& options) {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (options.programs.empty()) options.programs = self.parent_path();
    options.programs = std::filesystem::absolute(options.programs, error);
    if (options.card_program.empty()) options.card_program = self.parent_path() / "orrery-card";
    if (options.switch_program.empty()) options.switch_program = self.parent_path() / "orrery-switch";
    const bool terminal =
        ::isatty(STDIN_FILENO) != 0 || ::isatty(STDOUT_FILENO) != 0 || ::isatty(STDERR_FILENO) != 0;
    options.timeout_s = options.timeout.value_or(orrery::vm::default_timeout(terminal || options.gdb));
    const auto here = std::filesystem::current_path(error);
    if (!error && !orrery::vm::named_here(options.command, here).empty()) {
        options.here = here;
        if (!orrery::vm::can_be_shown(here)) {
            fmt::print(stderr,
                       "orrery-vm: error: the command names a file in {}, where the guest has files of its "
                       "own: start in "
                       "another folder, or give it with --file or --share\n",
                       here.string());
            return false;
        }
        if (const char* home = std::getenv("HOME"); home != nullptr && orrery::vm::holds_home(here, home)) {
            fmt::print(
                stderr,
                "orrery-vm: error: the command names a file in {}, which the guest could then write, your "
                "home directory with all in it: start in a folder below, or give it with --file or "
                "--share\n",
                here.string());
            return false;
        }
    }
    if (options.share.empty()) return true;
    options.share = std::filesystem::canonical(options.share, error);
    if (!error && std::filesystem::is_directory(options.share, error)) return true;
    fmt::print(stderr, "orrery-vm: error: --share: no such directory\n");
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    auto parsed = orrery::vm::parse_options(std::vector<std::string>(argv + 1, argv + argc));
    if (const int* status = std::get_if<int>(&parsed)) return *status;
    auto& options = std::get<orrery::vm::Options>(parsed);
    if (!complete(options)) return orrery::vm::kExitUsage;
    return orrery::vm::run_vm(options);
}
