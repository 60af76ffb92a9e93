// Package report renders a comparison, or one conversation, as a single HTML file.
//
// The file makes no network request: it contains its script, style and data, and a content security
// policy forbids everything else. All numbers are in tables of the file itself. The script adds figures,
// sorting, and links from a number to its sessions and from there to their messages. Transcripts are
// untrusted input: their content is shown as text, with visible signs for control characters and for
// characters that change the direction of text.
//
// A page with details contains text of the sessions, for everyone who can read the page.
package report
