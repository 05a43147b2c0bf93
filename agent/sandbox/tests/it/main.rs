//! What the sandbox and the directory capability do: one test binary, one file for each subject.

mod changes_in_full;
mod changeset;
mod copied_views;
mod delegated;
mod dircap;
mod dircap_differential;
mod dircap_race;
mod escape;
#[cfg(feature = "planted-faults")]
mod faults;
mod finishing;
mod groups;
mod hanging;
mod interpreter;
mod isolation;
mod journal;
mod left_behind;
mod lifecycle;
mod network;
mod profile;
mod refusals;
mod refused_by_kernel;
mod spawner_death;
mod support;
mod warm;
mod zygotes;
