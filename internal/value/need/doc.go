// Package need reads a conversation as lines, and estimates for every name, word and
// phrase in it how likely it is that the agent or the person will use it again.
//
// [Read] takes a conversation apart: passages (what one author said in one part of a
// message), their lines, and in the lines terms (names and rare words) and phrases (four
// words in a row). [Conversation.Estimate] gives each of them a value: the probability
// that it is written again before it is seen again, times how hard it would be to guess.
//
// The probabilities are those of two logistic models, corrected by small decision trees,
// over what any reader of the history can see: who wrote something, how long ago, how
// often, in what kind of text, whether the file it is about is still being worked on.
// Weights and trees are data (weights.json), fitted to recorded sessions by a command:
//
//	go run ./internal/lab/train -traces DIR
//
// docs/decisions/0017-value.md says what they were fitted to and how that was checked.
package need
