#!/usr/bin/env bash
# Builds every fuzz target into $OUT the way ClusterFuzzLite and OSS-Fuzz expect:
# TARGET, TARGET_seed_corpus.zip and, where there is one, TARGET.dict.
#
# In their image $OUT, $SRC, $SANITIZER and $FUZZING_ENGINE are set. On a desk or in CI:
#   OUT=/some/dir FUZZ_BUILD="--dev --sanitizer none" .clusterfuzzlite/build.sh
# Needs cargo-fuzz, a nightly compiler and python3. `cargo xtask engine` runs it the way they do.
set -euo pipefail
# Their image runs a copy of this file that lies outside the checkout.
if [[ -d ${SRC:-}/hermitcrab ]]; then cd "$SRC/hermitcrab"; else cd "$(dirname "${BASH_SOURCE[0]}")/.."; fi

: "${OUT:?set OUT to the directory the targets go to}"
# rust-toolchain.toml names a stable compiler; instrumentation needs nightly.
export RUSTUP_TOOLCHAIN="${RUSTUP_TOOLCHAIN:-nightly}"
case "$RUSTUP_TOOLCHAIN" in nightly*) ;; *) RUSTUP_TOOLCHAIN=nightly ;; esac
unset CARGO
case ${FUZZING_ENGINE:-libfuzzer} in
  libfuzzer) ;;
  *)
    echo "the targets are made for libfuzzer, and FUZZING_ENGINE is $FUZZING_ENGINE" >&2
    exit 1
    ;;
esac
# Unless it is told, cargo-fuzz takes the address sanitizer, whatever the engine asked for.
case ${SANITIZER:-address} in
  address) sanitizer=address ;;
  none | coverage) sanitizer=none ;;
  *)
    echo "no target is made with the sanitizer $SANITIZER: address, none or coverage" >&2
    exit 1
    ;;
esac
read -r -a build <<<"${FUZZ_BUILD:---release --debug-assertions --sanitizer $sanitizer}"

profile=release
for word in "${build[@]}"; do
  if [[ $word == --dev ]]; then profile=debug; fi
done
mkdir -p "$OUT"

# A target decides which comparisons its engine is told of (fuzz/src/lib.rs), where the
# compiler can do that.
gate=-Cllvm-args=-sanitizer-coverage-gated-trace-callbacks=1
if rustc --crate-type lib --emit metadata -o "$OUT/.tried" "$gate" - </dev/null 2>/dev/null; then
  RUSTFLAGS="${RUSTFLAGS:-} $gate"
fi
rm -f "$OUT/.tried"
# What the standard library checks of unsafe code, a sanitizer sees as well. Without one, a run
# is about speed: overflows and assertions stay on, these go.
if [[ $profile == release && ${build[*]} == *"--sanitizer none"* ]]; then
  RUSTFLAGS="${RUSTFLAGS:-} -Zub-checks=no"
fi
export RUSTFLAGS="${RUSTFLAGS:-}"
cargo fuzz build "${build[@]}"

host=$(rustc -vV | sed -n 's/^host: //p')
for source in fuzz/fuzz_targets/*.rs; do
  target=$(basename "$source" .rs)
  cp "fuzz/target/$host/$profile/$target" "$OUT/$target"
  python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" "fuzz/seeds/$target"/*
  if [[ -e fuzz/dictionaries/$target.dict ]]; then
    cp "fuzz/dictionaries/$target.dict" "$OUT/$target.dict"
  fi
done
printf '%s targets in %s\n' "$(find fuzz/fuzz_targets -name '*.rs' | wc -l)" "$OUT"
