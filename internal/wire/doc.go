// Package wire is both ends of the protocol between a host and its plugins. The protocol
// itself, for authors in other languages, is plugin-sdk/proto/condense/v1/condense.proto
// and docs/protocol.md.
//
// A plugin serves a [Server], which decodes a [core.Request], calls a provider, and sends the
// difference. A host uses a [Client], which is a [core.CondensationProvider] whose results
// have the host's own messages wherever the plugin kept them. Neither deals with processes:
// the SDK serves and the host launches plugins with go-plugin, [Handshake] and [Plugins].
//
// A Client does not trust its peer. Data that is too large, refers to something that does not
// exist or is out of order ends the call with an error that wraps [ErrProtocol];
// [core.Verify] decides whether the result is valid.
package wire
