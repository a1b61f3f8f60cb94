/* SPDX-License-Identifier: MIT */
/* What the formulas of metrics.h come to: C++. */
#ifndef ORRERY_HW_METRIC_VALUES_H
#define ORRERY_HW_METRIC_VALUES_H

#include <orrery/hw/counters.h>
#include <orrery/hw/metrics.h>

#include <limits>

namespace orrery {

/* How much each counter, by its NAME, has gone up: formulas see them so. NaN: it is not known. */
struct MetricValues {
    double VECTOR_HZ = 0;
#define ORR_MEMBER(number, NAME, ...) double NAME = std::numeric_limits<double>::quiet_NaN();
    ORR_COUNTER_LIST(ORR_MEMBER)
#undef ORR_MEMBER
#define ORR_FORMULA(NAME, name, unit, formula, ...) \
    double metric_##NAME() const { return formula; }
    ORR_METRIC_LIST(ORR_FORMULA)
#undef ORR_FORMULA
};
using MetricFormula = double (MetricValues::*)() const;

} /* namespace orrery */

#endif /* ORRERY_HW_METRIC_VALUES_H */
