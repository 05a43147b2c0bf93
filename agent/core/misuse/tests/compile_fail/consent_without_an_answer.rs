use hermitcrab_core::{grant::GrantId, monitor::Request};

fn consent(request: Request<'_>, grant: GrantId) -> Request<'_> {
    request.after_consent(grant)
}

fn main() {}
