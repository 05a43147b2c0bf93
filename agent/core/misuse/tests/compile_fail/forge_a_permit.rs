use core::marker::PhantomData;
use hermitcrab_core::{Permit, monitor::Spent};

fn forge(spent: Spent) -> Permit<'static> {
    Permit { spent, turn: PhantomData }
}

fn main() {}
