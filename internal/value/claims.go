package value

import "context"

// Claims take what is to be kept before lines compete for the room.
type claims struct{ *choice }

// A claim is on a share of the room.
type claim struct {
	take func(claims, context.Context) error
	// work says that only a conversation about work has it: talk does not, nor do results that alone may be shortened.
	work bool
}

// allClaims are the claims in the order in which they are met: what an earlier one took needs no room in a later one.
var allClaims = []claim{
	{take: claims.keepNamed},
	{take: claims.keepAsked},
	{take: claims.keepRules},
	{take: claims.keepDemands},
	{take: claims.keepNamedByAccount},
	{take: claims.keepUnread},
	{take: claims.keepTalk},
	{take: claims.keepUser},
	{take: claims.keepMedia},
	{take: claims.keepQuestions, work: true},
	{take: claims.keepReports, work: true},
	{take: claims.keepNewestResults, work: true},
	{take: claims.keepDecisions, work: true},
	{take: claims.keepOutcomes, work: true},
	{take: claims.keepRecent},
}

// meet takes what all claims are on.
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
