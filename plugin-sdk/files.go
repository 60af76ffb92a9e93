package pluginsdk

import "embed"

// Files are the SDKs for other languages and the protocol, as 'condense plugin new' copies them: node/condense, python/condense, rust/src,
// assemblyscript/assembly and proto/condense/v1/condense.proto. A plugin does not contain them.
//
//go:embed node/condense/*.mjs node/condense/*.mts python/condense/*.py rust/src assemblyscript/assembly proto/condense/v1/condense.proto
var Files embed.FS
