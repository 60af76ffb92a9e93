//go:build race

package supervise_test

// The race detector maps more memory than a plugin may have.
const raceEnabled = true
