use hermitcrab_core::{Permit, action::Action, approval::CallId, grant::{AgentId, GrantId}};

fn mint(by: (CallId, AgentId), actions: Vec<Action>, grants: &[GrantId]) -> Vec<Permit<'static>> {
    hermitcrab_core::monitor::permit::mint(by, actions, grants)
}

fn main() {}
