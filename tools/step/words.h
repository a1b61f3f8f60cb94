// What the libraries below call things, this tool calls so too.
#pragma once

#include "tools/records/records.h"
#include "tools/text/result.h"
#include "tools/text/units.h"

namespace orrery::step {

using namespace text;
using namespace records;

}  // namespace orrery::step
