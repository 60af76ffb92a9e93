#!/bin/sh
# Regenerates ../../table.json. Needs npm and node; writes nothing else into the repository.
# The versions are pinned here and named in the table: change both together, read the diff.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$here/table.mjs" "$scratch/"
cd "$scratch"
npm install --silent --no-audit --no-fund --ignore-scripts \
	@pydantic/genai-prices@0.1.8 tokenlens@1.3.1
node table.mjs >"$here/../../table.json"
