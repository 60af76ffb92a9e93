// Package roo does what Roo-Code does where the result depends on Roo's own code: how tool
// calls are shown to a model that writes a summary, and which errors of a model's API mean
// that the context window is exceeded. It follows Roo-Code v3.52.1, including what
// JavaScript makes of a member of an unexpected type, and is checked against vectors
// recorded from it.
package roo
