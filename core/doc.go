// Package core is the contract between a host that runs conversations and the
// providers that shorten them.
//
// A conversation with a language model grows until it no longer fits the model's
// context window. A [CondensationProvider] is asked for a shorter one. It gets a
// [Request], the messages that would be sent and the tokens that they may have, and
// answers with a [Result], the messages to send instead. Messages keep their identity:
//
//	same ID and equal parts    the message is kept
//	same ID and other parts    the message is rewritten
//	no ID                      the message is new: a summary, a marker
//	absent                     the message is hidden
//
// Nothing is ever deleted. The host turns the difference into an [Edit], records it next to
// the messages (package history) and can undo it.
//
// Providers are not trusted, built in or not. [Verify] checks every result against [Rules].
// A [Chain] asks its providers in order, each with a deadline, rejects invalid results,
// measures with one counter, and reports every attempt.
package core
