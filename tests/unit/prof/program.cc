// Calls the library, as any program does; no card is needed.
#include <orrery/orrery.h>
#include <orrery/prof.h>

#include <cstdio>
#include <cstring>
#include <thread>

int main(int argc, char** argv) {
    const bool range_first = argc > 1 && std::strcmp(argv[1], "range") == 0;
    if (range_first) (void)orrProfRangePush(nullptr, "work");
    std::printf("%s\n", orrGetErrorName(orrSuccess));
    std::fflush(stdout);
    if (range_first) (void)orrProfRangePop(nullptr);
    if (argc > 1 && std::strcmp(argv[1], "threads") == 0) {
        std::thread other([] { (void)orrGetErrorString(orrSuccess); });
        other.join();
    }
    return 0;
}
