# A file system with one directory, `dir`, and two files in it, `file` and `slow`.
# Usage: perl server.pl PLACE
# Says `mounted`, or why not. Then each line it is told is followed by `ok`:
#   hold     takes no request any more
#   swallow  takes requests and keeps them
#   keep     the same with those for what a file holds; answers others
#   answer   answers, beginning with what was kept
# When nobody can tell it anything any more it ends, and the kernel ends what waits.
use strict; use warnings;
use Fcntl;
$| = 1; $^F = 255;
my ($place) = @ARGV;
my $content = "content\n";
# Number, kind with mode, length.
my %nodes = ('' => [1, 0040755, 0], dir => [2, 0040755, 0], file => [3, 0100644, length $content], slow => [4, 0100644, length $content]);
my %numbered = map { $_->[0] => $_ } values %nodes;

sysopen my $fuse, '/dev/fuse', O_RDWR or do { print "no /dev/fuse: $!\n"; exit };
my $options = 'allow_other,rootmode=40000,user_id=0,group_id=0,fd=' . fileno $fuse;
system('mount', '-i', '-t', 'fuse', '-o', $options, 'hanging', $place) == 0 or do { print "no mount\n"; exit };
print "mounted\n";

sub attributes { my ($n, $mode, $length) = @{$_[0]};
  return pack 'Q6L10', $n, $length, 1, 0, 0, 0, 0, 0, 0, $mode, 1, 0, 0, 0, 4096, 0 }
# What there is to say to a request: an error number, or bytes. Nothing, if there is no answer to it.
sub answer { my ($code, $node, $body) = @_;
  my $known = $numbered{$node};
  return if $code == 2 || $code == 36 || $code == 42;                       # forget, interrupt
  return (0, pack 'L4S2L2S2L8', 7, 31, 65536, 0, 8, 8, 65536, 1, 1, 0, (0) x 8) if $code == 26;
  if ($code == 1) { my $found = $nodes{substr $body, 0, -1} or return 2;    # look up
    return (0, pack('Q4L2', $found->[0], 0, 0, 0, 0, 0) . attributes($found)) }
  return (0, pack('QL2', 0, 0, 0) . attributes($known)) if $code == 3;      # attributes
  return (0, pack 'QL2', 1, 0, 0) if $code == 14 || $code == 27;            # open
  if ($code == 15) { my (undef, $at, $size) = unpack 'QQL', $body;          # read
    return (0, $at < length $content ? substr $content, $at, $size : '') }
  if ($code == 28) { my (undef, $at) = unpack 'QQ', $body;                  # list
    return (0, $node == 2 && !$at ? join '', map { pack 'QQLLa8', $nodes{$_}[0], 2, 4, 8, $_ } 'file', 'slow' : '') }
  return 0 if $code == 18 || $code == 29 || $code == 25;                    # release, flush
  return (0, pack 'Q5L10', (0) x 15) if $code == 17;                        # how full
  return 38 }
sub reply { my ($request) = @_;
  my (undef, $code, $unique, $node) = unpack 'LLQQ', $request;
  my ($error, $bytes) = answer($code, $node, substr $request, 40);
  return unless defined $error;
  $bytes //= '';
  syswrite $fuse, pack('LlQ', 16 + length $bytes, -$error, $unique) . $bytes }

my ($mode, @kept) = 'answer';
while (1) {
  my $ready = '';
  vec($ready, 0, 1) = 1; vec($ready, fileno $fuse, 1) = 1 if $mode ne 'hold';
  select $ready, undef, undef, undef;
  if (vec $ready, 0, 1) {
    sysread STDIN, my $told, 64 or exit;
    ($mode) = $told =~ /^(hold|swallow|keep|answer)$/ or die "told `$told`";
    if ($mode eq 'answer') { reply($_) for splice @kept }
    print "ok\n";
  } elsif (vec $ready, fileno $fuse, 1) {
    defined sysread $fuse, my $request, 1 << 18 or next;
    if ($mode eq 'swallow' || $mode eq 'keep' && (unpack 'LL', $request)[1] == 15) { push @kept, $request } else { reply($request) }
  }
}
