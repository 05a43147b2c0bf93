//! The steps of building a sandbox, so that a failure names the one that failed.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// One step of starting a confined command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Step {
    /// Starting the small process that builds the sandbox.
    StartSpawner = 1,
    /// Talking to it.
    Talk = 2,
    /// Reading the request in the spawner.
    ReadRequest = 3,
    /// Choosing the user and group ids of the command.
    Identity = 4,
    /// Preparing the views with translated owners (only when started by root).
    StageViews = 5,
    /// Creating the namespaces.
    Namespaces = 6,
    /// Writing the user and group maps of the user namespace.
    MapIds = 7,
    /// Taking the ids of the command.
    TakeIds = 8,
    /// Building the private root.
    PrivateRoot = 9,
    /// Mounting the system directories read-only.
    SystemDirs = 10,
    /// Making the devices.
    Devices = 11,
    /// Mounting a fresh /proc.
    MountProc = 12,
    /// Mounting private temporary directories.
    PrivateDirs = 13,
    /// Placing a view: its place is reserved, nested or not absolute.
    ViewPlace = 14,
    /// Opening the directory of a view, or finding that it is another one by now.
    ViewSource = 15,
    /// Mounting the copy-on-write view.
    MountOverlay = 16,
    /// Binding a read-only directory.
    BindReadOnly = 17,
    /// Entering the private root and letting go of the old one.
    EnterRoot = 18,
    /// Dropping capabilities.
    DropCapabilities = 19,
    /// Setting resource limits.
    ResourceLimits = 20,
    /// Installing the system call filter.
    SystemCallFilter = 21,
    /// Creating the command's process.
    Fork = 22,
    /// Entering the command's working directory.
    WorkingDir = 23,
    /// Running the program itself.
    Exec = 24,
    /// Waiting for the command.
    Wait = 25,
    /// Putting the second line, Landlock, in place.
    Landlock = 26,
    /// Moving the sandbox into its control groups.
    ControlGroups = 27,
    /// Preparing the command's own network.
    Network = 28,
    /// Copying a view, where no overlay can be mounted.
    CopyView = 29,
    /// Covering what rules withhold of a view.
    Withhold = 30,
}

impl Step {
    /// Every step, in the order they happen.
    pub const ALL: [Self; 30] = [
        Self::StartSpawner,
        Self::Talk,
        Self::ReadRequest,
        Self::Identity,
        Self::StageViews,
        Self::Namespaces,
        Self::MapIds,
        Self::TakeIds,
        Self::PrivateRoot,
        Self::SystemDirs,
        Self::Devices,
        Self::MountProc,
        Self::PrivateDirs,
        Self::ViewPlace,
        Self::ViewSource,
        Self::MountOverlay,
        Self::BindReadOnly,
        Self::EnterRoot,
        Self::DropCapabilities,
        Self::ResourceLimits,
        Self::SystemCallFilter,
        Self::Fork,
        Self::WorkingDir,
        Self::Exec,
        Self::Wait,
        Self::Landlock,
        Self::ControlGroups,
        Self::Network,
        Self::CopyView,
        Self::Withhold,
    ];

