use hermitcrab_core::Permit;

fn twice(permit: Permit<'_>) {
    permit.spend();
    permit.spend();
}

fn main() {}
