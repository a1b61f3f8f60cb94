// A tool that writes what it is told to stderr. OLD, SHORT, SILENT, UNWILLING: what is wrong with it.
#include <orrery/prof.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

void say(const std::string& text) {
    (void)!::write(STDERR_FILENO, text.data(), text.size());
}

[[maybe_unused]] void told(void*, const orrProfRecord* record) {
    say(std::string("tool: ") + "?+-[]!"[record->kind] + (record->name == nullptr ? "" : record->name) +
        "\n");
}

orrError_t start() {
#ifdef UNWILLING
    return orrErrorNotSupported;
#else
    uint32_t version = 0;
    (void)orrGetVersion(&version);  // a tool may call the API before it subscribes
    say("tool: start\n");
    orrProfSubscription_t subscription = nullptr;
    return orrProfSubscribe(&subscription, &told, nullptr, nullptr);
#endif
}

void stop() {
    say("tool: stop\n");
}

[[maybe_unused]] constexpr orrProfTool tool() {
    orrProfTool made{};
#ifdef SHORT
    made.size = 16;
#else
    made.size = sizeof made;
#endif
#ifdef OLD
    made.version = 77;
#else
    made.version = orrProfToolVersion;
#endif
    made.name = "test";
    made.start = &start;
    made.stop = &stop;
    return made;
}

}  // namespace

#ifndef SILENT
extern "C" __attribute__((visibility("default"))) const orrProfTool orrery_prof_tool = tool();
#endif
