use hermitcrab_core::{Permit, grant::GrantId, monitor::Request};

fn mint(request: &Request<'_>, grants: &[GrantId]) -> Vec<Permit<'static>> {
    hermitcrab_core::monitor::permit::mint(request, grants)
}

fn main() {}
