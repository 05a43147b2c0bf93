//! What a command cannot do, tried from inside, with a twin that it can.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;

use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::spawn::{EXCHANGE_DIR, Ending, View, ViewMode, refused_calls};
use support::arranged::{Run, UNSHARE, twice};
use support::numbers::numbered;
use support::{Workspace, run, text};

/// The lines a script prints.
fn lines(script: &str) -> Vec<String> {
    let finished = Workspace::new().run(script);
    text(&finished).lines().map(str::to_owned).collect()
}

#[test]
fn every_call_of_the_table_is_refused_as_the_table_says() {
    // Each call is made in a process of its own, with the arguments for which
    // the table refuses it.
    const NEW_USER: &str = "0x10000000";
    let mut script = String::from("$| = 1;\n");
    let mut expected = Vec::new();
    let mut ioctls = ["0x5412", "0x541C", "0x541D", "0x5423"].into_iter();
    let mut fcntls = ["1024", "1026", "1036", "1038"].into_iter();
    let mut prctls = ["35", "57", "33"].into_iter();
    let mut devices = ["0020666", "0060666"].into_iter().cycle();
    for call in refused_calls() {
        let arguments = match call.name {
            "unshare" | "clone" => format!("{NEW_USER} | 17, 0, 0, 0, 0"),
            "socket" | "socketpair" => "2, 1, 0, 0".to_owned(),
            "ioctl" => format!("0, {}, 0", ioctls.next().unwrap()),
            "fcntl" => format!("0, {}, 0", fcntls.next().unwrap()),
            "prctl" => format!("{}, 0, 0, 0, 0", prctls.next().unwrap()),
            "mknod" => format!("0, {}, 0", devices.next().unwrap()),
            "mknodat" => format!("0, 0, {}, 0", devices.next().unwrap()),
            "personality" => "8".to_owned(),
            // Nobody's here: a workspace has another owner.
            "setuid" | "setreuid" | "setresuid" | "setfsuid" | "setgid" | "setregid"
            | "setresgid" | "setfsgid" => "12345, 12345, 12345".to_owned(),
            _ => "0, 0, 0, 0, 0, 0".to_owned(),
        };
        writeln!(
            script,
            "try('{}', sub {{ syscall({}, {arguments}) }});",
            call.name, call.number
        )
        .unwrap();
        expected.push(format!(
            "{} {}",
            call.name,
            match call.action {
                "kill" => "signal 31",
                "refuse" => "errno 1",
                "absent" => "errno 38",
                other => panic!("{other}"),
            }
        ));
    }
    script.push_str(
        "sub try { my ($name, $call) = @_; my $pid = fork;
           if (!$pid) { my $result = $call->(); print \"$name \", $result == -1 ? \"errno \" . ($!+0) : 'done', \"\\n\"; exit 0 }
           waitpid $pid, 0; print \"$name signal \", $? & 127, \"\\n\" if $? & 127 }\n",
    );
    let workspace = Workspace::new();
    workspace.file("try.pl", &script);
    let finished = workspace.run("perl try.pl 2>&1");
    if finished.ending == Ending::Exited(127) {
        println!("SKIPPED: no perl to make system calls with");
        return;
    }
    let found: Vec<String> = text(&finished).lines().map(str::to_owned).collect();
    assert_eq!(found, expected);
}

#[test]
fn calls_beside_the_refused_ones_work() {
    let found = lines(
        "perl -e 'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0) or die; print qq(local socket\\n)' \
         && (true & wait && echo fork) && (echo a | cat | tr a b) && python3 -c 'print(1)' 2>/dev/null || true",
    );
    if found.is_empty() {
        println!("SKIPPED: no perl to make system calls with");
        return;
    }
    assert_eq!(found[..3], ["local socket", "fork", "b"]);
}

#[test]
fn call_numbers_of_the_other_abi_and_of_newer_kernels_are_absent() {
    let finished = Workspace::new().run(&numbered(
        "exec perl -e 'for (0x40000000 | SYS_getpid, 470, SYS_getpid) { print syscall($_) == -1 ? $!+0 : q(ok), qq(\\n) }'",
    ));
    if finished.ending == Ending::Exited(127) {
        println!("SKIPPED: no perl to make system calls with");
        return;
    }
    assert_eq!(text(&finished), "38\n38\nok\n");
}

#[test]
fn the_network_of_the_machine_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = format!("hermitcrab-test-{}", std::process::id());
    let abstract_listener = std::os::unix::net::UnixListener::bind_addr(
        &std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap(),
    )
    .unwrap();
    abstract_listener.set_nonblocking(true).unwrap();
    let found = lines(&format!(
        "(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo connected
         perl -e 'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); \
                  print qq(connected\\n) if connect(S, pack_sockaddr_un(qq(\\0{name})))'
         tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"
    ));
    assert_eq!(found, ["lo"]);
    assert!(listener.accept().is_err());
    assert!(abstract_listener.accept().is_err());
}

