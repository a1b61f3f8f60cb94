/* What must not be is counted; whoever tests defines the counter. */
#pragma once

extern unsigned int orr_test_warnings;

#define WARN_ONCE(condition, ...) ((condition) ? (void)++orr_test_warnings : (void)0)
