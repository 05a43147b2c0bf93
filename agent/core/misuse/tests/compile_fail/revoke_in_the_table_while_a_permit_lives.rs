use hermitcrab_core::cap::CapTable;
use hermitcrab_core::grant::Revoker;
use hermitcrab_core::monitor::{Decision, Request, authorize};
use hermitcrab_core::rules::Rules;
use hermitcrab_core::time::Instant;

fn slip_in(table: &mut CapTable, rules: &Rules, request: &Request<'_>, revoker: &Revoker) {
    if let Decision::Permit(permits) = authorize(table, rules, request, Instant::BOOT) {
        table.revoke(revoker);
        for permit in permits {
            permit.spend();
        }
    }
}

fn main() {}
