package policy

import "fmt"

// Inherit is the threshold of a profile that uses the global one.
const Inherit = -1

const (
	minThreshold = 5
	maxThreshold = 100
)

// ValidThreshold returns an error unless percent is a threshold, 5 to 100 percent of the
// window. [Inherit] is not: it stands for one.
func ValidThreshold(percent float64) error {
	if within(percent, minThreshold, maxThreshold) {
		return nil
	}
	return fmt.Errorf("%v is outside %d..%d percent of the window", percent, minThreshold, maxThreshold)
}

// ResolveThreshold returns the threshold in force: the profile's, or the global one if
// that is [Inherit]. Both must be valid, the global one also when it is not in force.
func ResolveThreshold(profile, global float64) (float64, error) {
	if err := ValidThreshold(global); err != nil {
		return 0, fmt.Errorf("global threshold: %w", err)
	}
	if profile == Inherit {
		return global, nil
	}
	if err := ValidThreshold(profile); err != nil {
		return 0, fmt.Errorf("profile threshold: %w, and %d, which means the global one", err, Inherit)
	}
	return profile, nil
}

// RooThreshold returns the threshold in force as Roo-Code resolves it: a profile's that
// is not valid counts for nothing, and the global one is taken as it is.
func RooThreshold(profile, global float64) float64 {
	if ValidThreshold(profile) != nil {
		return global
	}
	return profile
}
