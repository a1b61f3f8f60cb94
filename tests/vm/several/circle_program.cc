// umd_circle, in two VMs or more with a card each: the stream of each waits for a semaphore that the stream
// of the VM before it would signal behind its own wait. They tell each other by files in /share how far they
// are.
#include <cstdint>
#include <cstring>

#include "tests/vm/several/talk.h"

using namespace orrery::vm::test;

namespace {

constexpr std::uint64_t kLongNs = 60'000'000'000;
constexpr std::uint64_t kPatienceNs = 400'000'000;

int number(const char* variable) {
    const char* value = std::getenv(variable);
    if (value == nullptr) fail(fmt::format("{} is not set: run by orrery-run --vms", variable));
    return std::atoi(value);
}

class Circle {
  public:
    Circle() : me_(number("ORR_VM")), all_(number("ORR_VMS")) {
        own_ = give_semaphore(turn(me_));
        next_ = take_semaphore(turn(after()));
        must(orrSemaphoreSetName(next_, turn(after()).c_str()));
        // Lent to one more by whom nobody would signal it, as its machine has to say.
        unused_ = take_semaphore(turn(after()));
        runner_ = stream(runner(me_));
    }

    // All have come here.
    void meet(const std::string& where) const {
        put(fmt::format("{}-{}", where, me_));
        for (int vm = 0; vm < all_; ++vm)
            await(fmt::format("{}-{}", where, vm));
    }

    void wait_in_turn(std::uint64_t value) { must(orrStreamWaitSemaphore(runner_, own_, value, nullptr)); }
    void pass_on(std::uint64_t value) { must(orrStreamSignalSemaphore(runner_, next_, value)); }

    void nobody_is_told(std::uint64_t value, const std::string& what) const {
        check(orrSemaphoreWait(own_, value, kPatienceNs), orrErrorTimeout, "", what);
    }

    void all_are_told() const {
        check(orrStreamSynchronize(runner_), orrErrorDeadlock,
              fmt::format("deadlock of {} streams of several machines: ", all_).c_str(), "told");
        const std::string text = orrGetLastErrorText();
        say(text);
        const auto has = [&](const std::string& part) {
            if (text.find(part) == std::string::npos) fail(fmt::format("no '{}' in it", part));
        };
        const auto waits = [&](int vm, const std::string& where) {
            return fmt::format("stream '{}' {} waits for semaphore '{}' to reach 1, which stream '{}' ",
                               runner(vm), where, turn(vm), runner((vm + all_ - 1) % all_));
        };
        has(waits(me_, "on device 0"));
        for (int vm = 0; vm < all_; ++vm)
            if (vm != me_) has(fmt::format("stream '{}' of another machine (card ", runner(vm)));
        has(fmt::format(
            "waits for semaphore '{}' to reach 1, which stream '{}' on device 0 would signal later",
            turn(after()), runner(me_)));
        check(orrSemaphoreWait(own_, 1, kLongNs), orrErrorDeadlock, "only who waits in a circle",
              "told again");
    }

    // Nothing of it has been stopped.
    void end(std::uint64_t value) const {
        if (me_ == 0 && value == 1) must(orrSemaphoreSignal(own_, value));
        must(orrStreamSynchronize(runner_));
    }

    // One in the last VM that would go on if its process said so.
    void help(std::uint64_t value) {
        if (!is_last()) return;
        must(orrSemaphoreCreate(&may_, 0));
        const orrStream_t helper = stream("helper");
        must(orrStreamWaitSemaphore(helper, may_, 1, nullptr));
        must(orrStreamSignalSemaphore(helper, next_, value));
    }
    void let_help() const {
        if (is_last()) must(orrSemaphoreSignal(may_, 1));
    }
    bool is_last() const { return me_ == all_ - 1; }
    int me() const { return me_; }

  private:
    static std::string turn(int vm) { return fmt::format("turn {}", vm); }
    static std::string runner(int vm) { return fmt::format("runner {}", vm); }
    int after() const { return (me_ + 1) % all_; }
    static orrStream_t stream(const std::string& name) {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.name = name.c_str();
        orrStream_t made = nullptr;
        must(orrStreamCreateWithAttributes(&made, &attributes));
        return made;
    }

    int me_, all_;
    orrSemaphore_t own_ = nullptr, next_ = nullptr, unused_ = nullptr, may_ = nullptr;
    orrStream_t runner_ = nullptr;
};

}  // namespace

int main() {
    Circle circle;
    circle.wait_in_turn(1);
    // The last has nothing behind its wait: its process may yet signal.
    if (!circle.is_last()) circle.pass_on(1);
    circle.meet("open");
    circle.nobody_is_told(1, "open: nobody is told");
    circle.meet("was open");
    if (circle.is_last()) circle.pass_on(1);
    circle.meet("closed");
    circle.all_are_told();
    circle.meet("told");
    circle.end(1);

    circle.help(2);
    circle.meet("helped");
    circle.wait_in_turn(2);
    circle.pass_on(2);
    circle.meet("with help");
    circle.nobody_is_told(2, "with help: nobody is told");
    circle.meet("not told");
    circle.let_help();
    circle.end(2);
    circle.meet("end");
    say(fmt::format("circle {}: passed", circle.me()));
}