#[test]
fn the_machine_outside_the_views_is_not_there() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("secret"), "secret").unwrap();
    let workspace = Workspace::new();
    let finished = workspace.run(&format!(
        "ls -d /home/* /root /sys/* /var/lib /srv /boot /mnt {0} {0}/secret 2>/dev/null; ls /var; cat /etc/shadow 2>/dev/null; echo end",
        home.path().display()
    ));
    let shown = text(&finished);
    // The way to the workspace itself is there, and empty otherwise.
    let found: Vec<_> = shown
        .lines()
        .filter(|line| !workspace.path().starts_with(line))
        .collect();
    assert_eq!(found, ["tmp", "end"]);
}

#[test]
fn what_programs_are_set_up_with_is_there_and_what_services_are_is_not() {
    let there = std::fs::read_dir("/etc").unwrap();
    let names: Vec<String> = there
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .collect();
    let shown = lines("ls -A /etc");
    for name in names {
        let is_set_up = name.starts_with("java-") || ["maven", "manpath.config"].contains(&&*name);
        let is_others = [
            "shadow",
            "sudoers",
            "ssh",
            "machine-id",
            "hostname",
            "fstab",
            "crontab",
            "apt",
            "environment",
        ];
        if is_set_up {
            assert!(shown.contains(&name), "{name}");
        }
        if is_others.contains(&&*name) {
            assert!(!shown.contains(&name), "{name}");
        }
    }
    assert!(shown.iter().any(|name| name == "passwd"));
}

/// Where packages put files that others put passwords and keys beside.
#[test]
fn nothing_secret_is_shown_of_what_programs_are_set_up_with() {
    let name = "isolation::nothing_secret_is_shown_of_what_programs_are_set_up_with";
    let arrange = "umask 022; mkdir own && mount -t tmpfs none own && mkdir own/up own/work && \
        mount -t overlay -o lowerdir=/etc,upperdir=own/up,workdir=own/work none /etc || exit 77; \
        for file in php/8.2/fpm/pool.d/www.conf php/8.2/cli/php.ini ssl/private/server.pem ssl/mine.key \
            ssl/certs/some.key ssl/certs/some.pem maven/settings.xml maven/m2.conf pki/tls/private/a pki/tls/b \
            java-99/security/jmxremote.password java-99/security/java.security chromium/policies/managed/a.json; do \
          mkdir -p /etc/$(dirname $file); echo canary > /etc/$file; \
        done; \
        for number in $(seq 100); do echo certificate > /etc/ssl/certs/of-many-$number; done; \
        echo 'canary export http_proxy=http://ada:pw@proxy:3128' > /etc/profile; \
        chmod -R a+rX /etc/php /etc/ssl /etc/maven /etc/pki /etc/java-99 /etc/chromium";
    let Some(Run::Inner) = twice(name, &UNSHARE, arrange, "") else {
        return;
    };
    let shown = lines("grep -rls canary /etc | sort; ls /etc/ssl/certs | grep -c of-many");
    assert_eq!(
        shown,
        [
            "/etc/java-99/security/java.security",
            "/etc/maven/m2.conf",
            "/etc/php/8.2/cli/php.ini",
            "/etc/pki/tls/b",
            "/etc/ssl/certs/some.pem",
            "100",
        ]
    );
}

