package roo

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// RewindOptions adjust a rewind. A nil pointer means the defaults.
type RewindOptions struct {
	// IncludeTarget keeps the UI message at the timestamp and removes only what follows
	// it; the message to the model at that timestamp goes all the same. It counts for
	// [RewindToTimestamp] only.
	IncludeTarget bool
	// SkipCleanup leaves tags that name what is gone, and finds no artifacts.
	SkipCleanup bool
}

// A Rewound is a task after a rewind.
type Rewound struct {
	UI       []*UIMessage // what stays
	Messages []*Message   // what stays, without tags that name what is gone

	RemovedUI       []*UIMessage
	Removed         []*Message // summaries and markers among them
	MessagesChanged bool       // whether api_conversation_history.json must be written

	// ArtifactIDs are the names of the command outputs to keep, sorted: the timestamps of
	// all that stays. It is nil if cleanup was skipped, else not.
	ArtifactIDs []string
}

// RewindToTimestamp takes a task back to before the first UI message with a timestamp, in
// milliseconds since 1970. It fails if there is none.
//
// Messages to the model stay if they are older than that, or have no time. If none has
// exactly that time but some are older, it is the time of the first user message since
// then that counts instead: an answer of the model may be stored after the person's next
// message was shown. (No message has the time of an event, either; a rewind to one keeps
// the answers right behind it.) With the event of a condensation goes its summary,
// wherever it is, and what it hid is visible again; so with truncations.
func RewindToTimestamp(ui []*UIMessage, messages []*Message, ts float64, opts *RewindOptions) (*Rewound, error) {
	for i, u := range ui {
		if at, ok := u.TS(); ok && at == ts {
			if opts != nil && opts.IncludeTarget {
				i++
			}
			return rewind(ui, messages, i, u.ts, opts), nil
		}
	}
	return nil, fmt.Errorf("rewind: none of %d UI messages has the timestamp %s", len(ui), formatNumber(ts))
}

// RewindToIndex takes a task back to its first index UI messages; see [RewindToTimestamp].
// Now is the time that counts if there is no UI message at index or it has no time. An
// index below 0 is an error, one beyond the end is not.
func RewindToIndex(
	ui []*UIMessage, messages []*Message, index int, now func() time.Time, opts *RewindOptions,
) (*Rewound, error) {
	if index < 0 {
		return nil, fmt.Errorf("rewind: index %d is negative", index)
	}
	if index < len(ui) && kindOf(ui[index].ts) > kindNull {
		return rewind(ui, messages, index, ui[index].ts, opts), nil
	}
	return rewind(ui, messages, min(index, len(ui)), formatNumber(milliseconds(now())), opts), nil
}

// rewind keeps the first keep UI messages and the messages before a cutoff, which is a
// JSON value.
func rewind(ui []*UIMessage, messages []*Message, keep int, cutoff string, opts *RewindOptions) *Rewound {
	if opts == nil {
		opts = &RewindOptions{}
	}
	r := &Rewound{UI: slices.Clip(ui[:keep]), RemovedUI: slices.Clip(ui[keep:])}
	var summaries, markers nameSet
	for _, u := range r.RemovedUI {
		summaries = summaries.add(u.condensed())
		markers = markers.add(u.truncated())
	}
	before := findCutoff(messages, cutoff)
	kept := filter(messages, func(m *Message) bool {
		// A time that is no number is not before anything, hence the negation.
		late := truthy(m.ts) && !(toNumber(m.ts) < before)
		if late || m.IsSummary() && summaries.has(m.name(CondenseID)) ||
			m.IsTruncationMarker() && markers.has(m.name(TruncationID)) {
			r.Removed = append(r.Removed, m)
			return false
		}
		return true
	})
	r.Messages = kept
	r.MessagesChanged = len(r.Removed) > 0
	if opts.SkipCleanup {
		return r
	}
	r.Messages = Cleanup(kept)
	r.MessagesChanged = r.MessagesChanged || !slices.Equal(r.Messages, messages)
	r.ArtifactIDs = artifactIDs(r.UI, r.Messages)
	return r
}

// findCutoff returns the time before which messages stay.
func findCutoff(messages []*Message, cutoff string) float64 {
	at := toNumber(cutoff)
	older := false
	firstUser := math.NaN()
	for _, m := range messages {
		if kindOf(m.ts) == kindNumber && kindOf(cutoff) == kindNumber && parseNumber(m.ts) == at {
			return at
		}
		ts := toNumber(m.ts)
		older = older || ts < at
		if math.IsNaN(firstUser) && m.role == "user" && ts >= at {
			firstUser = ts
		}
	}
	if older && !math.IsNaN(firstUser) {
		return firstUser
	}
	return at
}

// artifactIDs returns the timestamps of a task as JavaScript spells them, sorted, each
// once. A message without one, or with 0, has no artifact.
func artifactIDs(ui []*UIMessage, messages []*Message) []string {
	ids := make([]string, 0, len(ui)+len(messages))
	add := func(ts string) {
		if truthy(ts) {
			ids = append(ids, toString(ts))
		}
	}
	for _, u := range ui {
		add(u.ts)
	}
	for _, m := range messages {
		add(m.ts)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
