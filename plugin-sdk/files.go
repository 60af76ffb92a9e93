package pluginsdk

import "embed"

// Files are the SDKs for other languages and the protocol, as 'condense plugin new' copies them: node/condense, python/condense and
// proto/condense/v1/condense.proto. A plugin does not contain them.
//
//go:embed node/condense/*.mjs python/condense/*.py proto/condense/v1/condense.proto
var Files embed.FS