    /// A stable kebab-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StartSpawner => "start-spawner",
            Self::Talk => "talk",
            Self::ReadRequest => "read-request",
            Self::Identity => "identity",
            Self::StageViews => "stage-views",
            Self::Namespaces => "namespaces",
            Self::MapIds => "map-ids",
            Self::TakeIds => "take-ids",
            Self::PrivateRoot => "private-root",
            Self::SystemDirs => "system-dirs",
            Self::Devices => "devices",
            Self::MountProc => "mount-proc",
            Self::PrivateDirs => "private-dirs",
            Self::ViewPlace => "view-place",
            Self::ViewSource => "view-source",
            Self::MountOverlay => "mount-overlay",
            Self::BindReadOnly => "bind-read-only",
            Self::EnterRoot => "enter-root",
            Self::DropCapabilities => "drop-capabilities",
            Self::ResourceLimits => "resource-limits",
            Self::SystemCallFilter => "system-call-filter",
            Self::Fork => "fork",
            Self::WorkingDir => "working-dir",
            Self::Exec => "exec",
            Self::Wait => "wait",
            Self::Landlock => "landlock",
            Self::ControlGroups => "control-groups",
            Self::Network => "network",
            Self::CopyView => "copy-view",
            Self::Withhold => "withhold",
        }
    }

    /// What a person can do about a failure of this step.
    #[must_use]
    pub const fn help(self) -> &'static str {
        match self {
            Self::StartSpawner => {
                "the file of the program must be readable and executable, and starting one must be allowed; a program of your own calls `spawner::maybe_run_as_child` first in main"
            }
            Self::Talk | Self::ReadRequest | Self::Fork => {
                "the machine may be out of memory or processes, or files may not grow where it was started (`ulimit -f`)"
            }
            Self::Wait => {
                "what waits for a file system that does not answer ends when that does; else the machine may be out of memory"
            }
            Self::Identity => {
                "root has CAP_SYS_ADMIN and another id than the host's root for its commands, or they cannot be confined; start as an ordinary user"
            }
            Self::StageViews => "the kernel must be 5.12 or newer",
            Self::Namespaces => {
                "user namespaces must be allowed: see kernel.unprivileged_userns_clone, user.max_user_namespaces and, on Ubuntu, kernel.apparmor_restrict_unprivileged_userns; after a mere chroot there are none whatever is allowed"
            }
            Self::MapIds | Self::TakeIds => {
                "a profile of AppArmor or of a container may forbid user namespaces to be used"
            }
            Self::PrivateRoot | Self::EnterRoot | Self::PrivateDirs => {
                "the user namespace must be allowed to mount tmpfs and to pivot_root"
            }
            Self::SystemDirs | Self::BindReadOnly => {
                "the directory must exist, and the kernel must be 5.12 or newer"
            }
            Self::Devices => {
                "/dev/null, zero, full, random, urandom and tty must be the real devices"
            }
            Self::MountProc => {
                "a fresh /proc is refused when the machine's own is partly covered, as in most containers; run the container with an unmasked /proc"
            }
            Self::ViewPlace => {
                "a view goes to an absolute place; over what a command is shown in any case, or in another view, only to the directory it shows"
            }
            Self::ViewSource => {
                "the directory was moved, removed or cannot be entered, or its file system does not answer"
            }
            Self::MountOverlay => {
                "overlayfs must be available to user namespaces (kernel 5.11, tmpfs with user xattrs 6.6)"
            }
            Self::CopyView => {
                "no overlay can be mounted here, so what a command may write is copied first: give it a smaller directory or higher ceilings, or allow overlayfs in user namespaces"
            }
            Self::Withhold => {
                "rules of yours withhold so many names of the directory that they cannot be covered, or the kernel refused to: name fewer places, or whole directories"
            }
            Self::DropCapabilities | Self::ResourceLimits | Self::ControlGroups | Self::Network => {
                "this should not fail on a supported kernel"
            }
            Self::Landlock => {
                "the kernel has Landlock and refuses it: too many may stand inside each other"
            }
            Self::SystemCallFilter => "the kernel must have seccomp filters",
            Self::WorkingDir => "the working directory must exist inside the sandbox",
            Self::Exec => "the program must exist inside the sandbox and be executable",
        }
    }

    /// Whether a lack of processes shows here.
    const fn starts_processes(self) -> bool {
        matches!(self, Self::StartSpawner | Self::Fork | Self::Namespaces)
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == code)
    }
}

/// What closes all descriptors but some, as a step names it that failed on it.
pub(crate) const CLOSE_RANGE: &str = "close_range";

/// A step that failed, on what, and why.
#[derive(Clone, Debug)]
pub struct StepError {
    step: Step,
    on: String,
    errno: i32,
}

