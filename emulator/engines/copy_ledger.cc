#include "emulator/engines/copy_ledger.h"

#include <algorithm>

namespace orrery::emu {

static_assert(CopyLedger::counter_of(CopyLedger::kPeer) == ORR_CTR_COPY_PEER_PS);
static_assert(CopyLedger::job_counter_of(CopyLedger::kPeer) == ORR_JOB_COPY_PEER_PS);

void CopyLedger::begin(ModelTime now) {
    times_ = ends_ = {};
    mark_ = now;
    plan_.clear();
    next_ = 0;
    waits_ = kSetup;
    rows_ = walked_ = read_ = 0;
    open(now);
}

void CopyLedger::plan(Cause cause, ModelTime until) {
    if (until <= planned()) return;
    if (plan_.size() > next_ && plan_.back().cause == cause)
        plan_.back().until = until;
    else
        plan_.push_back({until, cause});
}

void CopyLedger::settle(ModelTime now) {
    for (; next_ < plan_.size(); ++next_) {
        const Stretch& stretch = plan_[next_];
        const ModelTime until = std::min(stretch.until, now);
        if (until > mark_) {
            times_[stretch.cause] += until - mark_;
            mark_ = until;
        }
        if (stretch.until > now) return;
    }
    plan_.clear();
    next_ = 0;
    if (now <= mark_) return;
    times_[waits_] += now - mark_;
    mark_ = now;
}

void CopyLedger::cut(ModelTime now) {
    settle(now);
    plan_.clear();
    next_ = 0;
    open(now);
}

CopyLedger::Times CopyLedger::until(ModelTime now) const {
    Times times = times_;
    ModelTime mark = mark_;
    for (std::size_t n = next_; n < plan_.size() && mark < now; ++n) {
        const ModelTime until = std::min(plan_[n].until, now);
        if (until <= mark) continue;
        times[plan_[n].cause] += until - mark;
        mark = until;
    }
    if (now > mark) times[waits_] += now - mark;
    return times;
}

void CopyLedger::close() {
    plan(kRows, std::min(engine_, later(began_, rows_)));
    plan(kMove, engine_);
    const auto last = static_cast<Cause>(std::ranges::max_element(ends_) - ends_.begin());
    if (vram_reads_ > ends_[last]) {
        // Reads of the copy and of tables take turns.
        const ModelTime from = std::max(planned(), began_);
        if (vram_reads_ > from && walked_ != 0) {
            __extension__ using Wide = unsigned __int128;
            const Wide part = Wide{vram_reads_ - from} * walked_ / (walked_ + read_);
            plan(kTranslation, from + static_cast<ModelTime>(part));
        }
        plan(kLatency, vram_reads_);
    } else {
        plan(last, ends_[last]);
    }
    ends_ = {};
    rows_ = walked_ = read_ = 0;
}

}  // namespace orrery::emu
