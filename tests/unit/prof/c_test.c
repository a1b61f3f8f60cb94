/* The headers of tools are C. */
#include <orrery/prof.h>
#include <orrery/prof_calls.h>

size_t bytes_of_memset(const orrProfRecord* record);

size_t bytes_of_memset(const orrProfRecord* record) {
    if (record->call != orrProfCall_orrMemsetAsync) return 0;
    return ((const orrMemsetAsync_params*)record->params)->bytes;
}
