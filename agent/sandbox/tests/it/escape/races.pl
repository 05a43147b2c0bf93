# A race for what is masked in /proc: one process takes masks away and puts itself elsewhere,
# again and again, while another opens the masked file by every way it has.
# Usage: perl races.pl ROUNDS. Prints `through WAY` for each way by which something was read,
# and `rounds N` in the end, so that one that was not run is no proof. Also run where one may
# take masks away, to see that the race is won there. Calls have names until they are given numbers.
use strict; use warnings;
use Fcntl;
$| = 1; $SIG{ALRM} = 'DEFAULT';
my ($rounds) = @ARGV;
my $file = 'kallsyms';
sub text { my $s = "$_[0]\0"; return $s }
# Whoever asks for what the filter kills for is killed, so each asks for one thing.
sub apart { my ($code) = @_;
  my $pid = fork; return unless defined $pid;
  if (!$pid) { alarm 5; open STDERR, '>', '/dev/null'; eval { $code->() }; syscall(SYS_exit_group, 0) }
  waitpid $pid, 0 }
opendir my $proc, '/proc' or die; my $held = fileno $proc;
open my $before, '<', "/proc/$file" or die;
my $first = $$;

my $taker = fork; defined $taker or die;
if (!$taker) {
  open STDOUT, '>', '/dev/null';
  for (1 .. $rounds) {
    apart(sub { syscall(SYS_umount2, text("/proc/$file"), 2) });
    apart(sub { syscall(SYS_umount2, text("/proc/$first/root/proc/$file"), 2) });
    apart(sub { syscall(SYS_umount2, text("/proc/self/fd/$held/$file"), 2) });
    apart(sub { syscall(SYS_mount, text("/proc/self/fd/$held"), text('/tmp'), text(''), 4096 | 16384, 0) });
    apart(sub { syscall(SYS_mount, text('proc'), text('/tmp'), text('proc'), 0, 0) });
    apart(sub { syscall(SYS_open_tree, -100, text('/proc'), 1) });
    apart(sub { rename "/proc/$file", '/tmp/moved'; symlink "/proc/$file", "/tmp/link$$"; link "/proc/$file", '/tmp/linked' });
    apart(sub { chdir '/proc'; chroot '.' });
  }
  syscall(SYS_exit_group, 0);
}
my %won;
my %ways = (
  name => "/proc/$file", descriptor => "/proc/self/fd/$held/$file",
  'root of another' => "/proc/$taker/root/proc/$file", 'directory of another' => "/proc/$taker/cwd/$file",
  thread => "/proc/thread-self/root/proc/$file", mounted => "/tmp/$file",
  'descriptor of before' => '/proc/self/fd/' . fileno $before, 'descriptor of another' => "/proc/$taker/fd/" . fileno $before,
);
chdir '/proc'; $ways{relative} = $file;
my $done = 0; my $after = 0;
until ($after) {
  $after = waitpid($taker, 1) == $taker; # once more when it is over
  for my $way (sort keys %ways) {
    open my $f, '<', $ways{$way} or next;
    $won{$way} = 1 if sysread $f, my $bytes, 16;
  }
  $done++;
}
print "through $_\n" for sort keys %won;
print "rounds $done\n";
