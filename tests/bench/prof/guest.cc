// bench_prof_guest: work on the first card, as it is or in `orrery-prof record`, as its standard input asks
// for; it answers each line with a line. bench_prof asks it.
//
//   begin WORK MODE  a process that does this work is started, and has done it once
//   go               it does it again: the seconds that took, until all that was wanted is told, and (of
//                    the work `drain`) how many records were lost
//   count, plain     it has a subscription that wants counters only from now on, and has none
//   end              it ends: 0 and, if some was lost that was to be told, more than 0
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <orrery/prof.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/prof/shape.h"
#include "tools/bench/guest/clock.h"
#include "tools/prof/format.h"
#include "umd/samples/gemm/kernels.h"

ORR_EMBEDDED_KERNEL(bench_kernels);
ORR_EMBEDDED_KERNEL(gemm_kernels);

namespace orrery::bench {
namespace {

constexpr const char* kProfile = "/tmp/bench.prof";

// What the cards did, with counters, and nothing else.
class Counted {
  public:
    Counted() {
        orrProfOptions options = ORR_INIT(orrProfOptions);
        options.want = orrProfWantWork | orrProfWantCounters;
        check(orrProfSubscribe(&subscription_, &Counted::told, this, &options));
    }
    ~Counted() { (void)orrProfUnsubscribe(subscription_); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    // Of so many pieces of work, how many had none, at least.
    std::uint64_t missing(std::uint64_t work) const {
        return lost_ ? std::max(work - counted_, 1UL) : work - counted_;
    }

  private:
    static void told(void* user, const orrProfRecord* record) {
        auto& all = *static_cast<Counted*>(user);
        if (record->kind == orrProfWorkLost) all.lost_ = true;
        if (record->kind != orrProfWorkDone) return;
        const auto* const did = static_cast<const orrProfWork*>(record->params)->counters;
        if (did == nullptr) return;
        ++all.counted_;
        all.instructions_ += did->instructions;
        all.busy_ps_ += did->busy_ps;
    }
    orrProfSubscription_t subscription_ = nullptr;
    // Told by one thread at a time, and looked at behind orrProfFlush().
    std::uint64_t counted_ = 0, instructions_ = 0, busy_ps_ = 0;
    bool lost_ = false;
};

// As the samples do: matrices to the card, their product, and that back, in two streams.
class Mix {
  public:
    void operator()() {
        for (std::size_t i = 0; i < kMixRounds; ++i) {
            Lane& lane = lanes_[i % lanes_.size()];
            if (i >= lanes_.size()) lane.stream.synchronize();
            orrery::copy(lane.a.data(), lane.host_a.data(), kMatrixBytes, lane.stream);
            orrery::copy(lane.b.data(), lane.host_b.data(), kMatrixBytes, lane.stream);
            const GemmArgs args{lane.a.data(), lane.b.data(), lane.c.data(), kSide, kSide, kSide, 1};
            orrery::launch(gemm_, {(kSide + kGemmRows - 1) / kGemmRows, 1, kGemmColumns}, {1, 1, 1}, args,
                           sizeof(GemmLocal), lane.stream);
            orrery::copy(lane.host_c.data(), lane.c.data(), kMatrixBytes, lane.stream);
        }
        for (Lane& lane : lanes_)
            lane.stream.synchronize();
    }
    static constexpr std::uint64_t kWork = 4 * kMixRounds;

  private:
    static constexpr std::uint32_t kSide = 256;
    static constexpr std::size_t kElements = std::size_t{kSide} * kSide;
    static constexpr std::size_t kMatrixBytes = kElements * sizeof(float);
    struct Lane {
        Stream stream;
        PinnedArray<float> host_a{kElements}, host_b{kElements}, host_c{kElements};
        DeviceArray<float> a{kElements}, b{kElements}, c{kElements};
    };
    Library library_{gemm_kernels_image()};
    orrFunction_t gemm_ = library_.function("gemm");
    std::array<Lane, 2> lanes_;
};

// The smallest launches, as fast as they can be made.
class Storm {
  public:
    void operator()() {
        for (int i = 0; i < kStormRounds; ++i) {
            for (int launch = 0; launch < kStormLaunches; ++launch)
                orrery::launch(kernel_, {8, 1, 1}, {1, 1, 1}, card_.data(), 0, stream_);
            stream_.synchronize();
        }
    }
    static constexpr std::uint64_t kWork = std::uint64_t{kStormRounds} * kStormLaunches;

