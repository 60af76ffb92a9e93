// Package config holds what the user asked for: thresholds, chains of providers, profiles
// and modes, read from files, the environment and flags.
//
// [Load] merges five layers, each overriding the one before: built-in defaults, the user's
// file, the project's file, the environment (CONDENSE_…), flags. The result is a [Config]:
// complete, checked as a whole, and immutable, so that it may be used by any number of
// goroutines. Every fault of every layer is reported at once, as [Errors]. [Config.Resolve]
// answers the question a host asks: what holds for this profile in this mode? [Watch] keeps
// a configuration current while its files change.
//
// A value that is absent or -1 inherits: a mode from its profile, a profile from the one it
// extends, that from the top level of the file, and this from the built-in defaults.
//
// The package knows names and numbers only. What a strategy is, and what its settings mean,
// is for others to say; they hand in the names that exist with [Options].
package config
