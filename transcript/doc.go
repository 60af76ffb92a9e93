// Package transcript reads and writes conversations as other tools store them.
//
// [Read] finds out the format of a file and turns it into a [Document]: a journal of
// messages, and the rest of the file beside it. [Document.Write] turns it back. In the
// file's own format every message that nobody changed is written as it was, byte for
// byte: a file that was read and not changed is the same file. In another format the
// result is lawful there, and what could not be said is reported as a [Warning].
//
// Files are read whole. Nothing in a file makes the package panic; a broken one gives a
// [*SyntaxError] that says where.
package transcript
