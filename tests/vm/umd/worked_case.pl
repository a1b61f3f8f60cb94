# worked_case.pl PAGE ORRERY_VM ORRERY_STEP WORK: replays the worked case of docs/synchronisation.md. Each command that the page
# prints between "A relay" and "A method" is run, and each line that it prints behind one must be what the programs say, in that
# order; they may say more. Where the page has a time any will do, and for "…" anything.
use strict;
use warnings;

my ($page, $vm, $step, $work) = @ARGV;
# What several processes or machines are told takes programs that the page does not print: vm.ipc*, vm.several.circle.
my %elsewhere = map { $_ => 1 } 'Processes that wait for each other', 'Machines that wait for each other';

open my $file, '<', $page or die "$page: $!\n";
my @lines = <$file>;
close $file;
chomp @lines;

my ($heading, $wrong, $runs, $checked) = ('', 0, 0, 0);
my (@said, $fence, $session);

sub pattern {
    my $text = quotemeta shift;
    $text =~ s/(?:\\ )+/\\s+/g;
    $text =~ s/\d+\\\.\d+\\s\+[pnum]?s\b/[\\d.]+\\s+[pnum]?s/g;
    $text =~ s/\\\xe2\\\x80\\\xa6/.*/g;
    return qr/^\s*$text\s*$/;
}

# The page's line is behind the last one that was found.
sub expect {
    my ($line) = @_;
    my $pattern = pattern($line);
    ++$checked;
    while (@said) {
        return if shift(@said) =~ $pattern;
    }
    print STDERR "the page says, under \"$heading\":\n  $line\nand nothing of the kind comes there\n";
    $wrong = 1;
}

sub run {
    my ($command) = @_;
    print "\$ $command\n";
    ++$runs;
    my @output = `$command 2>&1`;
    print @output;
    chomp @output;
    return @output;
}

# A session of orrery-step: its commands as the page has them, and what each is to print.
sub play {
    my ($command, @session) = @_;
    $command =~ s/^orrery-step /$step /;
    $command =~ s{/tmp/}{$work/}g;
    for (@session) { $command .= " -c '$1'" if /^card \d> (.*)/; }
    @said = run($command);
    for my $line (@session) {
        if ($line =~ /^card \d> /) {
            # From its command on.
            expect($line);
        } else {
            expect($line);
        }
    }
}

my $inside = 0;
for my $number (0 .. $#lines) {
    my $line = $lines[$number];
    if ($line =~ /^##+ (.*)/) {
        $heading = $1;
        $inside = 1 if $heading eq 'A relay';
        last if $heading eq 'A method';
    }
    next unless $inside;
    if ($session && $line !~ /^    /) {
        play(@$session);
        undef $session;
    }
    if ($line =~ /^```/) {
        $fence = !$fence;
        die "under \"$heading\" something is shown that no command has said\n"
            if $fence && !@said && !$elsewhere{$heading};
        @said = () unless $fence;
    } elsif ($fence) {
        expect($line) unless $elsewhere{$heading};
    } elsif ($line =~ /^    (?:\$ )?orrery-vm (.*)/) {
        my $arguments = $1;
        $arguments =~ s{/tmp/}{$work/}g;
        @said = run("$vm --logs $work/run$runs $arguments");
    } elsif ($line =~ /^    \$ (orrery-step .*)/) {
        $session = [$1];
    } elsif ($session && $line =~ /^    (.*)/) {
        push @$session, $1;
    } elsif ($line =~ /^    /) {
        die "under \"$heading\" something is shown that no command has said:\n$line\n" unless $elsewhere{$heading} || $line =~ /^    orrClock|^    orrDevice/;
    }
}
die "the page has changed: $runs commands, $checked lines\n" if $runs < 5 || $checked < 20;
exit $wrong;
