//! How what is built for tests is linked (`build.rs`).

#[cfg(all(debug_assertions, target_os = "linux", target_env = "gnu"))]
#[test]
fn what_is_built_for_tests_is_not_moved_by_its_loader_at_every_start() {
    use std::io::Read as _;

    // In the header's field for the kind of file; what may be loaded anywhere is of the kind of
    // a library.
    const HAS_A_PLACE: u16 = 2;
    for program in [
        env!("CARGO_BIN_EXE_hermitcrab-sandbox-child"),
        "/proc/self/exe",
    ] {
        let mut head = [0_u8; 18];
        std::fs::File::open(program)
            .and_then(|mut file| file.read_exact(&mut head))
            .unwrap();
        assert_eq!(head.first_chunk(), Some(b"\x7fELF"), "{program}");
        let kind = u16::from_ne_bytes([head[16], head[17]]);
        assert_eq!(kind, HAS_A_PLACE, "{program}");
    }
}
