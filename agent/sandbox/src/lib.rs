//! Linux confinement and the directory capability.
