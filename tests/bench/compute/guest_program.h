// A program in a VM, which does on cards what it is asked for (bench_compute_guest, bench_prof_guest, ...).
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "tools/bench/measured.h"

namespace orrery::bench {

struct Answer {
    double seconds = 0, model_ns = 0;
    // That the cards' processes had a CPU meanwhile, and QEMU; 0 in the first answer.
    double cpu_seconds = 0, vm_cpu_seconds = 0;
};

class GuestProgram {
  public:
    // The command that starts it, as execvp() takes it.
    explicit GuestProgram(char* const* command);
    ~GuestProgram();
    GuestProgram(const GuestProgram&) = delete;
    GuestProgram& operator=(const GuestProgram&) = delete;

    Answer ask(const char* what);
    // Of the (first) card that the command has started.
    pid_t card();

  private:
    struct Closer {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::vector<pid_t> find(bool cards) const;
    double seconds_of_cards() const;

    pid_t process_ = -1, vm_ = -1;
    std::vector<pid_t> cards_;
    std::unique_ptr<std::FILE, Closer> to_, from_;
};

// The main() of a bench, "bench_x", whose guest's program is "bench_x_guest": prints what `measure` has.
int main_of(const char* bench, int argc, char** argv, void (*measure)(Measured& measured, char** command));

}  // namespace orrery::bench
