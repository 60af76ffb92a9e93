// Package coretest tests implementations of [core.CondensationProvider] and programs that
// call them.
//
// An author's test is [Run]:
//
//	func TestProvider(t *testing.T) {
//		coretest.Run(t, func(*testing.T) core.CondensationProvider { return mine.New() })
//	}
//
// A program that tests a third-party provider calls [TestProvider], or [Examine] for the
// details; neither needs a *testing.T. All use the same table of cases. Whether the views are true, too, shows
// [Truths]: the user's words, authors, lines of files, outcomes.
//
// To test a caller of providers, use conversations from [Random], with everything that occurs
// in real ones.
// [User], [Assistant], [Call], [Result] and [Conversation] build conversations.
//
// # Requirements
//
// Every result must be valid by [core.Verify]; [Contract] has the other requirements. A
// provider may decline a conversation with an error: that is not a failure, because the
// host asks the next provider. It must not decline the cases with Must in their [Verdict]:
// ordinary sessions with a budget that can be met. It need not save tokens.
//
// Each call has a deadline of [CallTimeout]; exceeding it is a failure. If a provider does
// not return within [Promptness] after its context is done, the examination ends, because
// the provider may still be running.
package coretest
