// Package wire is the plugin's end of the protocol between a host and its plugins, and what both ends share. The protocol
// itself, for authors in other languages, is plugin-sdk/proto/condense/v1/condense.proto
// and docs/protocol.md.
//
// A plugin serves a [Server], which decodes a [core.Request], calls a provider, and sends the
// difference. The host's end is package caller, which no plugin contains. Neither deals with processes:
// the SDK serves and the host launches plugins with go-plugin, [Handshake] and [Plugins].
package wire
