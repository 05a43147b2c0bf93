//! How long a wait for what is due may sleep at a time.

use std::time::Duration;

/// How long to sleep for what is due after so long. The kernel may wake a sleeper a
/// thousandth of its time too late (a two hundredth, if it is nice), so the last
/// part of it is slept for on its own.
pub(super) fn near(left: Duration) -> Duration {
    const CLOSE: Duration = Duration::from_millis(1);
    if left > CLOSE {
        left.saturating_sub(left / 128)
    } else {
        left
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::near;

    #[test]
    fn a_sleep_ends_before_what_is_due_even_if_the_kernel_is_late_by_a_two_hundredth() {
        for ms in [2_u64, 10, 700, 1500, 180_000, 86_400_000] {
            let left = Duration::from_millis(ms);
            let slept = near(left);
            assert!(slept + slept / 200 < left, "{left:?}");
            assert!(slept > left * 9 / 10, "{left:?}");
        }
        for micros in [0, 1, 999, 1000] {
            let left = Duration::from_micros(micros);
            assert_eq!(near(left), left, "the rest is slept for at once");
        }
    }
}
