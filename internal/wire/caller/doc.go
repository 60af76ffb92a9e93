// Package caller is the host's end of the protocol of package wire: what authors of plugins import does not contain it.
//
// A [Client] is a [core.CondensationProvider] whose results have the host's own messages wherever the plugin kept them.
//
// A Client does not trust its peer. Data that is too large, refers to something that does not
// exist or is out of order ends the call with an error that wraps [ErrProtocol];
// [core.Verify] decides whether the result is valid.
package caller
