use hermitcrab_core::Permit;

fn twice(permit: &Permit<'_>) {
    permit.clone().spend();
    let both: [Permit<'_>; 2] = [*permit, *permit];
    drop(both);
}

fn main() {}
