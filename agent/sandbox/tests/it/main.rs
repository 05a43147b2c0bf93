//! What the sandbox and the directory capability do: one test binary, one file for each subject.

mod changes_in_full;
mod changeset;
mod clauses;
mod copied_views;
mod delegated;
mod dircap;
mod dircap_differential;
mod dircap_race;
mod escape;
#[cfg(feature = "planted-faults")]
mod faults;
mod fence;
mod finishing;
mod groups;
mod hanging;
mod interpreter;
mod isolation;
mod journal;
mod left_behind;
mod lifecycle;
mod nested_mounts;
mod network;
mod on_disk;
mod owners;
mod parents;
mod profile;
mod refusals;
mod refused_by_kernel;
mod spawner_death;
mod support;
mod terminal;
mod told;
mod underway;
mod warm;
mod withheld;
mod zygotes;
