//! What is asked of the spawner for one command.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use hermitcrab_core::fault::{self, Fault};

use super::room::IsWanted;
use crate::layers::Prefer;
use crate::mechanism::Mechanism;
use crate::spawn::pool::Pool;
use crate::spawn::spec::{
    FaultSpec, LimitSpec, NetSpec, PlaceFaults, Places, StoreSpec, Surroundings, ViewSpec,
};
use crate::spawn::{Command, ViewMode};
use crate::step::{AtStep, Step, StepError};
use crate::whose::Whose;

/// Everything but the command itself: sandboxes for the same are alike. And why
/// its layers cannot lie on disk, if they may, and whether they are to in any case.
pub(super) fn surroundings(
    command: &Command<'_>,
    pool: &Pool,
) -> Result<(Surroundings, Option<(String, IsWanted)>), StepError> {
    let mut views = Vec::new();
    for view in &command.views {
        let fd = view.dir.as_fd();
        let on = view.at.display().to_string();
        let whose = Whose::of(fd).at(Step::ViewSource, on.clone())?;
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
        let source = std::fs::read_link(&link).at(Step::ViewSource, on)?;
        views.push(ViewSpec {
            source: source.as_os_str().as_bytes().to_vec(),
            whose,
            at: view.at.as_os_str().as_bytes().to_vec(),
            copy_on_write: view.mode == ViewMode::CopyOnWrite,
            read_only: view.dir.is_read_only(),
            withheld: view.withheld.clone(),
        });
    }
    let limits = &command.limits;
    let has_layers = views.iter().any(|view| view.copy_on_write);
    let (store, not_on_disk) = match pool.layers().filter(|_| has_layers) {
        None => (None, None),
        Some((store, prefer)) => {
            let is_wanted = *prefer == Prefer::Disk;
            let seen = views.iter().map(|view| (&*view.source, &view.whose));
            match store.place(seen) {
                Ok((source, whose)) => {
                    let store = StoreSpec {
                        source,
                        whose,
                        always: is_wanted,
                    };
                    (Some(store), None)
                }
                Err(why) => (None, Some((why, is_wanted))),
            }
        }
    };
    let surroundings = Surroundings {
        places: Places {
            views,
            store,
            private_dirs: command
                .private_dirs
                .iter()
                .map(|dir| dir.as_os_str().as_bytes().to_vec())
                .collect(),
            shown: pool.shown().to_vec(),
            faults: PlaceFaults {
                home: fault::is(Fault::SandboxSeesHome),
                open_root: fault::is(Fault::SandboxRootIsOpen),
                shared_tmp: fault::is(Fault::SandboxSharesTemporary),
                all_watches: pool.without().contains(Mechanism::SharedWatches),
                machine_root: pool.without().contains(Mechanism::PrivateRoot),
                open_descriptors: pool.without().contains(Mechanism::ClosedDescriptors),
            },
        },
        limits: LimitSpec {
            processes: limits.processes_max,
            open_files: limits.open_files_max,
            file_bytes: limits.file_bytes_max,
            data_bytes: limits.data_bytes_max.unwrap_or(0),
            view_bytes: limits.view_bytes_max,
            view_inodes: limits.view_inodes_max,
            tmp_bytes: limits.tmp_bytes_max,
            memory_bytes: limits.memory_bytes_max,
            cpu_percent: limits.cpu_percent_max,
        },
        network: NetSpec {
            loopback: command.network.has_loopback(),
            common: command.network.common(),
            proxy: command.network.has_peers(),
        },
        faults: FaultSpec {
            network: fault::is(Fault::SandboxHasNetwork),
            orphans: fault::is(Fault::TimeoutLeavesOrphans),
            others_views: fault::is(Fault::SandboxShowsOthersViews),
        },
        recycled: pool.size().recycled,
        copies: pool.copies(),
        without: pool.without(),
    };
    Ok((surroundings, not_on_disk))
}
