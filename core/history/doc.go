// Package history is the journal of a conversation: all messages, and every condensation of
// them.
//
// A [Journal] is an append-only log. Messages are never deleted or edited; a condensation is
// a record that hides some messages, gives others new parts and inserts summaries. The log
// determines
//
//   - the timeline: all messages in order, inserted ones included,
//   - the view: the part of the timeline that would be sent.
//
// A message is in the view if the condensation that inserted it, if any, is active, and no active condensation hides
// it. While a condensation that hides a summary is active, it also hides the messages that the summary replaces:
// undoing the inner of two nested condensations does not restore to the view messages that the outer one covers. An
// inserted message replaces the hidden ones before it, back to the previous one inserted by the same condensation.
// Messages inserted at one place count as one, the first; hidden messages after the last inserted one belong to it;
// and the messages of one tool group (see [core.Groups]) are never divided. Of several active rewrites of a message,
// the latest counts.
//
// [Journal.Undo] undoes one condensation for good; condensations can be undone in any order.
// [Journal.Rewind] goes back to the moment a message was recorded; [Journal.UndoRewind]
// undoes that. With every condensation undone, the view is the original conversation, byte
// for byte.
//
// [Encode] and [Decode] write and read the log as lines of JSON; a [File] keeps it on
// disk as it grows.
package history