#[test]
fn the_system_cannot_be_written_but_temporary_directories_can() {
    let found = lines(
        "for place in / /usr /usr/bin /etc /proc/sys/kernel /dev /run /var; do
           { echo x > $place/probe; } 2>/dev/null && echo $place
         done
         { echo x > /proc/sys/kernel/core_pattern; } 2>/dev/null && echo core_pattern
         { echo x > /proc/sys/net/ipv4/ip_forward; } 2>/dev/null && echo ip_forward
         mknod /tmp/disk b 254 0 2>/dev/null && echo device
         for place in /tmp /dev/shm /var/tmp . ; do
           echo x > $place/probe && echo writable $place
         done",
    );
    assert_eq!(
        found,
        [
            "writable /tmp",
            "writable /dev/shm",
            "writable /var/tmp",
            "writable ."
        ]
    );
}

#[test]
fn a_command_is_nobody_special_and_cannot_become_it() {
    let found = lines(
        "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status | tr '\\t' ' '
         while read -r inner outer count; do [ $outer -eq 0 ] || echo no host root; done < /proc/self/uid_map
         ulimit -c
         unshare -Ur true 2>/dev/null && echo new user namespace
         su -c true 2>/dev/null && echo su
         echo end",
    );
    assert_eq!(
        found,
        [
            "CapInh: 0000000000000000",
            "CapPrm: 0000000000000000",
            "CapEff: 0000000000000000",
            "CapBnd: 0000000000000000",
            "CapAmb: 0000000000000000",
            "NoNewPrivs: 1",
            "Seccomp: 2",
            "no host root",
            "0",
            "end",
        ]
    );
}

#[test]
fn other_processes_do_not_exist_and_the_first_one_is_closed() {
    // A number that could also be one of the command's own proves nothing.
    let outside = std::process::id().max(100);
    let found = lines(&format!(
        "kill -0 {outside} 2>/dev/null && echo outside
         set -- /proc/[0-9]*; echo $#
         cat /proc/1/environ /proc/1/mem /proc/1/maps 2>/dev/null
         ls /proc/1/root/ /proc/1/fd 2>/dev/null
         kill -9 1 2>/dev/null; kill -STOP 1 2>/dev/null; echo alive"
    ));
    // The first process and the shell, which counts without starting anything.
    assert_eq!(found, ["2", "alive"]);
}

#[test]
fn only_what_a_command_sees_is_mounted_in_its_namespace() {
    let workspace = Workspace::new();
    let finished = workspace.run("cut -d' ' -f 4,5 /proc/self/mountinfo");
    let mounts: Vec<String> = text(&finished).lines().map(str::to_owned).collect();
    let view = workspace.path().display().to_string();
    let known = |place: &str| {
        let system = ["/usr", "/etc", "/dev", "/proc"];
        let own = ["/", "/tmp", "/dev/shm", EXCHANGE_DIR, &view];
        let is_system = |dir: &&str| place == *dir || place.starts_with(&format!("{dir}/"));
        own.contains(&place) || system.iter().any(is_system)
            // Where a distribution has no links for these.
            || ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"].contains(&place)
    };
    for mount in &mounts {
        let (root, place) = mount.split_once(' ').unwrap();
        assert!(known(place), "{mount}");
        // The directory itself is nowhere, only the layers over it.
        assert!(!root.contains(&view), "{mount}");
    }
    assert!(mounts.len() > 10, "{mounts:?}");
    let places = mounts.iter().map(|mount| mount.split_once(' ').unwrap().1);
    // The machine's /proc does not lie below the command's.
    assert_eq!(places.filter(|place| *place == "/proc").count(), 1);
}

#[test]
fn a_command_is_the_first_victim_when_memory_runs_out_and_its_makers_are_not() {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let workspace = Workspace::new();
    assert_eq!(
        text(&workspace.run("cat /proc/self/oom_score_adj /proc/1/oom_score_adj")),
        "1000\n1000\n"
    );
    // What waits for a command has been made already, and is a victim as well.
    let is_maker = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let ids = status.lines().find(|line| line.starts_with("NSpid:"));
        ids.is_some_and(|ids| ids.split_ascii_whitespace().count() == 2)
    };
    let makers: Vec<u32> = support::sandbox()
        .helpers()
        .into_iter()
        .filter(is_maker)
        .collect();
    assert!(makers.len() >= 2, "{makers:?}");
    for id in makers {
        let of_it = std::path::PathBuf::from(format!("/proc/{id}"));
        match std::fs::read_to_string(of_it.join("oom_score_adj")) {
            Ok(adjusted) => assert_eq!(adjusted, own, "{id}"),
            // Who helps to make a zygote ends.
            Err(error) => assert!(!of_it.exists(), "{error}"),
        }
    }
}

