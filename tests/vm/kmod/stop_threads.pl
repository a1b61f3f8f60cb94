# stop_threads.pl PID FILE: stops all threads of a process but its first one, makes FILE then, and lets them go on when that is
# removed, which FILE.off says. As a debugger would: x86-64, and the right to trace that process.
use strict;
use warnings;
my ($pid, $file) = @ARGV;
my ($ptrace, $seize, $interrupt, $detach, $wait_all) = (101, 0x4206, 0x4207, 17, 0x40000000);

sub ask {
    my ($request, $thread) = @_;
    syscall($ptrace, $request, $thread, 0, 0) == 0 or die "stop_threads.pl: thread $thread of $pid: $!\n";
}

sub make { open my $made, '>', $_[0] or die "stop_threads.pl: $_[0]: $!\n" }

my @threads = grep { $_ != $pid } map { m{/(\d+)$} ? $1 + 0 : () } glob "/proc/$pid/task/*";
for my $thread (@threads) {
    ask($seize, $thread);
    ask($interrupt, $thread);
    waitpid $thread, $wait_all;
}
make($file);
select undef, undef, undef, 0.01 while -e $file;
ask($detach, $_) for @threads;
make("$file.off");
