use hermitcrab_core::grant::Revoker;

fn copy(revoker: &Revoker) -> Revoker {
    revoker.clone()
}

fn main() {}
