// Package coretest tests implementations of [core.CondensationProvider], and whatever
// asks them for work.
//
// An author's test is [Run]:
//
//	func TestProvider(t *testing.T) {
//		coretest.Run(t, func(*testing.T) core.CondensationProvider { return mine.New() })
//	}
//
// A program that meets a provider which somebody
// else wrote calls [TestProvider], or [Examine] for the details; neither needs a
// *testing.T. All go over the same table of cases.
//
// Who asks providers is tested with those of [Misbehaving], each of which commits one
// sin, and with histories from [Random], which hold whatever a real conversation may.
//
// # What is asked of a provider
//
// Every answer must be lawful by [core.Verify]; what is asked beyond that is in
// [Contract]. A provider may decline a conversation with an error: it then counts as
// declined, not as failed, because the host asks the next one. It may not decline the
// cases that say so (Must in a [Verdict]): those are ordinary sessions with a budget that
// can be met. It need not save a token anywhere.
//
// Each call has a deadline of [CallTimeout]. Running into it is a failure. A provider
// that does not return within [Promptness] after its context is done ends the
// examination: nothing more can be learned from it, and it may still be running.
package coretest
