// Ranges, markers, domains, and numbers of others.
#include <orrery/prof.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "tests/unit/prof/heard.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

// As a tool does at the end of a process, when the main thread's objects are gone.
TEST(Ranges, AreNoMoreInHandlersOfExitAndMarkersAre) {
    const auto ends = [] {
        for (int i = 0; i < 100; ++i)
            orrProfRangePush(nullptr, "open");
        std::atexit([] {
            const bool refused = orrProfRangePush(nullptr, "late") == orrErrorNotSupported &&
                                 orrProfRangePop(nullptr) == orrErrorNotSupported &&
                                 orrProfExternalPush(7) == orrErrorNotSupported;
            ::_exit(refused && orrProfMark(nullptr, "late") == orrSuccess ? 0 : 9);
        });
        std::exit(0);  // NOLINT(concurrency-mt-unsafe)
    };
    EXPECT_EXIT(ends(), ::testing::ExitedWithCode(0), "");
}

TEST(Ranges, NestWithinTheirDomain) {
    orrProfDomain_t domain = nullptr;
    ASSERT_OK(orrProfDomainCreate(&domain, "data"));
    Heard heard;
    std::vector<std::string> domains;
    heard.and_then = [&](const orrProfRecord& record) {
        domains.push_back(record.domain == nullptr ? "" : record.domain);
    };
    ASSERT_OK(orrProfRangePush(nullptr, "step"));
    ASSERT_OK(orrProfRangePush(domain, "load"));
    ASSERT_OK(orrProfRangePush(nullptr, "forward"));
    ASSERT_OK(orrProfMark(domain, "full"));
    ASSERT_OK(orrProfRangePop(nullptr));
    ASSERT_OK(orrProfRangePop(domain));
    ASSERT_OK(orrProfRangePop(nullptr));
    EXPECT_EQ(heard.words, (Words{"[step", "[load", "[forward", "!full", "]", "]", "]"}));
    EXPECT_EQ(domains, (Words{"", "data", "", "data", "", "data", ""}));
    std::vector<std::uint64_t> depths;
    for (const orrProfRecord& record : heard.records)
        depths.push_back(record.depth);
    EXPECT_EQ(depths, (std::vector<std::uint64_t>{0, 0, 1, 1, 1, 0, 0}));
    EXPECT_EQ(heard.records[0].data, nullptr);
}

TEST(Ranges, AreCountedAlsoWhenNobodyListens) {
    ASSERT_OK(orrProfRangePush(nullptr, "before"));
    Heard heard;
    ASSERT_OK(orrProfRangePush(nullptr, "within"));
    EXPECT_EQ(heard.records.at(0).depth, 1u);
    ASSERT_OK(orrProfRangePop(nullptr));
    ASSERT_OK(orrProfRangePop(nullptr));
    EXPECT_FAIL(orrProfRangePop(nullptr), orrErrorInvalidValue, "no range");
}

TEST(Ranges, AreOfTheirThread) {
    ASSERT_OK(orrProfRangePush(nullptr, "here"));
    std::thread([] { EXPECT_FAIL(orrProfRangePop(nullptr), orrErrorInvalidValue, "no range"); }).join();
    ASSERT_OK(orrProfRangePop(nullptr));
}

TEST(Ranges, WithinACallHaveItsNumber) {
    FakeSystem system;
    Heard heard(orrProfWantRanges), calls(orrProfWantCalls);
    calls.and_then = [](const orrProfRecord& record) {
        if (record.kind == orrProfEnter) EXPECT_EQ(orrProfMark(nullptr, "in"), orrSuccess);
    };
    int count = 0;
    ASSERT_OK(orrProfMark(nullptr, "before"));
    ASSERT_OK(orrGetDeviceCount(&count));
    ASSERT_OK(orrProfMark(nullptr, "behind"));
    ASSERT_EQ(heard.words, (Words{"!before", "!in", "!behind"}));
    EXPECT_EQ(heard.records[0].correlation, 0u);
    EXPECT_EQ(heard.records[1].correlation, calls.records[0].correlation);
    EXPECT_EQ(heard.records[2].correlation, 0u);
}

