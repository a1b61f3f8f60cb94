// bench_compute_guest in a VM, which does on a card what it is asked for.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>

namespace orrery::bench {

struct Answer {
    double seconds = 0, model_ns = 0;
    double cpu_seconds = 0;  // that the card's process had a CPU meanwhile; 0 in the first answer
};

class GuestProgram {
  public:
    // The command that starts it, as execvp() takes it.
    explicit GuestProgram(char* const* command);
    ~GuestProgram();
    GuestProgram(const GuestProgram&) = delete;
    GuestProgram& operator=(const GuestProgram&) = delete;

    Answer ask(const char* what);
    // Of the card that the command has started.
    pid_t card();

  private:
    struct Closer {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    double card_seconds() const;

    pid_t process_ = -1, card_ = -1;
    std::unique_ptr<std::FILE, Closer> to_, from_;
};

}  // namespace orrery::bench
