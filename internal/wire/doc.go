// Package wire is both ends of the protocol between a host and its plugins. The protocol
// itself, for authors in other languages, is plugin-sdk/proto/condense/v1/condense.proto
// and docs/protocol.md.
//
// A plugin serves a [Server], which turns what the host sends into a [core.Request], asks
// a provider, and sends the difference back. A host holds a [Client], which is a
// [core.CondensationProvider] whose answers hold the host's own messages wherever the
// plugin kept them. Neither knows about processes: the SDK serves, and the host launches,
// with go-plugin, which is given [Handshake] and [Plugins].
//
// A Client does not trust its peer. What is too large, names what does not exist or comes
// in the wrong order ends the call with an error that wraps [ErrProtocol]; whether the
// answer is valid is decided by [core.Verify].
package wire
