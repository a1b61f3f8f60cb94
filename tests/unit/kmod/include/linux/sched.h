/* Nobody else is to run. */
#pragma once

#define cond_resched() ((void)0)
