package value

import "context"

// A reservation keeps room for required content before lines compete for the rest.
type reservation struct {
	keep func(context.Context, *choice) error
	work bool // only in conversations about work: neither talk nor Options.Only
}

// reservations are in the order in which they are made. Lines kept by an earlier one cost a later one nothing.
var reservations = []reservation{
	{keep: keepNamed},
	{keep: keepWords},
	{keep: keepTasks},
	{keep: keepRules},
	{keep: keepAsked},
	{keep: keepDemands},
	{keep: keepNamedByAccount},
	{keep: keepCreated},
	{keep: keepSaved},
	{keep: keepUnread},
	{keep: keepTalk},
	{keep: keepPasted},
	{keep: keepMedia},
	{keep: keepQuestions, work: true},
	{keep: keepReports, work: true},
	{keep: keepNewestResults, work: true},
	{keep: keepClosings, work: true},
	{keep: keepDecisions, work: true},
	{keep: keepOutcomes, work: true},
	{keep: keepRecent},
}

// reserveAll makes all reservations.
func reserveAll(ctx context.Context, w *choice) error {
	for _, k := range reservations {
		if k.work && (w.r.talks || w.r.o.Only != nil) {
			continue
		}
		if err := k.keep(ctx, w); err != nil {
			return err
		}
	}
	return nil
}
