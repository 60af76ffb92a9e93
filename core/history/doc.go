// Package history is the journal of a conversation: everything that was said, and every
// condensation that shortened it.
//
// A [Journal] is a log that only grows. Messages are never deleted or edited; a
// condensation is a record beside them that hides some, gives others new parts and
// inserts summaries. From the log follow
//
//   - the timeline: all messages in order, an inserted one where it was put,
//   - the view: the part of the timeline that would be sent.
//
// A message is in the view if the condensation that inserted it, if any, is active, and
// if no active condensation hides it. Whoever hides a summary also hides, for as long as
// it is active, what the summary stands for: taking back the inner of two nested
// condensations does not bring back what the outer one covers. A message stands for the
// hidden ones before it, as far back as the next message of the same condensation;
// messages inserted at one place count as one, the first; hidden messages behind the last
// inserted one belong to that; and the messages of one tool group (see [core.Groups])
// are never divided. Of several active rewrites of a message the latest counts.
//
// [Journal.Undo] takes one condensation back, in any order, for good. [Journal.Rewind]
// goes back to the moment a message was recorded, and [Journal.UndoRewind] takes that back. With every condensation undone the view
// is the conversation as it was, byte for byte.
//
// [Encode] and [Decode] write and read the log as lines of JSON; a [File] keeps it on
// disk as it grows.
package history
