// Runs a program with the recorder in it, and puts together what its processes wrote.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/text/result.h"

namespace orrery::prof {

struct Recording {
    std::string file;                                // where the profile goes
    std::string recorder;                            // the tool's library
    std::uint64_t limit = std::uint64_t{256} << 20;  // of a process's part, in bytes
    bool counters = false;                           // of each kernel and copy
    std::uint64_t sample_ns = 0;                     // period of samples of cards' counters; 0: none
    std::string trace;                               // as kTraceVariable has it; empty: none
    std::uint64_t pc_ns = 0;                         // period of samples of vector cores; 0: none
    std::chrono::milliseconds progress{0};           // from line to line while the command runs; 0: none
    // While the command runs the file has what there is, from time to time; 0: only where it lies with the
    // host of a VM, which may be lost before the command ends.
    std::chrono::milliseconds save{0};
    std::vector<std::string> command;
};

// Who asks it to end meanwhile, as orrery-ranks does when another rank has failed, gets a whole profile
// first, and is told what became of it: that takes no longer than the profile is large. A profile whose
// reader goes is one that cannot be written, and no end. At a terminal an interrupt ends it at once.
class EndsLater {
  public:
    EndsLater();
    ~EndsLater();
    EndsLater(const EndsLater&) = delete;
    EndsLater& operator=(const EndsLater&) = delete;

  private:
    sigset_t before_{};
    struct sigaction pipe_{};
};

struct Recorded {
    std::unique_ptr<EndsLater> whole_first;  // until all of this is told
    int status = 0;  // of the command, as shells have it: 128 + a signal's number, 127: not found
    int signal = 0;  // that ended the command; 0: it ended by itself
    std::size_t processes = 0;
    std::uint64_t lost = 0, bytes = 0;
    // The part of a process that has what no recorder writes.
    struct Spoilt {
        std::filesystem::path part;
        std::string command, fault;
        bool is_cut = false;  // what was before it is in the profile
    };
    std::vector<Spoilt> spoilt;
    std::vector<std::string> told;  // of these, one line each
    std::string fault;  // the command has run, and there is no profile: why, and where its parts are
};

// A failure: the command has not run.
text::Result<Recorded> record(const Recording& recording);

// One profile of several, of one machine or of many. Replaces the output.
text::Result<void> merge(const std::vector<std::string>& files, const std::string& output);

}  // namespace orrery::prof
