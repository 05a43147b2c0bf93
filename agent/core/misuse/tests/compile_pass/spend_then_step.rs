// The same shape as the programs that must not compile, done right: these
// programs fail for their fault and not for a slip in the set-up.
use hermitcrab_core::grant::GrantId;
use hermitcrab_core::session::{Event, Session};
use hermitcrab_core::time::Instant;

fn in_turn(session: &mut Session, call: Event, grant: GrantId) {
    for permit in session.step(Instant::BOOT, call).into_parts().permits {
        permit.spend();
    }
    session.step(Instant::BOOT, Event::Revoke(grant)).into_parts();
}

fn main() {}
