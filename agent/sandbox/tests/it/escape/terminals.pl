# Probes of terminals: each tries to get at the terminal of whoever started the agent, or has
# the kernel do what nobody but a person should with a terminal.
# Usage: perl terminals.pl ROWS NAME < some terminal, or not
# ROWS is how high the person's terminal is, by which it is known; NAME is what the machine
# calls it. Prints `name<TAB>refused|through`, one line a probe. System calls have their names
# until they are given numbers. Also run where nothing is refused, to see that it works there.
use strict; use warnings;
use Fcntl;
$| = 1;
# Or the kernel would stop whoever is in the background.
$SIG{TTOU} = 'IGNORE'; $SIG{ALRM} = 'DEFAULT';
my ($rows, $name) = @ARGV;
# What a driver says that was asked: it is a terminal that has no such thing (ENOTTY).
my $asked = 25;

sub apart {
  my ($code) = @_;
  my $pid = fork; return 1 unless defined $pid;
  if (!$pid) { alarm 5; open STDERR, '>', '/dev/null'; my $ok = eval { $code->() }; syscall(SYS_exit_group, $ok ? 0 : 1) }
  waitpid $pid, 0; return $? }
sub try { my ($name, $probe) = @_; print "$name\t", apart($probe) == 0 ? 'through' : 'refused', "\n" }
# Whether this is the person's terminal: TIOCGWINSZ.
sub theirs { my ($file) = @_; my $size = "\0" x 8; defined ioctl $file, 0x5413, $size or return 0; return unpack('S', $size) == $rows }
sub gives { my ($file, $order, $argument) = @_; return 1 if defined ioctl $file, $order, $argument; return $! == $asked }
# Any terminal that can be had: the one that controls, or the one it was given.
sub any { my ($code) = @_;
  return 1 if -t STDIN && $code->(*STDIN);
  for my $way ('/dev/tty', '/proc/self/fd/0', $name) { if (sysopen my $t, $way, O_RDWR | O_NOCTTY) { return 1 if $code->($t) } }
  return 0 }

try 'open the terminal of the agent', sub { sysopen my $t, '/dev/tty', O_RDWR or return 0; theirs($t) };
try 'open it by its name', sub { sysopen my $t, $name, O_RDWR | O_NOCTTY or return 0; theirs($t) };
try 'type into a terminal', sub { any(sub { my $c = 'x'; gives($_[0], 0x5412, $c) }) };
try 'paste at a console (TIOCLINUX)', sub { any(sub { my $c = "\3" x 16; gives($_[0], 0x541C, $c) }) };
try 'set a line discipline', sub { any(sub { my $n = pack 'l', 0; gives($_[0], 0x5423, $n) }) };
# The last: whoever had it has none any more.
try 'take the terminal of the agent', sub { any(sub { return 0 unless theirs($_[0]); syscall(SYS_setsid); ioctl $_[0], 0x540E, 1 }) };
