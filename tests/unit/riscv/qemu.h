// qemu-riscv64 as a machine: a process per VLEN, which executes what it is sent.
#pragma once

#include <sys/types.h>

#include "tests/unit/riscv/program.h"

namespace orrery::riscv::test {

// The QEMU of the VM tree, with the loader that runs it anywhere. Throws if there is no tree.
std::string qemu_of_tree();
// " -cpu ... ", with all the extensions of our cores.
std::string qemu_options(unsigned vlen);

class Qemu : public Machine {
  public:
    // `command` is QEMU, words separated by blanks; `guest` is guest/run.c.
    Qemu(const std::string& command, unsigned vlen, const std::string& guest);
    ~Qemu() override;
    Qemu(const Qemu&) = delete;
    Qemu& operator=(const Qemu&) = delete;
    const char* name() const override { return "qemu"; }
    std::vector<Observation> run(const Program& program) override;

  private:
    bool send(const std::string& bytes);
    bool receive(void* data, std::size_t size);

    pid_t process_ = -1;
    int to_ = -1, from_ = -1;
};

}  // namespace orrery::riscv::test
