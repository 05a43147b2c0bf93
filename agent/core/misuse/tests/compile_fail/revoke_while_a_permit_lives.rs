use hermitcrab_core::Permit;
use hermitcrab_core::grant::GrantId;
use hermitcrab_core::session::{Event, Session};
use hermitcrab_core::time::Instant;

fn slip_in(session: &mut Session, call: Event, grant: GrantId) {
    let permits: Vec<Permit<'_>> = session.step(Instant::BOOT, call).into_parts().permits;
    session.step(Instant::BOOT, Event::Revoke(grant)).into_parts();
    for permit in permits {
        permit.spend();
    }
}

fn main() {}