/// What is counted for a user, and not for a process or a group, counts for whoever
/// started the agent as well: what a command can have of it is a part.
#[test]
fn a_command_uses_up_nothing_that_its_user_has_only_so_much_of() {
    let found = lines(&numbered(
        "perl -e '
           sub most { my ($call) = @_; my $n = 0; $n++ while $n < 70000 && $call->() >= 0; $n }
           my $info = pack(q(l3 x116), 40, 0, -1); my $blocked = pack q(Q), 1 << 39;
           syscall(SYS_rt_sigprocmask, 0, $blocked, 0, 8);
           print most(sub { syscall(SYS_inotify_init1, 0) }), qq( watchers\n);
           print most(sub { syscall(SYS_rt_sigqueueinfo, $$ + 0, 40, $info) }), qq( signals\n);
           my @t; print most(sub { open $t[@t], q(+<), q(/dev/ptmx) or return -1; 0 }), qq( terminals\n)'
         grep -E 'core file|locked memory|msgqueue' /proc/self/limits | tr -s ' '",
    ));
    if found.len() < 6 {
        println!("SKIPPED: no perl to make system calls with");
        return;
    }
    let most = |place: usize| {
        let number = found[place].split(' ').next().unwrap();
        number.parse::<u32>().unwrap()
    };
    // Some there are, or the twin of the probe would not work.
    assert!((1..=64).contains(&most(0)), "{found:?}");
    assert!((100..=512).contains(&most(1)), "{found:?}");
    assert!((1..=64).contains(&most(2)), "{found:?}");
    assert_eq!(
        found[3..],
        [
            "Max core file size 1 1 bytes ",
            "Max locked memory 1048576 1048576 bytes ",
            "Max msgqueue size 196608 196608 bytes ",
        ]
    );
}

#[test]
fn nothing_of_the_caller_is_inherited() {
    let file = std::fs::File::open("/dev/null").unwrap();
    // A descriptor that survives exec, as a careless library would open it.
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let found = lines("ls /proc/self/fd; env | grep -vE '^(PATH|PWD|SHLVL|_|OLDPWD)='; tty; umask");
    // 3 is the directory ls reads.
    assert_eq!(found, ["0", "1", "2", "3", "not a tty", "0022"]);
}

#[test]
fn what_tells_about_the_machine_is_masked() {
    let found = lines(
        "for name in kallsyms keys kcore config.gz timer_list interrupts; do
           head -c 1 /proc/$name 2>/dev/null | wc -c
         done | sort -u
         cut -d: -f1 /etc/passwd | sort | head -c 200; ls /proc/acpi 2>/dev/null",
    );
    assert_eq!(found[0], "0");
    // Root, nobody and the command's own; the machine's other accounts are not shown.
    assert!(found.len() - 1 <= 3, "{found:?}");
}

#[test]
fn nothing_stays_from_one_command_to_the_next() {
    let workspace = Workspace::new();
    let first = workspace.run(
        "echo x > /tmp/left; echo x > /dev/shm/left; echo x > left; (setsid sleep 1000 &); echo ok",
    );
    assert_eq!(text(&first), "ok\n");
    let second = workspace
        .run("ls /tmp/left /dev/shm 2>/dev/null | grep left; ls; set -- /proc/[0-9]*; echo $#");
    // The first process and the shell, which counts without starting anything.
    assert_eq!(text(&second), "2\n");
}

