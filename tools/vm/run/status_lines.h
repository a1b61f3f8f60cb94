// What the guest says on its status port, in lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/vm/result.h"

namespace orrery::vm {

class StatusLines {
  public:
    // The lines that these bytes end. The guest may write anything: a line that grows without an end is an
    // error.
    Result<std::vector<std::string>> feed(std::string_view bytes);

  private:
    std::string rest_;
};

}  // namespace orrery::vm
