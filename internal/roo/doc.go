// Package roo applies Roo-Code's rules to Roo-Code's files, so that a task folder of Roo,
// or of one of its kin (Zoo, Kilo, Cline), can be read, condensed, viewed and rewound here
// and there alike.
//
// A task folder holds two arrays. api_conversation_history.json is what the model is
// told: [Message]s, none of which is ever deleted by condensing. Tags say what hides what:
//
//	isSummary, condenseId             the message is a summary, and its name
//	condenseParent                    the summary that tells what this message said
//	isTruncationMarker, truncationId  the message says that others are hidden, and its name
//	truncationParent                  the marker that hides this message
//
// ui_messages.json is what the person sees: [UIMessage]s, among them an event for every
// condensation and truncation, which carries the same name.
//
// The functions do what Roo-Code v3.52.1 does, defects included: a port that were kinder
// would show another conversation than Roo does. [LegacyTruncate] does what v3.28 did.
// They were compared with vectors recorded from Roo's own code. Where Roo depends on what
// JavaScript makes of a member of an unexpected type (a ts that is a string, an id that
// is a number), so do they, as far as JSON can hold it; a list or an object where Roo
// wants a number or a name matches nothing.
//
// Every function takes time linear in its input ([CountTokens] more for arguments that are
// nested deeply), changes none of its arguments, and may return an argument or a part of
// it when there is nothing to change; do not write to the elements of a result. A *Message
// must not be nil. Messages, UIMessages and Blocks are immutable and may be shared between
// goroutines.
package roo
