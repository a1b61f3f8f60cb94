# stop_threads.pl PID FILE: stops all threads of a process but its first one, makes FILE then, and lets them go on when that is
# removed, which FILE.off says. As a debugger would: x86-64, and the right to trace that process. Ends too when either that
# process or the one that started this has ended.
use strict;
use warnings;
my ($pid, $file) = @ARGV;
my ($ptrace, $seize, $interrupt, $detach, $wait_all) = (101, 0x4206, 0x4207, 17, 0x40000000);
my $parent = getppid;

sub ask {
    my ($request, $thread) = @_;
    syscall($ptrace, $request, $thread, 0, 0) == 0 or die "stop_threads.pl: thread $thread of $pid: $!\n";
}

sub make { open my $made, '>', $_[0] or die "stop_threads.pl: $_[0]: $!\n" }

# A killed one is a zombie until its threads have been let go.
sub lives {
    open my $stat, '<', "/proc/$pid/stat" or return 0;
    return <$stat> !~ /\) [ZX] [^)]*$/;
}

my @threads = grep { $_ != $pid } map { m{/(\d+)$} ? $1 + 0 : () } glob "/proc/$pid/task/*";
@threads or die "stop_threads.pl: process $pid has no threads but its first one, or is none\n";
for my $thread (@threads) {
    ask($seize, $thread);
    ask($interrupt, $thread);
    waitpid $thread, $wait_all;
}
make($file);
while (-e $file) {
    exit 1 unless getppid == $parent and lives();
    select undef, undef, undef, 0.01;
}
ask($detach, $_) for @threads;
make("$file.off");
