// Package roo reproduces behaviour of Roo-Code that depends on its own code: the text of tool calls for a model that
// writes a summary, and the errors of a model's API that mean a full context window. It follows Roo-Code v3.52.1,
// including JavaScript's treatment of members of unexpected types, and is checked against vectors recorded from it.
package roo