#[test]
fn a_read_only_view_can_be_read_and_not_written() {
    let workspace = Workspace::new();
    let tools = Workspace::new();
    tools.file("tool", "#!/bin/sh\necho tool\n");
    std::fs::set_permissions(
        tools.path().join("tool"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let mut command = workspace.command("/opt/tools/tool; { echo x > /opt/tools/new; } 2>/dev/null; rm -f /opt/tools/tool 2>/dev/null; /opt/tools/tool");
    command.views.push(View {
        dir: &tools.cap,
        at: "/opt/tools".into(),
        mode: ViewMode::ReadOnly,
        withheld: Withheld::default(),
    });
    let finished = run(&command).unwrap();
    assert_eq!(text(&finished), "tool\ntool\n");
    assert_eq!(finished.changes.len(), 1);
    assert!(!tools.path().join("new").exists());
}

#[test]
fn what_a_view_shows_leads_to_nobody_outside() {
    let workspace = Workspace::new();
    let shown = Workspace::new();
    let mut listeners = Vec::new();
    for dir in [workspace.path(), shown.path()] {
        let place = dir.join("socket");
        listeners.push(std::os::unix::net::UnixListener::bind(&place).unwrap());
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&place, mode).unwrap();
        std::fs::write(dir.join("locked"), "x").unwrap();
    }
    let script = "exec perl -MSocket -MFcntl=:flock -e '
        $| = 1; my $own = q(/tmp/own); socket my $l, PF_UNIX, SOCK_STREAM, 0;
        bind $l, pack_sockaddr_un($own); listen $l, 1;
        for ($own, @ARGV) {
          socket my $s, PF_UNIX, SOCK_STREAM, 0; my $at = -d $_ ? qq($_/socket) : $_;
          print connect($s, pack_sockaddr_un($at)) ? qq(connected\n) : qq(refused\n) }
        my @f = map { open my $f, q(<), qq($_/locked); flock $f, LOCK_EX | LOCK_NB or print qq(no lock\n); $f } @ARGV;
        print qq(held\n); <STDIN>' \"$PWD\" /srv/shown";
    let script = script.replace("\\\"", "\"");
    let mut command = workspace.command(&script);
    command.views.push(View {
        dir: &shown.cap,
        at: "/srv/shown".into(),
        mode: ViewMode::ReadOnly,
        withheld: Withheld::default(),
    });
    let mut running = support::start(&command);
    let mut said = Vec::new();
    let mut over = false;
    while !over && !said.ends_with(b"held\n") {
        let patience = std::time::Duration::from_secs(20);
        over = running
            .attend(patience, |_, bytes| said.extend_from_slice(bytes))
            .unwrap();
    }
    // Locks of its own it has; outside, nobody holds one.
    for dir in [workspace.path(), shown.path()] {
        let file = std::fs::File::open(dir.join("locked")).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    }
    drop(running.take_stdin());
    let finished = running.wait().unwrap();
    if finished.ending == Ending::Exited(127) {
        println!("SKIPPED: no perl to connect with");
        return;
    }
    let said = String::from_utf8(said).unwrap();
    assert_eq!(said, "connected\nrefused\nrefused\nheld\n");
    for listener in listeners {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
    }
}

#[test]
fn signals_that_whoever_started_the_agent_blocks_or_ignores_are_the_commands_again() {
    let name = "isolation::signals_that_whoever_started_the_agent_blocks_or_ignores_are_the_commands_again";
    let starter = [
        "env",
        "--ignore-signal=USR1,PIPE,TERM,INT",
        "--block-signal=USR2,WINCH",
    ];
    let Some(Run::Inner) = twice(name, &starter, "umask 077", "") else {
        return;
    };
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    assert!(!own.contains("SigIgn:\t0000000000000000"), "{own}");
    let shown =
        lines("grep -E '^Sig(Blk|Ign)' /proc/self/status; umask; stat -c %a / /etc /etc/hosts");
    assert_eq!(shown[0], "SigBlk:\t0000000000000000");
    // The two that belong to the C library cannot be changed through it.
    let ignored = shown[1].rsplit('\t').next().unwrap();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    assert_eq!(ignored & !(0b11 << 31), 0, "{shown:?}");
    // The umask is the starter's wish for what is made, and not for what the root is.
    assert_eq!(shown[2..], ["0077", "755", "755", "644"]);
}
