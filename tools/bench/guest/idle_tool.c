// A tool (ORR_PROF_TOOL) that is loaded and starts, and wants to be told of nothing.
#include <orrery/prof.h>

static orrError_t start(void) {
    return orrSuccess;
}

ORR_API extern const orrProfTool orrery_prof_tool;
const orrProfTool orrery_prof_tool = {
    .size = sizeof(orrProfTool),
    .version = orrProfToolVersion,
    .name = "idle",
    .start = start,
};
