// Makes allocations of the kernel fail: the n-th allocation (or copy from or to user memory) that a call of
// this thread makes, or all that a function makes.
#pragma once

#include <functional>
#include <string>

#include "tests/vm/kmod/device.h"

namespace orrery::kmod_test {

class Injector {
  public:
    // Fails the test if the kernel cannot do it.
    Injector();

    // Lets all succeed that is done inside a function of the kernel. One at a time.
    static void spare(const std::string& function);

    // Only what is done by a module, or by others for it, fails, and is counted; until below_anything().
    static void only_below(const std::string& module);
    static void below_anything();

    // Lets all allocations fail that are made inside a function of the kernel or its modules, by whomever.
    // stop_all() ends that and says how many have.
    static void fail_all_in(const std::string& function);
    static unsigned stop_all();

    // Does `action` with its n-th point failing. Whether there were so many. The action may call stop() when
    // what follows in it must not fail.
    bool fail_nth(unsigned n, const std::function<void()>& action);
    void stop();

    // Does `action` with each of its points failing in turn, until it has no more of them. How many there
    // were. A test that stops here after 100,000 has found an action that repeats what failed.
    unsigned each_point(const std::function<void(unsigned n)>& action);

  private:
    File nth_;
    bool running_ = false;
    bool failed_ = false;
};

}  // namespace orrery::kmod_test
