use hermitcrab_core::Permit;
use hermitcrab_core::session::{Event, Session};
use hermitcrab_core::time::Instant;

fn keep(mut session: Session, call: Event) -> Vec<Permit<'static>> {
    session.step(Instant::BOOT, call).into_parts().permits
}

fn main() {}
