#!/usr/bin/env bash
# Builds all targets as OSS-Fuzz takes them, in $OUT: binaries, NAME_seed_corpus.zip and NAME.dict. Its build.sh for
# this repository is this file; its image for Rust brings cargo-fuzz and a nightly toolchain. Elsewhere:
#
#     OUT=FOLDER FUZZ_OPTIONS="--sanitizer none" fuzz/oss-fuzz.sh      # cargo-fuzz and the stable toolchain
#
# FUZZ_OPTIONS are options of `cargo fuzz build`.
set -euo pipefail
: "${OUT:?"set it to the folder that takes the targets"}"
mkdir -p "$OUT"
OUT=$(realpath "$OUT")
cd "$(dirname "$0")/.."
read -ra options <<< "${FUZZ_OPTIONS-}"
# Inputs to begin with and dictionaries are made of the test files.
cargo run --release --locked -p fuzz -- --corpus fuzz/corpus --files filetests
host=$(rustc -vV | sed -n 's/^host: //p')
cargo fuzz build --release --debug-assertions "${options[@]}"
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    cp "${CARGO_TARGET_DIR:-fuzz/target}/$host/release/$target" "$OUT/"
    seeds=$(mktemp -d)
    [ -f "fuzz/seeds/$target.tar.gz" ] && tar -xzf "fuzz/seeds/$target.tar.gz" -C "$seeds"
    for folder in "fuzz/corpus/$target" "fuzz/seeds/$target"; do
        [ -d "$folder" ] && cp -r "$folder/." "$seeds"
    done
    rm -f "$OUT/${target}_seed_corpus.zip"
    [ -n "$(ls "$seeds")" ] && (cd "$seeds" && zip -qr "$OUT/${target}_seed_corpus.zip" .)
    rm -r "$seeds"
    words=$target
    [ "$target" = exec ] && words=assembly
    [ -f "fuzz/corpus/$words.dict" ] && cp "fuzz/corpus/$words.dict" "$OUT/$target.dict"
done
ls "$OUT"
