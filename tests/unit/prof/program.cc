// Calls the library, as any program does; no card is needed. Words say what else it does, one after the
// other.
#include <orrery/orrery.h>
#include <orrery/prof.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

void name_codes(int count) {
    for (int i = 0; i < count; ++i)
        (void)orrGetErrorString(orrSuccess);
}

void in_child(void (*work)(char**), char** argv) {
    const pid_t child = ::fork();
    if (child == 0) {
        work(argv);
        std::exit(0);
    }
    (void)::waitpid(child, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const bool range = !words.empty() && words[0] == "range";
    if (range) (void)orrProfRangePush(nullptr, "work");
    std::printf("%s\n", orrGetErrorName(orrSuccess));
    std::fflush(stdout);
    if (range) (void)orrProfRangePop(nullptr);
    for (const std::string& word : words) {
        if (word == "thread") std::thread([] { name_codes(1); }).join();
        if (word == "many") name_codes(100'000);
        if (word == "threads") {
            std::vector<std::thread> threads;
            for (int i = 0; i < 4; ++i)
                threads.emplace_back([] { name_codes(5'000); });
            for (std::thread& thread : threads)
                thread.join();
        }
        if (word == "fail") (void)orrFree(argv);
        if (word == "fork") in_child([](char**) { name_codes(3); }, argv);
        if (word == "exec") {
            in_child(
                [](char** self) {
                    name_codes(1);
                    ::execl(self[0], self[0], nullptr);
                },
                argv);
        }
        if (word == "names") {
            orrProfDomain_t domain = nullptr;
            (void)orrProfDomainCreate(&domain, "io");
            (void)orrProfRangePush(nullptr, "\"<script>\x1b[31m\xff");
            (void)orrProfRangePush(domain, "across");
            (void)orrProfExternalPush(5);
            (void)orrProfRangePop(nullptr);
            (void)orrProfMark(domain, std::string(5'000, 'x').c_str());
            (void)orrProfRangePop(domain);
            (void)orrProfRangePush(nullptr, "open");
        }
        if (word == "kill") (void)std::raise(SIGKILL);
        if (word == "status") return 7;
    }
    return 0;
}