  private:
    Library library_{bench_kernels_image()};
    orrFunction_t kernel_ = library_.function("hundred");
    Stream stream_;
    DeviceArray<std::uint64_t> card_{1};
};

// The card's ring of records is filled while nobody reads it, as a callback does not return; then it does.
class Drain {
  public:
    Drain() {
        Graph::begin_capture(stream_);
        for (int i = 0; i < kGraphLaunches; ++i)
            orrery::launch(kernel_, {1, 1, 1}, {1, 1, 1}, card_.data(), 0, stream_);
        graph_ = Graph::end_capture(stream_);
        exec_ = GraphExec(graph_);
        orrProfOptions options = ORR_INIT(orrProfOptions);
        options.want = orrProfWantWork;
        check(orrProfSubscribe(&subscription_, &Drain::told, this, &options));
    }
    ~Drain() {
        let_go();
        (void)orrProfUnsubscribe(subscription_);
    }
    Drain(const Drain&) = delete;
    Drain& operator=(const Drain&) = delete;

    // Seconds for the rest of kDrained records, from when the callback returns until all are told.
    double operator()() {
        told_ = 0;
        held_ = false;
        hold_ = true;
        orrery::launch(kernel_, {1, 1, 1}, {1, 1, 1}, card_.data(), 0, stream_);
        held_.wait(false);
        for (int i = 0; i < kDrained / kGraphLaunches; ++i)
            exec_.launch(stream_);
        stream_.synchronize();
        const std::int64_t begin = now_ns();
        let_go();
        while (true) {
            const orrError_t answer = orrProfFlush();
            if (answer == orrSuccess) break;
            if (answer != orrErrorTimeout) check(answer);  // the callback was slow to return
        }
        return static_cast<double>(now_ns() - begin) * 1e-9;
    }
    // Of the last time.
    std::uint64_t lost() const { return kDrained + 1 - std::min<std::uint64_t>(told_, kDrained + 1); }

