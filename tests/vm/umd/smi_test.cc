#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

std::string output_of(const char* command, int* status) {
    std::FILE* pipe = ::popen(command, "r");
    std::string text;
    char piece[4096];
    while (const std::size_t got = std::fread(piece, 1, sizeof(piece), pipe))
        text.append(piece, got);
    const int ended = ::pclose(pipe);
    *status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    return text;
}

TEST(Smi, JsonSaysWhatTheApiSays) {
    int status = -1;
    const std::string text = output_of("orrery-smi --json", &status);
    EXPECT_EQ(status, 0);
    const auto json = nlohmann::json::parse(text);
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    ASSERT_EQ(json.at("cards").size(), static_cast<std::size_t>(count));
    EXPECT_TRUE(json.at("problem").is_null());
    for (int device = 0; device < count; ++device) {
        const auto& card = json.at("cards").at(static_cast<std::size_t>(device));
        orrDeviceProp prop = ORR_INIT(orrDeviceProp);
        ASSERT_OK(orrGetDeviceProperties(&prop, device));
        EXPECT_EQ(card.at("pci").at("address"), prop.pci_address);
        EXPECT_EQ(card.at("pci").at("link_width"), 16);
        EXPECT_EQ(card.at("pci").at("driver"), "orrery");
        EXPECT_EQ(card.at("pci").at("held"), "none");
        EXPECT_EQ(card.at("node"), prop.node);
        EXPECT_EQ(card.at("state"), "running");
        EXPECT_EQ(card.at("vram_bytes"), prop.vram_bytes);
        EXPECT_GT(card.at("counters").at("core_instructions").get<std::uint64_t>(), 0u);
        EXPECT_EQ(card.at("counters").at("guest_errors"), 0);
        // All of one moment, so a metric is what its formula says of the counters beside it.
        const auto counter = [&](const char* name) { return card.at("counters").at(name).get<double>(); };
        EXPECT_EQ(counter("core_busy_ps") + counter("core_idle_ps"), counter("time_ps"));
        EXPECT_DOUBLE_EQ(card.at("metrics").at("core_utilisation").get<double>(),
                         100 * counter("core_busy_ps") / counter("time_ps"));
        EXPECT_TRUE(card.at("metrics").at("vector_link_stalls").is_null() ||
                    card.at("metrics").at("vector_link_stalls").is_number());
        EXPECT_EQ(card.at("links").size(), prop.link_ports);
        EXPECT_GE(prop.vector_vlen, 128u);
        EXPECT_EQ(std::string(prop.vector_isa).find("rv64imafdcv_"), 0u) << prop.vector_isa;
        EXPECT_EQ(card.at("vector_vlen"), prop.vector_vlen);
        EXPECT_EQ(card.at("vector_isa"), prop.vector_isa);
        EXPECT_EQ(card.at("host_atomics"), prop.host_atomics != 0);
    }
}

TEST(Smi, SaysWhatACardIsMadeOfAndWhereThatIsFrom) {
    int status = -1;
    const auto json = nlohmann::json::parse(output_of("orrery-smi sku --json", &status));
    EXPECT_EQ(status, 0);
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    ASSERT_EQ(json.at("cards").size(), static_cast<std::size_t>(count));
    for (int device = 0; device < count; ++device) {
        orrDeviceProp prop = ORR_INIT(orrDeviceProp);
        ASSERT_OK(orrGetDeviceProperties(&prop, device));
        const auto& card = json.at("cards").at(static_cast<std::size_t>(device));
        EXPECT_EQ(card.at("pci_address"), prop.pci_address);
        EXPECT_FALSE(card.contains("problem"));
        std::map<std::string, nlohmann::json> by_key;
        for (const auto& line : card.at("sku")) {
            EXPECT_NE(line.at("meaning"), "");
            by_key[line.at("key")] = line;
            if (line.at("key") == "card.name") continue;
            EXPECT_TRUE(line.at("value").is_number_unsigned()) << line;
            const std::string origin = line.at("origin");
            EXPECT_TRUE(origin == "published" || origin == "measured" || origin == "derived" ||
                        origin == "assumed")
                << line;
            EXPECT_NE(line.at("source"), "");
        }
        EXPECT_EQ(by_key["card.name"]["value"], prop.name);
        EXPECT_EQ(by_key["vector.cores"]["value"], prop.vector_cores);
        EXPECT_EQ(by_key["vector.hz"]["value"], prop.vector_hz);
        EXPECT_EQ(by_key["vector.hz"]["unit"], "Hz");
        EXPECT_EQ(by_key["copy.engines"]["value"], prop.copy_engines);
        EXPECT_EQ(by_key["link.ports"]["value"], prop.link_ports);
    }
    const std::string table = output_of("orrery-smi sku", &status);
    EXPECT_EQ(status, 0);
    EXPECT_NE(table.find("copy.vram_gb_per_s "), std::string::npos) << table;
    EXPECT_EQ(output_of("orrery-smi --sources 2>&1", &status).find("orrery-smi: unknown option --sources"),
              0u);
    EXPECT_EQ(status, 2);
}

TEST(Smi, ShowsWhoUsesACard) {
    const Card card(0);
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 3 << 20));
    ASSERT_OK(orrMemset(memory, 1, 3 << 20));
    int status = -1;
    const auto json = nlohmann::json::parse(output_of("orrery-smi --json", &status));
    unsigned times = 0;
    for (const auto& process : json.at("cards").at(0).at("processes")) {
        if (process.at("pid") != ::getpid()) continue;
        ++times;
        EXPECT_EQ(process.at("name"), "umd_vm_test");
        EXPECT_GE(process.at("memory_bytes").get<std::uint64_t>(), 3u << 20);
        EXPECT_GT(process.at("copy_ns").get<std::uint64_t>() + process.at("vector_ns").get<std::uint64_t>(),
                  0u);
    }
    EXPECT_EQ(times, 1u);
    EXPECT_THAT(output_of("orrery-smi", &status), ::testing::HasSubstr("umd_vm_test"));
    ASSERT_OK(orrFree(memory));
}

TEST(Smi, CommandLine) {
    int status = -1;
    EXPECT_THAT(
        output_of("orrery-smi", &status),
        ::testing::AllOf(::testing::HasSubstr("running"),
                         ::testing::HasSubstr("atomics    of kernels on host memory work: AtomicOps")));
    EXPECT_EQ(status, 0);
    EXPECT_THAT(output_of("orrery-smi --counters", &status),
                ::testing::AllOf(::testing::HasSubstr("vector_instructions"),
                                 ::testing::HasSubstr("vector_utilisation")));
    EXPECT_THAT(output_of("orrery-smi --nonsense 2>&1", &status), ::testing::HasSubstr("unknown option"));
    EXPECT_EQ(status, 2);
}

}  // namespace
}  // namespace orrery::umd::vm
