// A bundle is opened at the moment of the first cause.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "emulator/api/flight.h"
#include "emulator/base/unique_fd.h"
#include "tests/unit/trace/recordings.h"
#include "tools/step/bundle.h"

namespace orrery::step {
namespace {

namespace fs = std::filesystem;
using emu::TemporaryFile;
using nlohmann::ordered_json;
using testing::HasSubstr;

Result<std::unique_ptr<Session>> open(std::vector<std::uint8_t> bytes, const std::string& name) {
    return open_session(std::move(bytes), name, {});
}

std::string recording(std::uint64_t flight_segment, emu::ModelTime jump = 0) {
    const TemporaryFile file;
    emu::CardConfig config = emu::CardRig::config();
    if (flight_segment == 0) {
        config.record = file.path();
    } else {
        config.flight_segment = flight_segment;
        config.flight_file = file.path();
    }
    emu::record_rounds(std::move(config), 24, [jump](emu::Card& card) {
        if (jump != 0) card.core().note(ORR_OTRACE_NOTE_JUMP, {jump});
        card.store_recording();
    });
    const emu::UniqueFd fd(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
    const auto bytes =
        flight_segment == 0 ? emu::bytes_of(file.path()) : emu::flight_recording(fd.get()).value();
    return {bytes.begin(), bytes.end()};
}

ordered_json manifest(const ordered_json& cards) {
    return {{"command", {"a", "b"}}, {"cards", cards}, {"ended", {{"text", "it failed"}}}};
}

TEST(OpenBundle, LandsAtTheEndOfTheCardThatDied) {
    const TemporaryFile file;
    ASSERT_TRUE(
        bundle::write(file.path(),
                      manifest({{{"index", 0}, {"recording", "card0.otrace"}},
                                {{"index", 1}, {"recording", "card1.otrace"}, {"died", "was killed"}}}),
                      {{"card0.otrace", recording(0)}, {"card1.otrace", recording(1)}}));
    const auto opened = open_bundle(file.path().string(), {}, open);
    ASSERT_TRUE(opened) << opened.error().text;
    OpenBundle& bundle = **opened;
    ASSERT_EQ(bundle.cards.all.size(), 2u);
    EXPECT_EQ(bundle.cards.current, 1u);
    const Session& session = bundle.cards.now().session();
    EXPECT_EQ(session.position(), session.end());
    EXPECT_THAT(summary(bundle), HasSubstr("command    a b\n"));
    EXPECT_THAT(where(bundle, false),
                HasSubstr("kind: card-died\ncause: the process of card 1 was killed\ncard: 1\n"));
    const auto json = ordered_json::parse(where(bundle, true));
    EXPECT_EQ(json["kind"], "card-died");
    EXPECT_EQ(json["step"], session.end());
    EXPECT_EQ(json["then"][0]["kind"], "run-failed");
}

// What the run was; also where a manifest is anybody's.
TEST(OpenBundle, SaysHowCardsWereLinkedAndKeptStep) {
    const TemporaryFile file;
    const auto said = [&](const ordered_json& topology, const char* plan) {
        ordered_json about = manifest({{{"index", 3}, {"recording", "card3.otrace"}, {"faults", plan}}});
        about["topology"] = topology;
        about["sync"] = "lockstep";
        EXPECT_TRUE(bundle::write(file.path(), about, {{"card3.otrace", recording(0)}}));
        const auto opened = open_bundle(file.path().string(), {}, open);
        EXPECT_TRUE(opened) << opened.error().text;
        return summary(**opened);
    };
    const std::string text =
        said({{"named", "pair"}, {"links", {{0, 1, 3, 2}, {1, 0, 2, 0}}}}, "seed 7\ndispatch die\n");
    EXPECT_THAT(
        text, HasSubstr("topology   pair: card 0 port 1 to card 3 port 2, card 1 port 0 to card 2 port 0\n"));
    EXPECT_THAT(text, HasSubstr("sync       lockstep\n"));
    EXPECT_THAT(text, HasSubstr("faults     card 3: seed 7; dispatch die\n"));
    EXPECT_THAT(said({{"named", "ring"}}, ""), HasSubstr("topology   ring\n"));
    EXPECT_THAT(said({{"links", {3, {1}, {"a", 1, 2, 3}, {-1, 0, 0, 0}}}}, ""),
                testing::Not(HasSubstr("topology")));
    ordered_json many = ordered_json::array();
    for (int i = 0; i < 40; ++i)
        many.push_back({i, 0, i + 1, 1});
    EXPECT_THAT(said({{"links", many}}, ""), HasSubstr("card 16 port 1, and 24 links more\n"));
}

TEST(OpenBundle, NoOtherCardStandsForTheOneThatHasNoRecording) {
    const TemporaryFile file;
    const std::string bytes = recording(0);
    const auto opened = [&](ordered_json about) {
        EXPECT_TRUE(bundle::write(file.path(), std::move(about), {{"card1.otrace", bytes}}));
        auto out = open_bundle(file.path().string(), {}, open);
        EXPECT_TRUE(out) << out.error().text;
        return std::move(*out);
    };
    const auto died = opened(
        manifest({{{"index", 0}, {"died", "was killed"}}, {{"index", 1}, {"recording", "card1.otrace"}}}));
    const Session& session = died->cards.now().session();
    EXPECT_GT(session.end(), 0u);
    EXPECT_EQ(session.position(), session.end());
    const std::string text = where(*died, false);
    EXPECT_THAT(text, HasSubstr("card: 0\n"));
    EXPECT_THAT(text, testing::Not(HasSubstr("step: ")));
    EXPECT_FALSE(ordered_json::parse(where(*died, true)).contains("step"));
    // What is of no card is at the end of the first that has one.
    const auto panic = opened(manifest({{{"index", 0}}, {{"index", 1}, {"recording", "card1.otrace"}}}));
    EXPECT_EQ(panic->cards.now().session().position(), session.end());
    EXPECT_THAT(where(*panic, false), HasSubstr(fmt::format("step: {}\n", session.end())));
}

// Of a run that ended well: all cards, as they ended.
TEST(OpenBundle, WithoutAFailureCardsAreShownAtTheirEnds) {
    const TemporaryFile file;
    const std::string bytes = recording(0);
    ordered_json about =
        manifest({{{"index", 0}, {"recording", "card0.otrace"}},
                  {{"index", 1}, {"recording", "card1.otrace"}, {"ended", "exited with 0"}}});
    about.erase("ended");
    ASSERT_TRUE(bundle::write(file.path(), about, {{"card0.otrace", bytes}, {"card1.otrace", bytes}}));
    const auto opened = open_bundle(file.path().string(), {}, open);
    ASSERT_TRUE(opened) << opened.error().text;
    EXPECT_THAT(where(**opened, false), HasSubstr("kind: none\n"));
    for (const auto& each : (*opened)->cards.all)
        EXPECT_EQ(each->session().position(), each->session().end());
    EXPECT_TRUE((*opened)->cards.now().execute("card 1"));
    EXPECT_EQ((*opened)->cards.current, 1u);
}

// The flight recorder's does not have what the firmware said as it started.
TEST(OpenBundle, AFlightRecordersTablesAreFound) {
    const TemporaryFile file;
    ASSERT_TRUE(bundle::write(file.path(), manifest({{{"index", 0}, {"recording", "card0.otrace"}}}),
                              {{"card0.otrace", recording(1)}}));
    const auto opened = open_bundle(file.path().string(), {}, open);
    ASSERT_TRUE(opened) << opened.error().text;
    Debugger& debugger = (*opened)->cards.now();
    EXPECT_TRUE(debugger.session().about().resumed);
    EXPECT_TRUE(debugger.inspect()) << debugger.inspect().error().text;
    const auto snapshot = debugger.snapshot();
    ASSERT_TRUE(snapshot);
    EXPECT_EQ(snapshot->queues.size(), 2u);
    EXPECT_EQ(debugger.history().queues().size(), 2u);
    for (const char* command :
         {"queues", "summary", "timeline", "waits", "events 5", "goto start", "step event", "verify"}) {
        const auto reply = debugger.execute(command);
        EXPECT_TRUE(reply) << command << ": " << reply.error().text;
    }
}

// A flight recorder that has gone round beside a recording that has all: the same card, the same times.
TEST(OpenBundle, SystemTimesAreThoseOfAllThatTheCardSkipped) {
    constexpr emu::ModelTime kJump = 1'000'000'000;
    const auto session = [](std::uint64_t segment) {
        const std::string bytes = recording(segment, kJump);
        return open({bytes.begin(), bytes.end()}, "x").value();
    };
    const auto whole = session(0), kept = session(1);
    ASSERT_TRUE(kept->about().resumed);
    EXPECT_GT(kept->about().start, 0u);
    EXPECT_EQ(kept->end_time(), whole->end_time());
    EXPECT_EQ(system_time(*whole, whole->end_time()), whole->end_time() + 24 * kJump);
    for (const Time own : {kept->about().start, kept->end_time()}) {
        const Time system = system_time(*kept, own);
        EXPECT_EQ(system, system_time(*whole, own));
        EXPECT_EQ(own_time(*kept, system), own);
    }
}

TEST(OpenBundle, WhatTheManifestNamesMustBeThereAndReplay) {
    const TemporaryFile file;
    const auto error = [&](const ordered_json& cards, const std::vector<bundle::File>& files) {
        EXPECT_TRUE(bundle::write(file.path(), manifest(cards), files));
        const auto opened = open_bundle(file.path().string(), {}, open);
        return opened ? "opened" : opened.error().text;
    };
    EXPECT_THAT(error({{{"index", 0}, {"recording", "card0.otrace"}}}, {}), HasSubstr("which is not in it"));
    EXPECT_THAT(error({{{"index", 0}, {"recording", "x"}}}, {{"x", "no recording"}}),
                HasSubstr(":x: offset"));
    EXPECT_THAT(error(3, {}), HasSubstr("lists no cards"));
    EXPECT_EQ(error(ordered_json::array(), {}), "opened");
    EXPECT_EQ(error({3, "x", {{"index", "y"}}}, {}), "opened");
}

TEST(OpenBundle, FilesGoIntoAFolderAndReplaceNothing) {
    const TemporaryFile file, folder;
    ASSERT_TRUE(bundle::write(file.path(), manifest(ordered_json::array()), {{"guest.log", "hello"}}));
    const auto bundle = bundle::read(file.path());
    ASSERT_TRUE(bundle);
    ASSERT_TRUE(extract(*bundle, folder.path().string()));
    EXPECT_EQ(emu::bytes_of(folder.path() / "guest.log").size(), 5u);
    const auto manifest_bytes = emu::bytes_of(folder.path() / bundle::kManifest);
    EXPECT_EQ(std::string(manifest_bytes.begin(), manifest_bytes.end()), bundle->manifest_text);
    const auto again = extract(*bundle, folder.path().string());
    ASSERT_FALSE(again);
    EXPECT_THAT(again.error().text, HasSubstr("there is such a file already"));
    // Not even those before the one that is there: a link that leads nowhere, under the last name.
    fs::remove_all(folder.path());
    fs::create_directory(folder.path());
    fs::create_symlink(folder.path() / "elsewhere", folder.path() / bundle::kManifest);
    ASSERT_FALSE(extract(*bundle, folder.path().string()));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
    fs::remove_all(folder.path());
}

}  // namespace
}  // namespace orrery::step
