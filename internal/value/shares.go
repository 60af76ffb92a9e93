package value

// Shares divide the room and weigh what is chosen.
type Shares struct {
	Tail float64 // of the room, for the newest messages without the results in them
	// Newest is the share of the room that the newest message, or call with its results, may
	// take to stay as it is where Tail is too small for it: it is what has to be answered.
	Newest float64
	// Asked is the share of the room that the newest message has at least if it is cut, for its
	// beginning, its end, its prose and its best lines.
	Asked  float64
	Unread float64 // of the room, for lines of results that the model has not read yet
	Recent float64 // of the room, for lines of the newest results of which none would stay
	Human  float64 // of the room, for what the person said
	First  float64 // of Human, for the first that the person said
	Each   float64 // of Human, for every other thing said, before the rest is shared out
	// Head is the share of what a message of the person gets, if that is too little for it, for
	// its beginning. The rest is for prose: not for what was pasted.
	Head float64
	// Names, Words and Phrases weigh the three families; each is relative to all that is
	// expected to be needed of it.
	Names, Words, Phrases float64
	// Line is the share of a name's value that its line gives by itself, Beside what the line
	// before and the line after give each, if they are kept or there is none.
	Line, Beside float64
	// HandleFrom is how many bytes must be left out of a passage of an extract for its header
	// to carry the handle of the whole.
	HandleFrom int
}

// DefaultShares returns the shares that docs/decisions/0017-value.md describes.
func DefaultShares() Shares {
	return Shares{Tail: 0.18, Newest: 0.5, Asked: 0.25, Unread: 0.03, Recent: 0.03, Human: 0.28, First: 0.5, Each: 0.125, Head: 0.4, Names: 1, Words: 1, Phrases: 1, Line: 0.5, Beside: 0.25, HandleFrom: 400}
}
