// Package report renders a comparison, or one conversation, as a single HTML file.
//
// The file needs no network and makes no request: script, style and data are in it, and
// a content security policy forbids everything else. All numbers are in tables that are
// in the file as they are; the script adds figures, sorting, and the way from a number to
// its sessions and from there to their messages. Transcripts are hostile input:
// whatever they hold is shown as text, control characters and those that turn the
// direction of text as visible signs.
//
// A page with details holds text of the sessions. Whoever may read the page may read that.
package report
