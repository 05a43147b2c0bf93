# Probes: each tries one forbidden thing, its twin the allowed one beside it.
# Usage: perl probes.pl HOST_PORT HOST_ABSTRACT_NAME HOST_PID HOST_SECRET HOST_READABLE
# Prints `name<TAB>refused|through|unclear N<TAB>works|broken`, one line a probe: refused is
# what somebody said no to, or was killed for, and not what failed for another reason (its
# number), which proves nothing. System calls have their names until they are given the
# numbers of an architecture, which `IS_X86` tells. Nothing here is run outside a sandbox.
use strict; use warnings; no warnings 'portable';
use Socket; use Fcntl;
$| = 1; $SIG{ALRM} = 'DEFAULT';
my ($port, $abstract, $host_pid, $secret, $readable) = @ARGV;
my $dir = "probe-$$"; mkdir $dir; chdir $dir;

# What a call says that somebody refuses: EPERM, EACCES, ENOSYS.
my %no = map { $_ => 1 } 1, 13, 38;
# Why the last system call failed, if it did.
my $why = 0;
# Runs a piece of code in a process of its own; its end, 0 if it succeeded.
sub apart {
  my ($code) = @_;
  my $pid = fork; return 1 << 8 unless defined $pid;
  if (!$pid) { alarm 5; open STDERR, '>', '/dev/null'; my $ok = eval { $code->() }; syscall(SYS_exit_group, $ok ? 0 : $why && !$no{$why} ? 100 + $why : 1) }
  waitpid $pid, 0; return $?;
}
sub said { my ($end) = @_; return 'through' if $end == 0; return $end >> 8 > 100 ? 'unclear ' . (($end >> 8) - 100) : 'refused' }
sub try { my ($name, $probe, $twin, $limit) = @_;
  local $no{$limit // 1} = 1; # how a limit, or a namespace that has no such thing, says no
  print "$name\t", said(apart($probe)), "\t", apart($twin) == 0 ? 'works' : 'broken', "\n" }
sub sys { my $r = syscall($_[0], @_[1..$#_]); $why = $r == -1 ? $! + 0 : 0; return $r != -1 }
sub text { my $s = "$_[0]\0"; return $s }
sub reads { open my $f, '<', $_[0] or return 0; my $n = sysread $f, my $b, 64; return $n }
sub opens { sysopen my $f, $_[0], O_WRONLY or return 0; return 1 }
my $live = sub { syscall(SYS_getpid) > 0 };
my $zero = "\0" x 128;

# Mounts and roots. That there is nothing to uncover, and no mount to begin at (EINVAL), is
# what the kernel finds after it has asked whether somebody may.
try 'mount a tmpfs', sub { sys(SYS_mount, text('none'), text('/tmp'), text('tmpfs'), 0, 0) }, sub { mkdir "/tmp/m$$" };
try 'remount the system writable', sub { sys(SYS_mount, text('none'), text('/usr'), text(''), 32 | 4096, 0) }, sub { -x '/usr/bin/env' };
try 'uncover a masked file', sub { sys(SYS_umount2, text('/proc/kallsyms'), 2) || $why == 22 && sys(SYS_umount2, text('/dev/shm'), 2) }, sub { -e '/proc/kallsyms' };
try 'fsopen', sub { sys(SYS_fsopen, text('tmpfs'), 0) }, $live;
try 'open_tree', sub { sys(SYS_open_tree, -100, text('/dev/shm'), 1) }, sub { opendir my $d, '/' };
try 'mount_setattr', sub { my $a = pack 'Q4', 0, 1, 0, 0; sys(SYS_mount_setattr, -100, text('/usr'), 0x8000, $a, 32) }, $live;
try 'pivot_root', sub { sys(SYS_pivot_root, text('.'), text('.')) || $why == 22 }, $live;
try 'chroot', sub { sys(SYS_chroot, text('.')) }, sub { chdir '.' };
# Namespaces.
try 'a nested user namespace (unshare)', sub { sys(SYS_unshare, 0x10000000) }, sub { sys(SYS_unshare, 0x400) }, 28;
try 'a nested user namespace (clone)', sub { my $r = syscall(SYS_clone, 0x10000000 | 17, 0, 0, 0, 0); syscall(SYS_exit_group, 0) if $r == 0; $r > 0 }, sub { my $p = fork; exit if !$p; waitpid $p, 0 };
try 'clone3 past the filter', sub { my $a = pack 'Q11', 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0; my $r = syscall(SYS_clone3, $a, 88); syscall(SYS_exit_group, 0) if $r == 0; $r > 0 }, sub { system('true') == 0 };
try 'enter the first process\' namespaces', sub { open my $f, '<', '/proc/1/ns/mnt' or return 0; sys(SYS_setns, fileno $f, 0) }, sub { readlink '/proc/self/ns/mnt' };
# Other processes.
try 'trace the first process', sub { sys(SYS_ptrace, 16, 1, 0, 0) }, $live;
try 'seize the first process', sub { sys(SYS_ptrace, 0x4206, 1, 0, 0) }, $live;
try 'read the first process\' memory', sub { reads('/proc/1/mem') || reads('/proc/1/maps') }, sub { reads('/proc/self/maps') };
try 'write the first process\' memory', sub { opens('/proc/1/mem') }, sub { opens('/dev/null') };
try 'process_vm_readv of the first process', sub { my $b = "\0" x 8; my $l = pack 'PQ', $b, 8; my $r = pack 'QQ', 0x400000, 8; sys(SYS_process_vm_readv, 1, $l, 1, $r, 1, 0) }, $live;
try 'list the first process\' descriptors', sub { opendir my $d, '/proc/1/fd' or return 0; grep { /\d/ } readdir $d }, sub { opendir my $d, '/proc/self/fd' };
try 'the first process\' root', sub { opendir my $d, '/proc/1/root/' }, sub { opendir my $d, '/' };
try 'take a descriptor of the first process', sub { my $p = syscall(SYS_pidfd_open, 1, 0); $p >= 0 && sys(SYS_pidfd_getfd, $p, 0, 0) }, sub { sys(SYS_pidfd_open, $$ + 0, 0) };
try 'signal a process outside', sub { kill 0, $host_pid }, sub { kill 0, $$ };
try 'trace a process outside', sub { sys(SYS_ptrace, 0x4206, $host_pid, 0, 0) }, $live, 3;
try 'read the memory of a process outside', sub { reads("/proc/$host_pid/maps") }, sub { reads('/proc/self/maps') };
try 'compare with the first process', sub { syscall(SYS_kcmp, 1, $$ + 0, 1, 0, 0) >= 0 }, $live;
# The kernel.
try 'reboot', sub { sys(SYS_reboot, 0xfee1dead, 672274793, 0, 0) }, $live;
try 'kexec', sub { sys(SYS_kexec_load, 0, 0, 0, 0) }, $live;
try 'load a module', sub { sys(SYS_init_module, $zero, 0, text('')) }, $live;
try 'load a module from a file', sub { open my $f, '<', '/dev/null'; sys(SYS_finit_module, fileno $f, text(''), 0) }, $live;
try 'unload a module', sub { sys(SYS_delete_module, text('none'), 0) }, $live;
try 'bpf', sub { my $a = pack 'LLLLx112', 1, 4, 4, 1; sys(SYS_bpf, 0, $a, 128) }, $live;
try 'perf events', sub { my $a = pack 'LLQx112', 1, 128, 0; sys(SYS_perf_event_open, $a, 0, -1, -1, 8) }, $live;
try 'userfaultfd', sub { sys(SYS_userfaultfd, 0) }, $live;
try 'userfaultfd of its own faults', sub { sys(SYS_userfaultfd, 1) }, $live;
try 'io_uring', sub { my $p = "\0" x 120; sys(SYS_io_uring_setup, 4, $p) }, sub { open my $f, '>', 'plain' };
try 'session keyring', sub { sys(SYS_keyctl, 1, 0) }, $live;
try 'add a key', sub { my $data = 'x'; sys(SYS_add_key, text('user'), text('probe'), $data, 1, -4) }, $live;
try 'swap', sub { sys(SYS_swapon, text('/tmp/none'), 0) }, $live;
try 'process accounting', sub { sys(SYS_acct, 0) }, $live;
try 'set the clock', sub { my $t = pack 'qq', 1, 0; sys(SYS_clock_settime, 0, $t) }, sub { time > 1 };
try 'read the kernel\'s log', sub { my $b = "\0" x 64; sys(SYS_syslog, 3, $b, 64) }, $live;
try 'raw ports', sub { sys(SYS_iopl, 3) }, $live if IS_X86;
try 'modify_ldt', sub { my $b = pack 'LQLL', 0, 0, 0, 0; sys(SYS_modify_ldt, 1, $b, 16) }, $live if IS_X86;
try 'switch off address randomisation', sub { sys(SYS_personality, 0x0040000) }, sub { sys(SYS_personality, 0xffffffff) };
try 'secret memory', sub { my $f = syscall(SYS_memfd_secret, 0); $f >= 0 && sys(SYS_ftruncate, $f, 2 << 20) && sys(SYS_mmap, 0, 2 << 20, 3, 1, $f, 0) }, sub { sys(SYS_mmap, 0, 2 << 20, 3, 0x22, -1, 0) }, 11;
try 'open by handle', sub { my $h = pack 'LlQ', 8, 1, 2; sys(SYS_open_by_handle_at, -100, $h, 0) }, $live;
try 'name to handle', sub { my $h = pack 'Llx128', 128, 0; my $m = pack 'l', 0; sys(SYS_name_to_handle_at, -100, text('/tmp'), $h, $m, 0) }, $live;
try 'fanotify', sub { sys(SYS_fanotify_init, 0x200, 0) }, sub { sys(SYS_inotify_init1, 0) }, 24;
try 'rename the machine', sub { sys(SYS_sethostname, text('probe'), 5) }, sub { my $b = "\0" x 400; sys(SYS_uname, $b) };
try 'move another process\' memory', sub { sys(SYS_move_pages, 1, 0, 0, 0, 0, 0) }, $live;
try 'x32 call numbers', sub { sys(0x40000000 | SYS_getpid) }, sub { sys(SYS_getpid) };
try '32-bit entry', sub { elf("\xb8\x14\x00\x00\x00\xcd\x80\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05") }, sub { elf("\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05") } if IS_X86;
# Sockets.
try 'vsock', sub { socket my $s, 40, SOCK_STREAM, 0 }, sub { socket my $s, PF_UNIX, SOCK_STREAM, 0 };
try 'netlink', sub { socket my $s, 16, SOCK_RAW, 0 }, sub { socketpair my $a, my $b, PF_UNIX, SOCK_STREAM, 0 };
try 'the machine\'s network by netlink', sub { links() > 0 }, $live;
try 'packet sockets', sub { socket my $s, 17, SOCK_RAW, 0 }, $live;
try 'kernel crypto sockets', sub { socket my $s, 38, SOCK_SEQPACKET, 0 }, $live;
try 'raw internet sockets', sub { socket my $s, PF_INET, SOCK_RAW, 1 }, $live;
try 'the machine\'s loopback', sub { socket my $s, PF_INET, SOCK_STREAM, 6 or return 0; connect $s, pack_sockaddr_in($port, inet_aton('127.0.0.1')) }, sub { local_pair('named') };
try 'the machine\'s abstract sockets', sub { socket my $s, PF_UNIX, SOCK_STREAM, 0 or return 0; connect $s, pack_sockaddr_un("\0$abstract") }, sub { local_pair("\0own") };
# Terminals.
try 'type into a terminal', sub { sysopen my $t, '/dev/ptmx', O_RDWR | O_NOCTTY or return 0; my $c = 'x'; ioctl $t, 0x5412, $c }, sub { sysopen my $t, '/dev/ptmx', O_RDWR | O_NOCTTY };
try 'change a line discipline', sub { sysopen my $t, '/dev/ptmx', O_RDWR | O_NOCTTY or return 0; my $n = pack 'l', 2; ioctl $t, 0x5423, $n }, $live;
try 'a controlling terminal', sub { sysopen my $t, '/dev/tty', O_RDWR }, $live;
# Files.
try 'write a program of the system', sub { opens('/usr/bin/env') }, sub { -r '/usr/bin/env' };
try 'make a file in the system', sub { open my $f, '>', '/usr/bin/probe' }, sub { open my $f, '>', '/tmp/probe' };
try 'make a file in the root', sub { open my $f, '>', '/probe' }, sub { open my $f, '>', 'probe' };
try 'overwrite the running program', sub { opens('/proc/self/exe') }, sub { readlink '/proc/self/exe' };
try 'overwrite the first process\' program', sub { opens('/proc/1/exe') }, $live;
try 'make a block device', sub { sys(SYS_mknodat, -100, text('disk'), 0060666, 254 << 8) }, sub { sys(SYS_mknodat, -100, text('fifo'), 0010666, 0) };
try 'make a character device', sub { sys(SYS_mknodat, -100, text('mem'), 0020666, (1 << 8) | 1) && reads('mem') }, $live;
try 'make a block device by the old call', sub { sys(SYS_mknod, text('disk2'), 0060666, 254 << 8) }, sub { sys(SYS_mknod, text('fifo2'), 0010666, 0) } if IS_X86;
try 'a lease on a file', sub { open my $f, '>', 'leased'; close $f; sysopen my $g, 'leased', O_RDONLY or return 0; sys(SYS_fcntl, fileno $g, 1024, 0) }, sub { sysopen my $g, 'plain3', O_RDONLY | O_CREAT or return 0; sys(SYS_fcntl, fileno $g, 1025, 0) };
try 'a watch on a directory', sub { sysopen my $d, '.', O_RDONLY or return 0; sys(SYS_fcntl, fileno $d, 1026, 2) }, sub { opendir my $d, '.' };
try 'a mark on a shared file', sub { sysopen my $f, '/etc/passwd', O_RDONLY or return 0; my $h = pack 'Q', 4; sys(SYS_fcntl, fileno $f, 1036, $h) }, sub { sysopen my $f, '/etc/passwd', O_RDONLY or return 0; my $h = pack 'Q', 0; sys(SYS_fcntl, fileno $f, 1035, $h) };
try 'asynchronous requests', sub { my $c = pack 'Q', 0; sys(SYS_io_setup, 1, $c) }, $live;
try 'raw disks and machines', sub { grep { -e "/dev/$_" } qw(mem kmem port kvm sda vda vsock fuse) }, sub { -c '/dev/null' };
try 'become another by a set-id program', sub { set_id() }, $live;
my ($another) = other_ids(); # an id that is nobody's in a namespace is no id (EINVAL)
try 'change ids', sub { sys(SYS_setuid, $another // 12345) }, sub { sys(SYS_setuid, $> + 0) }, defined $another ? 1 : 22;
try 'a capability by a file', sub { sys(SYS_setxattr, text('plain'), text('security.capability'), pack('LLLLL', 0x02000001, 1, 0, 0, 0), 20, 0) }, sub { open my $f, '>', 'plain2' };
try 'the shadow file', sub { reads('/etc/shadow') }, sub { reads('/etc/passwd') };
try 'a file of the user outside', sub { reads($secret) }, sub { open my $f, '>', 's'; print $f 'x'; close $f; reads('s') };
try 'the same through a link', sub { symlink $secret, 'link'; reads('link') }, sub { symlink 's2', 'link2' };
try 'a file outside that all may read', sub { reads($readable) }, sub { reads('/etc/passwd') };
try 'a file outside by a leaked descriptor', sub { grep { reads("/proc/self/fd/$_$readable") } 3 .. 255 }, sub { reads('/proc/self/fd/0/dev/null') || 1 };
try 'above the root', sub { my @a = stat '/'; my @b = stat '/../..'; !($a[0] == $b[0] && $a[1] == $b[1]) }, $live;
try 'an inherited descriptor', sub { for (3 .. 255) { return 1 if readlink("/proc/$$/fd/$_") && readlink("/proc/$$/fd/$_") !~ /probes.pl|null/ } 0 }, sub { readlink '/proc/self/fd/0' };
try 'run directories', sub { grep { -e } qw(/run/docker.sock /run/dbus /run/user /run/systemd /var/run/docker.sock /sys/kernel) }, sub { -d '/run' };
# What it is counted in and chosen by.
try 'where the machine keeps its groups', sub { open my $f, '<', '/proc/self/cgroup' or return 0; grep { !m{:/$} } <$f> }, sub { reads('/proc/self/cgroup') };
try 'leave its groups', sub { grep { opens($_) } glob '/sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs' }, $live;
try 'begin as no first victim of memory', sub { victim() < 1000 }, sub { defined victim() };
try 'be no first victim of memory any more', sub { open my $f, '+<', '/proc/self/oom_score_adj' or return 0; syswrite $f, '0'; victim() < 1000 }, sub { defined victim() };
# What /proc tells and does.
for (qw(kallsyms keys key-users kcore config.gz timer_list cmdline interrupts)) { my $n = $_; try "/proc/$n", sub { reads("/proc/$n") }, sub { reads('/proc/self/status') } }
try 'core_pattern', sub { opens('/proc/sys/kernel/core_pattern') }, sub { reads('/proc/sys/kernel/core_pattern') };
try 'a setting of memory', sub { opens('/proc/sys/vm/overcommit_memory') }, sub { reads('/proc/sys/vm/overcommit_memory') };
try 'a setting of the network', sub { opens('/proc/sys/net/ipv4/ip_forward') || opens('/proc/sys/net/core/somaxconn') }, $live;
try 'sysrq', sub { sysopen my $f, '/proc/sysrq-trigger', O_WRONLY or return 0; my @s = stat $f; ($s[6] >> 8) != 1 }, $live;
try 'mask race: a masked file by another way', sub { reads('/proc/self/root/proc/kcore') || reads('/proc/self/task/../../kcore') || reads('/proc/thread-self/root/proc/kallsyms') }, sub { reads('/proc/self/root/proc/self/status') };

sub victim { open my $f, '<', '/proc/self/oom_score_adj' or return undef; return 0 + <$f> }
# How many links are not the loopback, as netlink tells: RTM_GETLINK, all of them.
sub links {
  socket my $s, 16, SOCK_RAW, 0 or return 0; send $s, pack('LSSLLCx3', 20, 18, 0x301, 1, 0, 0), 0 or return 0;
  my $found = 0;
  while (defined recv $s, my $all, 65536, 0) {
    while (length $all >= 16) {
      my ($length, $type) = unpack 'LS', $all; return $found if $type != 16 || $length < 32;
      $found++ unless unpack('L', substr $all, 24, 4) & 8;
      $all = substr $all, ($length + 3) & ~3 } }
  return $found }
# Ids besides its own that its user namespace has.
sub other_ids {
  open my $f, '<', '/proc/self/uid_map' or return;
  return grep { $_ != $> } map { my ($first, $outer, $count) = split; $count > 1 ? ($first, $first + 1) : $first } <$f> }
# Whether a program of the system that waits for a password runs as somebody else. That none
# of them was seen to run proves nothing (ENODATA).
sub set_id {
  my $seen;
  for my $program (grep { -u } map { "/usr/bin/$_" } qw(su passwd chsh newgrp)) {
    pipe my $in, my $keep or next;
    my $pid = fork; next unless defined $pid;
    if (!$pid) { open STDIN, '<&', $in; open STDOUT, '>', '/dev/null'; exec $program or syscall(SYS_exit_group, 1) }
    for (1 .. 100) {
      open my $f, '<', "/proc/$pid/status" or last; my $all = join '', <$f>;
      $all =~ /^State:\s+Z/m and last;
      if ($all =~ /^Name:\s+(\S+)/m && $program =~ m{/\Q$1\E$} && $all =~ /^Uid:\s+\d+\s+(\d+)/m) { $seen = 1; kill 9, $pid; return 1 if $1 != $>; last }
      select undef, undef, undef, 0.005 }
    kill 9, $pid; waitpid $pid, 0; last if $seen }
  $why = 61 unless $seen;
  return 0 }
sub local_pair { my ($name) = @_;
  socket my $l, PF_UNIX, SOCK_STREAM, 0 or return 0; bind $l, pack_sockaddr_un($name) or return 0; listen $l, 1 or return 0;
  socket my $c, PF_UNIX, SOCK_STREAM, 0; return connect $c, pack_sockaddr_un($name) }
# A program of its own: a header and the code.
sub elf { my ($code) = @_;
  my $at = 0x400000; my $head = 120;
  my $bytes = "\x7fELF\x02\x01\x01" . "\0" x 9 . pack('SSLQQQLSSSSSS', 2, 62, 1, $at + $head, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    . pack('LLQQQQQQ', 1, 5, 0, $at, $at, $head + length $code, $head + length $code, 4096) . $code;
  my $name = "elf$$"; open my $f, '>', $name or return 0; binmode $f; print $f $bytes; close $f; chmod 0755, $name;
  return system("./$name") == 0 }
