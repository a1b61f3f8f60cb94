#include <fmt/format.h>

#include "tools/vm/logs.h"
#include "tools/vm/run/run.h"

namespace orrery::vm {

Failure Run::with_logs(Failure failure) const {
    if (!logs_.empty()) failure.text += fmt::format("\n  logs: {}", logs_.string());
    return failure;
}

int Run::verdict() {
    status_code_ = judge();
    return status_code_;
}

int Run::judge() {
    if (signal_ != 0) {
        verdict_ = fmt::format("stopped by signal {}", signal_);
        fmt::print(stderr, "orrery-vm: stopped by signal {}\n", signal_);
        return kExitSignalBase + signal_;
    }
    const auto& trouble = console_log_->trouble();
    const bool told = trouble && (*trouble != Trouble::kWarning || !options_.allow_warnings);
    std::optional<Failure> failure = failure_;
    // The kernel's own report tells more than the hang or the missing module that follows from it.
    if (told && (!failure || failure->code == kExitTimeLimit || failure->code == kExitModule)) {
        const char* kind = *trouble == Trouble::kPanic   ? "the guest kernel panicked"
                           : *trouble == Trouble::kFault ? "the guest kernel reported a fault"
                                                         : "the guest kernel warned";
        failure = {kExitKernelReport, fmt::format("{}: {}", kind, console_log_->line())};
        if (command_status_)
            failure->text += fmt::format("\n  (the command ended with status {})", *command_status_);
    }
    if (!failure && !command_status_) {
        failure = {kExitVmEnded, fmt::format("QEMU {} before the command's end; the last thing seen: {}",
                                             describe_status(*qemu_status_), reached_)};
        if (const auto text = tail(logs_ / "qemu.log", kTailLines); !text.empty())
            failure->text += "\n  the end of qemu.log:\n" + text;
    }
    if (!failure) {
        if (*command_status_ != 0) {
            verdict_ = fmt::format("the command ended with status {}", *command_status_);
            fmt::print(stderr, "orrery-vm: the command ended with status {}; logs: {}\n", *command_status_,
                       logs_.string());
        }
        return *command_status_;
    }
    vm_failed_ = true;
    verdict_ = failure->text.substr(0, failure->text.find('\n'));
    if (options_.accel == "kvm" && failure->code != kExitCardDied)
        failure->text +=
            "\n  (with --accel kvm, which not every host bears; the default, tcg, needs nothing of it)";
    if (failure->code == kExitKernelReport)
        failure->text += fmt::format("\n  guest.log from there:\n{}", console_log_->context());
    else if (const auto text = tail(logs_ / "guest.log", kTailLines);
             failure->code != kExitCardDied && !text.empty())
        failure->text += "\n  the end of guest.log:\n" + text;
    while (failure->text.ends_with('\n'))
        failure->text.pop_back();
    fmt::print(stderr, "orrery-vm: error: {}\n", with_logs(*failure).text);
    return failure->code;
}

}  // namespace orrery::vm
