// What a process of its own does beside or for a test.
#pragma once

#include <string>

namespace orrery::umd::vm {

// Exit status; see workers.cc for the names.
int run_worker(const std::string& name);
// One of them (threads_test.cc): what the first card's kernels take.
int report_times();
// Two of them (owner_lost_test.cc): who works in memory of the last card, which goes, and who comes there
// next.
int lose_owner();
int watch_memory();

}  // namespace orrery::umd::vm
