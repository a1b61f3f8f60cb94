// Ranges, markers and numbers of others that the program gives its work.
#pragma once

#include <orrery/prof.h>

#include "umd/prof/range_work.h"
#include "umd/winsys/error.h"

namespace orrery::umd {

Result<orrProfDomain_t> create_domain(const char* name);
Status push_range(orrProfDomain_t domain, const char* text);
Status pop_range(orrProfDomain_t domain);
Status mark(orrProfDomain_t domain, const char* text);
// Its name, which lives as long as the process; null: the program's own.
Result<const char*> domain_name(orrProfDomain_t domain);
// Those of this thread that are open, if somebody wants to know what cards do for them. Null: none.
HeldRanges ranges_around() noexcept;
// A kernel, a copy or a fill of this thread will never be told.
void miss_in_ranges() noexcept;
Status push_external(std::uint64_t id);
Result<std::uint64_t> pop_external();

}  // namespace orrery::umd
