// One run of a VM from the first card to the last log line.
#pragma once

#include "tools/vm/options.h"

namespace orrery::vm {

// The exit status for orrery-vm: the command's own, or one of those in result.h. Failures are told on stderr.
int run_vm(const Options& options);

}  // namespace orrery::vm
