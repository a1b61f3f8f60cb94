// What a process of its own does beside or for a test.
#pragma once

#include <string>

namespace orrery::umd::vm {

// Exit status; see workers.cc for the names.
int run_worker(const std::string& name);

}  // namespace orrery::umd::vm
