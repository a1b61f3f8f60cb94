// gdb at the guest's kernel.
#include "tools/vm/run/gdb.h"
#include "tests/vm/orrery_vm/fixture.h"

namespace orrery::vm {
namespace {

TEST_F(OrreryVm, GdbSeesTheKernelAndOurModule) {
    auto started =
        start({"--gdb", "--", "sh", "-c",
               "echo up; while :; do cat /sys/class/accel/accel0/device/counters/copy_bytes; done"},
              "gdb");
    wait_for_output(started, "up");
    const auto text = capture({"gdb-multiarch", "-nx", "-batch", "-x", (started.logs / "kernel.gdb").string(),
                               "-ex", "x/i schedule", "-ex", "break orr_counter_show", "-ex", "continue",
                               "-ex", "backtrace", "-ex", "list", "-ex", "detach"});
    ASSERT_TRUE(text) << text.error().text;
    EXPECT_THAT(*text, HasSubstr("<schedule>:"));
    EXPECT_THAT(*text, HasSubstr("Breakpoint 1, orr_counter_show ("));
    EXPECT_THAT(*text, HasSubstr("in dev_attr_show ()")) << "the kernel's own functions have names";
    EXPECT_THAT(*text, HasSubstr("struct orr_device *odev")) << "the module's source is found";
    started.process.signal(SIGINT);
    const auto outcome = finish(started);
    EXPECT_EQ(outcome.status, 128 + SIGINT);
    EXPECT_THAT(outcome.err, HasSubstr("gdb -x " + (started.logs / "kernel.gdb").string()));
}

TEST(SymbolFile, TakesWhatIsASymbolOfTheKernel) {
    const std::string none = symbol_file("");
    const std::string one = symbol_file("ffffffff81000000 T _text\n");
    EXPECT_GT(one.size(), none.size());
    EXPECT_THAT(one, HasSubstr(std::string("\0_text\0", 7)));
    EXPECT_EQ(
        symbol_file(
            "0000000000000000 A fixed_percpu_data\nffffffff81000000\nnonsense\nffffffff81000000 T \n\n"),
        none);
    EXPECT_THAT(symbol_file("ffffffffc0000000 t orr_probe\t[orrery]\n"),
                HasSubstr(std::string("\0orr_probe\0", 11)));
}

}  // namespace
}  // namespace orrery::vm
