# Probes that use files and room up. Usage: perl exhaustion.pl VIEW
# Prints `name<TAB>refused|through<TAB>works|broken`, one line a probe. Each
# asks for a little more than the limits of the test that runs it.
use strict; use warnings;
$| = 1;
my ($view) = @ARGV;

# Each in a process of its own: a limit may be a signal.
sub apart { my ($code) = @_;
  my $pid = fork; return 0 unless defined $pid;
  if (!$pid) { open STDERR, '>', '/dev/null'; my $ok = eval { $code->() }; exit($ok ? 0 : 1) }
  waitpid $pid, 0; return $? == 0 }
sub try { my ($name, $probe, $twin) = @_;
  my $works = apart($twin); my $through = apart($probe);
  print "$name\t", $through ? 'through' : 'refused', "\t", $works ? 'works' : 'broken', "\n" }

# So many megabytes in files of four; gone afterwards.
sub room { my ($dir, $megabytes) = @_; my @names; my $ok = 1;
  for my $n (1 .. $megabytes / 4) {
    my $name = "$dir/room$n"; push @names, $name;
    open my $f, '>', $name or do { $ok = 0; last };
    for (1 .. 4) { my $done = syswrite $f, 'x' x (1 << 20); if (!defined $done || $done < 1 << 20) { $ok = 0; last } }
    close $f or $ok = 0; last unless $ok }
  unlink @names; return $ok }
# So many empty files; gone afterwards.
sub names { my ($dir, $count) = @_; my @names; my $ok = 1;
  for my $n (1 .. $count) { my $name = "$dir/name$n"; open my $f, '>', $name or do { $ok = 0; last }; push @names, $name }
  unlink @names; return $ok }

try 'room in /tmp', sub { room('/tmp', 40) }, sub { room('/tmp', 4) };
try 'room in the view', sub { room($view, 40) }, sub { room($view, 4) };
try 'names in /tmp', sub { names('/tmp', 2000) }, sub { names('/tmp', 20) };
try 'names in the view', sub { names($view, 2000) }, sub { names($view, 20) };
try 'names in /dev/shm', sub { names('/dev/shm', 5000) }, sub { names('/dev/shm', 20) };
try 'names in the exchange', sub { names('/run/hermitcrab', 5000) }, sub { names('/run/hermitcrab', 20) };
try 'one long file', sub { open my $f, '>', '/tmp/long'; for (1 .. 12) { (syswrite($f, 'x' x (1 << 20)) // 0) == 1 << 20 or return 0 } 1 },
  sub { open my $f, '>', '/tmp/short'; syswrite $f, 'x' };
try 'open files', sub { my @f; for (1 .. 100) { open $f[$_], '<', '/dev/null' or return 0 } 1 }, sub { open my $f, '<', '/dev/null' };
