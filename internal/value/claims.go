package value

import "context"

// Claims reserve room for required content before lines compete for the rest.
type claims struct{ *choice }

// A claim is on a share of the room.
type claim struct {
	take func(claims, context.Context) error
	// work limits the claim to conversations about work: neither talk nor Options.Only.
	work bool
}

// allClaims are the claims in the order in which they are met. Lines kept by an earlier claim cost a later one
// nothing.
var allClaims = []claim{
	{take: claims.keepNamed},
	{take: claims.keepWords},
	{take: claims.keepTasks},
	{take: claims.keepRules},
	{take: claims.keepAsked},
	{take: claims.keepDemands},
	{take: claims.keepNamedByAccount},
	{take: claims.keepCreated},
	{take: claims.keepSaved},
	{take: claims.keepUnread},
	{take: claims.keepTalk},
	{take: claims.keepPasted},
	{take: claims.keepMedia},
	{take: claims.keepQuestions, work: true},
	{take: claims.keepReports, work: true},
	{take: claims.keepNewestResults, work: true},
	{take: claims.keepClosings, work: true},
	{take: claims.keepDecisions, work: true},
	{take: claims.keepOutcomes, work: true},
	{take: claims.keepRecent},
}

// meet meets all claims.
func (w claims) meet(ctx context.Context) error {
	for _, c := range allClaims {
		if c.work && (w.talks || w.o.Only != nil) {
			continue
		}
		if err := c.take(w, ctx); err != nil {
			return err
		}
	}
	return nil
}
