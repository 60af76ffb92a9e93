package condense

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

// An EventKind says what happened.
type EventKind string

// The kinds of events. A turn in which nothing is due has none.
const (
	EventStarted   EventKind = "started"   // a condensation begins: Decision
	EventEstimated EventKind = "estimated" // what a provider might cost, if Turn.Estimate is set: Provider, Estimate
	EventAsking    EventKind = "asking"    // a provider is asked: Provider
	EventAttempt   EventKind = "attempt"   // it has answered: Provider, Attempt
	EventFinished  EventKind = "finished"  // the condensation has ended: Report, Err
	EventReloaded  EventKind = "reloaded"  // the configuration has changed, or Err says why not
)

// An Event tells an observer what happens. Which fields are set depends on Kind.
type Event struct {
	Kind          EventKind
	Profile, Mode string
	Decision      policy.Decision
	Provider      string
	Estimate      Estimate
	Attempt       core.Attempt
	Report        *Report
	Err           error
}