TEST(Domains, AreTheSameForTheSameName) {
    orrProfDomain_t one = nullptr, again = nullptr, other = nullptr;
    ASSERT_OK(orrProfDomainCreate(&one, "one"));
    ASSERT_OK(orrProfDomainCreate(&again, std::string("one").c_str()));
    ASSERT_OK(orrProfDomainCreate(&other, "other"));
    EXPECT_EQ(one, again);
    EXPECT_NE(one, other);
}

TEST(Domains, OfBadNamesAndHandlesAreRefused) {
    orrProfDomain_t domain = nullptr;
    EXPECT_FAIL(orrProfDomainCreate(nullptr, "x"), orrErrorInvalidValue, "domain is null");
    EXPECT_FAIL(orrProfDomainCreate(&domain, nullptr), orrErrorInvalidValue, "name is null");
    EXPECT_FAIL(orrProfDomainCreate(&domain, ""), orrErrorInvalidValue, "1 to 255");
    EXPECT_FAIL(orrProfDomainCreate(&domain, std::string(256, 'x').c_str()), orrErrorInvalidValue,
                "256 bytes");
    int nothing = 0;
    auto* const made_up = reinterpret_cast<orrProfDomain_t>(&nothing);
    EXPECT_FAIL(orrProfRangePush(made_up, "x"), orrErrorInvalidHandle, "is not a domain");
    EXPECT_FAIL(orrProfRangePop(made_up), orrErrorInvalidHandle, "is not a domain");
    EXPECT_FAIL(orrProfMark(made_up, "x"), orrErrorInvalidHandle, "is not a domain");
    EXPECT_FAIL(orrProfRangePush(nullptr, nullptr), orrErrorInvalidValue, "text is null");
    EXPECT_FAIL(orrProfMark(nullptr, nullptr), orrErrorInvalidValue, "text is null");
}

// The last of this program, as there is no room for more behind it.
TEST(Domains, ZAreNotWithoutEnd) {
    orrProfDomain_t domain = nullptr;
    orrError_t error = orrSuccess;
    int made = 0;
    for (; made < 2000 && error == orrSuccess; ++made)
        error = orrProfDomainCreate(&domain, ("many " + std::to_string(made)).c_str());
    EXPECT_FAIL(error, orrErrorOutOfMemory, "1024 domains");
    ASSERT_OK(orrProfDomainCreate(&domain, "many 0"));
    Heard heard;
    ASSERT_OK(orrProfMark(domain, "x"));
    EXPECT_STREQ(heard.records.at(0).domain, "many 0");
}

TEST(External, NumbersAreInRecordsInnermostFirst) {
    FakeSystem system;
    Heard heard;
    int count = 0;
    ASSERT_OK(orrProfExternalPush(7));
    ASSERT_OK(orrGetDeviceCount(&count));
    ASSERT_OK(orrProfExternalPush(9));
    ASSERT_OK(orrProfMark(nullptr, "x"));
    std::uint64_t id = 0;
    ASSERT_OK(orrProfExternalPop(&id));
    EXPECT_EQ(id, 9u);
    std::thread([] { EXPECT_OK(orrProfMark(nullptr, "other thread")); }).join();
    ASSERT_OK(orrProfMark(nullptr, "y"));
    ASSERT_OK(orrProfExternalPop(nullptr));
    ASSERT_OK(orrProfMark(nullptr, "z"));
    std::vector<std::uint64_t> ids;
    for (const orrProfRecord& record : heard.records)
        ids.push_back(record.external);
    EXPECT_EQ(ids, (std::vector<std::uint64_t>{7, 7, 9, 0, 7, 0}));
    EXPECT_FAIL(orrProfExternalPop(&id), orrErrorInvalidValue, "no number");
    EXPECT_FAIL(orrProfExternalPush(0), orrErrorInvalidValue, "stands for none");
    for (int i = 0; i < 1024; ++i)
        ASSERT_OK(orrProfExternalPush(1));
    EXPECT_FAIL(orrProfExternalPush(1), orrErrorOutOfMemory, "1024 numbers");
    for (int i = 0; i < 1024; ++i)
        ASSERT_OK(orrProfExternalPop(nullptr));
}

}  // namespace
}  // namespace orrery::umd::test
