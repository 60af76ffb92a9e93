// Package outline folds source files to their signatures, so that a model that forgets a
// file still knows what is in it and where.
//
// [Definitions] finds functions, types and headings with scanners written by hand: they
// know strings, comments and brackets, but no grammar. So they need no C compiler, take
// time linear in the text, and answer something for text that does not parse. What they
// find was measured against tree-sitter, language by language; see docs/outline.md.
//
// [Files] reads and folds the files that an agent has read. Nothing outside its root and
// nothing that is ignored is ever opened.
package outline
