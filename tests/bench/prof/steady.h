// How records are drained while others come, for seconds: by the library's own thread, beside a program that
// submits a million pieces of work a second, and beside one that does so as fast as it can. On the host: the
// emulated CPU of a guest cannot submit so many.
#pragma once

#include "tools/bench/measured.h"

namespace orrery::bench {

void add_steady_drains(Measured& measured);

}  // namespace orrery::bench