  private:
    void let_go() {
        hold_ = false;
        hold_.notify_all();
    }
    static void told(void* user, const orrProfRecord* record) {
        auto& drain = *static_cast<Drain*>(user);
        if (record->kind != orrProfWorkDone) return;
        ++drain.told_;
        if (!drain.hold_) return;
        drain.held_ = true;
        drain.held_.notify_all();
        drain.hold_.wait(true);
    }
    Library library_{bench_kernels_image()};
    orrFunction_t kernel_ = library_.function("hundred");
    Stream stream_;
    DeviceArray<std::uint64_t> card_{1};
    Graph graph_{empty};
    GraphExec exec_{empty};
    orrProfSubscription_t subscription_ = nullptr;
    std::atomic<bool> hold_{false}, held_{false};
    std::uint64_t told_ = 0;  // by one thread at a time, looked at behind orrProfFlush()
};

// --- The process that works: does it once for each line of its standard input.

void answer(double seconds, std::uint64_t number) {
    std::cout << fmt::format("{} {}", seconds, number) << std::endl;
}

template <typename Work>
void work() {
    Work work;
    std::unique_ptr<Counted> counting;
    std::uint64_t done = 0, missing = 0;
    const auto once = [&] {
        work();
        check(orrProfFlush());
        done += Work::kWork;
    };
    once();
    answer(0, 0);
    for (std::string line; std::getline(std::cin, line);) {
        double seconds = 0;
        if (line == "go") {
            const std::int64_t begin = now_ns();
            once();
            seconds = static_cast<double>(now_ns() - begin) * 1e-9;
        } else {
            if (counting) missing += counting->missing(done);
            counting.reset();
            if (line == "count") counting = std::make_unique<Counted>();
            done = 0;
        }
        answer(seconds, 0);
    }
    answer(0, missing);
}

void drain() {
    const double factor = clock_factor().value_or(1);
    Drain drain;
    (void)drain();
    answer(0, 0);
    for (std::string line; std::getline(std::cin, line);) {
        const double seconds = drain() * factor;
        answer(seconds, drain.lost());
    }
    answer(0, 0);
}

// --- The one that is asked.

// Whether a profile of one process has all that it was told. Commands of orrery-prof take long for that in a
// guest.
bool is_whole(const char* file) {
    std::ifstream in(file, std::ios::binary);
    prof::FileHead head{};
    prof::PartHead part{};
    in.read(reinterpret_cast<char*>(&head), sizeof head);
    in.read(reinterpret_cast<char*>(&part), sizeof part);
    std::vector<char> records(in ? part.bytes : 0);
    in.read(records.data(), static_cast<std::streamsize>(records.size()));
    if (!in || part.magic != prof::kPartMagic || part.lost != 0 || part.ended != 1) return false;
    std::uint64_t work = 0;
    for (std::size_t at = 0; at + sizeof(prof::RecordHead) <= records.size();) {
        prof::RecordHead record{};
        std::memcpy(&record, &records[at], sizeof record);
        if (record.type == static_cast<std::uint16_t>(prof::Type::kWorkLost) || record.bytes == 0)
            return false;
        if (record.type == static_cast<std::uint16_t>(prof::Type::kWork)) ++work;
        at += record.bytes;
    }
    return work > 0;
}

class Worker {
  public:
    Worker(const std::string& what, const std::string& mode) : recorded_(mode.starts_with("traced")) {
        std::vector<std::string> words;
        if (recorded_) words = {"orrery-prof", "record", "-o", kProfile};
        if (mode == "traced+counters") words.emplace_back("--counters");
        if (recorded_) words.emplace_back("--");
        words.insert(words.end(), {"bench_prof_guest", "--work", what});
        std::array<int, 2> down{}, up{};
        if (::pipe(down.data()) != 0 || ::pipe(up.data()) != 0)
            throw std::runtime_error("there are no pipes");
        process_ = ::fork();
        if (process_ < 0) throw std::runtime_error("there are no more processes");
        if (process_ == 0) {
            ::dup2(down[0], STDIN_FILENO);
            ::dup2(up[1], STDOUT_FILENO);
            for (const int fd : {down[0], down[1], up[0], up[1]})
                ::close(fd);
            std::vector<char*> arguments;
            for (std::string& word : words)
                arguments.push_back(word.data());
            arguments.push_back(nullptr);
            ::execvp(arguments[0], arguments.data());
            ::_exit(127);
        }
        ::close(down[0]);
        ::close(up[1]);
        to_.reset(::fdopen(down[1], "w"));
        from_.reset(::fdopen(up[0], "r"));
    }
    ~Worker() {
        to_.reset();
        if (process_ > 0) ::waitpid(process_, nullptr, 0);
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void go(const std::string& how) {
        if (std::fputs((how + '\n').c_str(), to_.get()) < 0 || std::fflush(to_.get()) != 0)
            throw std::runtime_error("the process that works takes no more");
    }
    std::string said() {
        char line[128];
        if (std::fgets(line, sizeof line, from_.get()) == nullptr)
            throw std::runtime_error("the process that works has failed");
        return line;
    }
    // What it says at its end. Not "0 0": not all that it did was told.
    std::string end() {
        to_.reset();
        std::string last = said();
        int status = 0;
        const bool good = ::waitpid(process_, &status, 0) == process_ && status == 0;
        process_ = -1;
        if (!good) throw std::runtime_error("the process that works has failed");
        return recorded_ && !is_whole(kProfile) ? "0 1\n" : last;
    }

  private:
    struct Closer {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    const bool recorded_;
    pid_t process_ = -1;
    std::unique_ptr<std::FILE, Closer> to_, from_;
};

void be_asked() {
    std::unique_ptr<Worker> worker;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string verb, what, mode;
        words >> verb >> what >> mode;
        std::string said = "0 0\n";
        if (verb == "begin") {
            worker = std::make_unique<Worker>(what, mode);
            said = worker->said();
        } else if ((verb == "go" || verb == "count" || verb == "plain") && worker) {
            worker->go(verb);
            said = worker->said();
        } else if (verb == "end" && worker) {
            said = worker->end();
            worker.reset();
        } else {
            throw std::runtime_error(fmt::format("'{}' is not known here", line));
        }
        std::cout << said << std::flush;
    }
}

int run(const std::vector<std::string>& arguments) {
    if (arguments.empty()) {
        be_asked();
        return 0;
    }
    const std::string what = arguments.size() == 2 && arguments[0] == "--work" ? arguments[1] : "";
    if (what == "mix")
        work<Mix>();
    else if (what == "storm")
        work<Storm>();
    else if (what == "drain")
        drain();
    else
        throw std::runtime_error("it takes --work and mix, storm or drain");
    return 0;
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
    try {
        return orrery::bench::run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_prof_guest: {}\n", error.what());
        return 1;
    }
}
