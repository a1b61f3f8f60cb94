// The gallery (docs/traces): every recording replays to the last bit, and every scenario does what its
// recording shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "emulator/api/replayer.h"
#include "tools/scenario/runner.h"
#include "tools/scenario/whatif.h"

namespace orrery::scenario {
namespace {

const std::filesystem::path kGallery = std::filesystem::path(ORRERY_SOURCE_DIR) / "docs/traces";

std::vector<std::string> files(const std::string& ending) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(kGallery)) {
        if (entry.path().extension() == ending) found.push_back(entry.path().stem().string());
    }
    std::ranges::sort(found);
    return found;
}

std::unique_ptr<emu::Replayer> replay(const std::filesystem::path& file) {
    auto replayer = emu::Replayer::open(file);
    EXPECT_TRUE(replayer) << replayer.error();
    if (!replayer) return nullptr;
    EXPECT_FALSE((*replayer)->divergence()) << file << ": " << (*replayer)->divergence()->reason;
    EXPECT_GT((*replayer)->hashes_checked(), 0u);
    EXPECT_FALSE((*replayer)->info().crashed);
    return *std::move(replayer);
}

TEST(Gallery, IsAllThere) {
    EXPECT_THAT(files(".otrace"), testing::ElementsAre("deadlock", "preemption", "priority-inversion",
                                                       "two-cards-0", "two-cards-1", "unfair-weights"));
    EXPECT_THAT(files(".toml"),
                testing::ElementsAre("deadlock", "preemption", "priority-inversion", "unfair-weights"));
    // The firmware with its debug information is nearly all of a recording, and grows with it.
    for (const auto& entry : std::filesystem::directory_iterator(kGallery))
        EXPECT_LT(entry.file_size(), 512u << 10) << entry.path() << " is no small file";
}

TEST(Gallery, ReplaysToTheLastBit) {
    for (const std::string& name : files(".otrace")) {
        const auto replayer = replay(kGallery / (name + ".otrace"));
        ASSERT_TRUE(replayer) << name;
        EXPECT_GT(replayer->record_count(), 10u) << name;
    }
}

TEST(Gallery, ScenariosDoWhatTheirRecordingsShow) {
    for (const std::string& name : files(".toml")) {
        const auto recorded = replay(kGallery / (name + ".otrace"));
        ASSERT_TRUE(recorded);
        const auto scenario = Scenario::load(kGallery / (name + ".toml"));
        ASSERT_TRUE(scenario) << scenario.error();
        const std::filesystem::path file =
            std::filesystem::temp_directory_path() / (name + std::to_string(::getpid()) + ".otrace");
        Options options;
        options.record = {file.string()};
        auto image = Image::from_bytes(recorded->images()[0].bytes, name);
        ASSERT_TRUE(image) << image.error();
        options.image = *std::move(image);
        const auto result = run(*scenario, options);
        ASSERT_TRUE(result) << result.error();
        const auto again = replay(file);
        std::filesystem::remove(file);
        ASSERT_TRUE(again);
        const std::string advice =
            name +
            ": the card's times have changed: run docs/traces/record.sh and read the walk-through again";
        ASSERT_EQ(again->record_count(), recorded->record_count()) << advice;
        for (std::size_t n = 0; n < recorded->record_count(); ++n) {
            const emu::PortRecord was = recorded->record(n), is = again->record(n);
            ASSERT_EQ(is.step, was.step) << advice << " (record " << n << ")";
            ASSERT_EQ(is.time_ps, was.time_ps) << advice << " (record " << n << ")";
            ASSERT_EQ(is.header, was.header) << advice << " (record " << n << ")";
            ASSERT_TRUE(std::ranges::equal(is.words, was.words)) << advice << " (record " << n << ")";
        }
        EXPECT_EQ(again->end(), recorded->end()) << advice;
        EXPECT_EQ(again->end_time(), recorded->end_time()) << advice;
    }
}

// What a what-if takes out of a recording is enough to decide the same again: one by one where a scenario was
// recorded, and for the real workload too.
TEST(Gallery, WhatIfNothingWereOtherwise) {
    for (const std::string& name : files(".otrace")) {
        const auto same = what_if((kGallery / (name + ".otrace")).string(), {});
        ASSERT_TRUE(same) << same.error();
        EXPECT_GT(same->before.decisions.size(), 0u) << name;
        EXPECT_FALSE(same->first_different) << name << "\n" << to_text(*same);
        EXPECT_NEAR(static_cast<double>(same->after.figures.makespan()) /
                        static_cast<double>(same->before.figures.makespan()),
                    1, 0.01)
            << name;
    }
}

}  // namespace
}  // namespace orrery::scenario
