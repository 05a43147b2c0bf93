use hermitcrab_core::session::{Event, Session};
use hermitcrab_core::time::Instant;

fn slip_in(session: &mut Session, call: Event) {
    let effects = session.step(Instant::BOOT, call);
    session.step(Instant::BOOT, Event::End).into_parts();
    drop(effects);
}

fn main() {}
