// --vms: a run of each VM in a process of its own, with links between their cards.
#pragma once

#include <functional>

#include "tools/vm/options.h"
#include "tools/vm/process.h"

namespace orrery::vm {

// The numbers that the driver of a VM may give to its cards, of those below ORR_NODES: none has them twice.
struct Nodes {
    unsigned first, count;
};
Nodes nodes_of(const Options& options);

// The options of VM `vm`: what it has beside those of all.
Options options_of(const Options& options, unsigned vm);

// The exit status for orrery-vm: 0 if all ended so, else that of the VM that failed first.
int run_several(const Options& options, Fd signals);

// What comes on signal descriptors: what ends a run, and who wants a report of it meanwhile.
struct Signals {
    Fd end, report;
};

// In such a run: tells that the guest waits to begin its command; what came then may be that it may.
void tell_ready(int hold);
bool may_begin(int hold);
// Tells that the guest has ended, and waits until all have, so that nobody loses the cards at
// the other ends of his links while he still works. A readable `signals.end` ends the wait; report() takes
// what is in `signals.report`.
void wait_for_others(int hold, const Signals& signals, const std::function<void()>& report);

}  // namespace orrery::vm
