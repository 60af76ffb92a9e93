// Package transcript reads and writes conversations in the formats of other tools.
//
// [Read] detects the format of a file and returns a [Document]: a journal of messages, and the rest of the file.
// [Document.Write] writes it. In the file's own format every message that did not change is written byte for byte, so
// an unchanged document gives the same file. In another format the result is valid there, and losses are reported as
// a [Warning].
//
// Files are read whole. No file makes the package panic; a malformed one gives a
// [*SyntaxError] that reports the position.
package transcript
