use hermitcrab_core::grant::{GrantId, Revoker};

fn forge(grant: GrantId) -> Revoker {
    Revoker { grant }
}

fn main() {}
