//! ^Z. A shell that started the program suspends it and has it go on, which needs nothing here:
//! the editor puts the terminal in order. Where no shell did, the kernel ignores the signal, and
//! that is said.

use super::editor::Source;
use crate::ambient;

/// What ^Z says where no shell could have the program go on.
const NOBODYS_JOB: &str = "\r\u{1b}[K^Z suspends nothing here: no shell at this terminal started the program, so none would have it go on";

/// Has it said where ^Z does nothing.
pub(super) fn tell_where_it_is_nobodys(source: &Source) {
    if ambient::is_nobodys_job() {
        let above = source.above();
        // Without it ^Z does nothing, and says nothing.
        let _ = ambient::on_suspend(move || {
            above.say(NOBODYS_JOB.to_owned());
        });
    }
}
