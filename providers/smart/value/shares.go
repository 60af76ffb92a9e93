package value

// Shares divide the room and weigh what is chosen.
type Shares struct {
	Tail  float64 // of the room, for the newest messages without the results in them
	Human float64 // of the room, for what the person said
	First float64 // of Human, for the first that the person said
	// Names, Words and Phrases weigh the three families; each is relative to all that is
	// expected to be needed of it.
	Names, Words, Phrases float64
	// Prose is what a token of each kind is worth by itself, relative to an average token.
	Line, Beside float64 // credit for the names of a line that is kept, and for each line beside it
}

// DefaultShares returns the shares that docs/decisions/0017-value.md describes.
func DefaultShares() Shares {
	return Shares{Tail: 0.2, Human: 0.25, First: 0.5, Names: 1, Words: 1, Phrases: 1, Line: 0.5, Beside: 0.25}
}
