#!/bin/sh
# Builds internal/plugins/wasm/testdata/*.wasm (the templates in Rust and AssemblyScript, and the hostile module) and the plugin tricks in
# test/pluginexamples/testdata.
# CARGO names a cargo with the target wasm32-unknown-unknown.
set -eu
to=$(pwd)/internal/plugins/wasm/testdata
tricks=$(pwd)/test/pluginexamples/testdata/tricks
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go run ./cmd/condense plugin new tidy --lang assemblyscript -o "$work/as"
go run ./cmd/condense plugin new tidy --lang rust-wasm -o "$work/rust"
(
	cd "$work/as"
	npm install --ignore-scripts --no-audit --no-fund
	npm run build
	cp condense-tidy.wasm "$to/tidy-assemblyscript.wasm"
	cp "$to/hostile.ts" assembly/hostile.ts
	npx asc assembly/hostile.ts -o "$to/hostile.wasm" -O3 --runtime stub --use abort=assembly/condense/abort
	cp "$tricks.ts" assembly/index.ts
	npm run build
	cp condense-tidy.wasm "$tricks-assemblyscript.wasm"
)
(
	cd "$work/rust"
	${CARGO:-cargo} build --release --target wasm32-unknown-unknown
	cp target/wasm32-unknown-unknown/release/condense_tidy.wasm "$to/tidy-rust.wasm"
	cp "$tricks.rs" src/lib.rs
	CARGO_PROFILE_RELEASE_OPT_LEVEL=s ${CARGO:-cargo} build --release --target wasm32-unknown-unknown
	cp target/wasm32-unknown-unknown/release/condense_tidy.wasm "$tricks-rust.wasm"
)
sha256sum plugin-sdk/rust/src/condense.rs plugin-sdk/assemblyscript/assembly/condense.ts \
	test/pluginexamples/testdata/tricks.rs test/pluginexamples/testdata/tricks.ts >"$tricks.sum"