impl StepError {
    pub(crate) fn new(step: Step, on: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        let cause: io::Error = cause.into();
        let mut on: String = on.into();
        let errno = cause.raw_os_error().unwrap_or(0);
        if errno == 0 {
            // Not from the kernel: the text is all there is.
            if !on.is_empty() {
                on.push_str(": ");
            }
            on.push_str(&cause.to_string());
        }
        Self { step, on, errno }
    }

    pub(crate) fn from_parts(step: Step, on: String, errno: i32) -> Self {
        Self { step, on, errno }
    }

    /// The step that failed.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// The kernel's error number, 0 when the kernel was not asked.
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.errno
    }

    /// What a person can do about it: what lacks is the same whatever was being done.
    #[must_use]
    pub fn help(&self) -> &'static str {
        // Where the kernel was not asked there is no number.
        if self.on == CLOSE_RANGE && self.errno != 0 {
            "close_range must be allowed: a filter of system calls refuses it where it was started, or the kernel is older than 5.9"
        } else if self.errno == Errno::NOSYS.raw_os_error() {
            "a system call it needs is not there: the kernel must be 5.12 or newer, and no filter of system calls may hide it where it was started"
        } else if self.errno == Errno::MFILE.raw_os_error() {
            "more files have to be open at once: see `ulimit -n` where it was started"
        } else if self.errno == Errno::NFILE.raw_os_error() {
            "the machine has too many files open (fs.file-max)"
        } else if self.errno == Errno::AGAIN.raw_os_error() && self.step.starts_processes() {
            "no further process may be started: see `ulimit -u`, and what the container or service it runs in allows"
        } else if self.errno == Errno::FBIG.raw_os_error() && self.step != Step::CopyView {
            // What is too large for a copy has this number as well.
            "files may not become as large as it takes: see `ulimit -f` where it was started"
        } else {
            self.step.help()
        }
    }

    /// What it failed on.
    #[must_use]
    pub fn on(&self) -> &str {
        &self.on
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sandbox step {} failed", self.step.as_str())?;
        if !self.on.is_empty() {
            write!(f, " on `{}`", self.on)?;
        }
        if self.errno != 0 {
            write!(f, ": {}", io::Error::from_raw_os_error(self.errno))?;
        }
        write!(f, "; {}", self.help())
    }
}

impl std::error::Error for StepError {}

/// Names the step on the way out.
pub(crate) trait AtStep<T> {
    fn at(self, step: Step, on: impl Into<String>) -> Result<T, StepError>;
}

impl<T, E: Into<io::Error>> AtStep<T> for Result<T, E> {
    fn at(self, step: Step, on: impl Into<String>) -> Result<T, StepError> {
        self.map_err(|cause| StepError::new(step, on, cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_found_by_its_code_and_has_its_own_name() {
        for step in Step::ALL {
            assert_eq!(Step::from_code(step as u8), Some(step));
        }
        let mut names: Vec<_> = Step::ALL.iter().map(|step| step.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Step::ALL.len());
    }

    #[test]
    fn a_lack_is_called_one_at_any_step() {
        for step in Step::ALL {
            let lack = StepError::new(step, "pipe", Errno::MFILE).to_string();
            assert!(lack.contains("ulimit -n"), "{lack}");
            let too_old = StepError::new(step, "/usr", Errno::NOSYS).to_string();
            assert!(too_old.contains("must be 5.12 or newer"), "{too_old}");
            let too_large = StepError::new(step, "script", Errno::FBIG).to_string();
            let is_told = too_large.contains("ulimit -f");
            assert_eq!(is_told, step != Step::CopyView, "{too_large}");
            let too_many = StepError::new(step, "zygote", Errno::AGAIN).to_string();
            let is_told = too_many.contains("ulimit -u");
            assert_eq!(is_told, step.starts_processes(), "{too_many}");
            let words = io::Error::other("no number");
            let others = [
                StepError::new(step, "pipe", Errno::PERM),
                StepError::new(step, "pipe", words),
            ];
            for other in others.map(|other| other.to_string()) {
                assert!(other.ends_with(step.help()), "{other}");
            }
        }
    }
}
