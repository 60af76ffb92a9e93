package live

import (
	"time"

	"github.com/condensehq/condense/internal/epoch"
)

// A Watcher observes conversations, to show them on pages. Its methods are called while requests wait, so they must return soon,
// and from several goroutines. They must not modify their arguments.
type Watcher interface {
	// Turn is called before a turn is sent. If it has an epoch, this is the first turn sent with that condensation.
	Turn(*Turn)
	// Answer is called when the vendor has reported the usage of a turn.
	Answer(conversation string, u *Used)
	// Later is called when more is known of an epoch, with its beginning; zero for a recall before the first.
	Later(conversation string, epoch time.Time, f Finding)
}

// A Finding is what its view was found to be, held against the whole history; or, without a truth, that the agent has recalled condensed
// content, with its size in tokens.
type Finding struct {
	Truth    *Truth
	Recalled int
	Pieces   []Recalled // that make up Recalled, with their handles
}

// A Turn is a request that continues a conversation.
type Turn struct {
	Time         time.Time
	Conversation string // ID, the same for all turns
	Tenant       string // NAME:HASH with Options.Tokens, else HASH; the hash is a keyed hash of the credentials
	Agent        string
	Model        string
	Profile      string // empty for the default
	Mode         string // empty for none
	Messages     int    // number of the client's messages
	Tokens       int    // size of the request as sent, estimated in the vendor's count
	History      int    // size of the client's request, in the same count
	Window       int    // window of the model, in tokens
	DueAt        int    // size in tokens at which the conversation is condensed at the latest; 0 if nothing is changed
	Observe      bool
	Epoch        *Epoch // nil unless it begins with this turn
}

// Used is the vendor's report about a turn, in tokens and US dollars.
type Used struct {
	Time                       time.Time // of the turn
	Epoch                      time.Time // beginning of the epoch whose view was sent; zero before the first
	Input, Read, Write, Output int
	Cost                       float64
	Saved                      float64 // compared to the client's own history; negative if the turn cost more
	Priced                     bool    // the price of the model is known
}

// An Exchange is a condensable request as the gateway saw it.
type Exchange struct {
	Time    time.Time
	API     string // messages, chat or responses
	Tenant  string // a keyed hash of the credentials
	Agent   string
	Session string
	Lineage string // identifies the conversation within the session
	Model   string
	// Received is the client's body and Sent the body for the vendor, both decompressed.
	Received, Sent []byte
	Epoch          *Epoch // not nil if the history was condensed for this request
}

// A Truth counts what the view of an epoch says that is not so, and what it no longer says, held against the history that it stands for.
type Truth struct {
	// Sentences of the user in the history, and those that the view does not have verbatim, white space aside.
	Sentences     int `json:"sentences"`
	SentencesGone int `json:"sentences_gone"`
	// Claims are lines that the view gives as the user's; WrongAuthor those that somebody else wrote.
	Claims      int `json:"claims"`
	WrongAuthor int `json:"wrong_author"`
	// Lines are lines of files in the view; Superseded those that an edit or a newer read replaced, without the newer text.
	Lines      int `json:"lines"`
	Superseded int `json:"superseded"`
	// Outcomes are identifiers of what calls started or created, while their end was not seen; OutcomesLost those not in the view.
	Outcomes     int `json:"outcomes"`
	OutcomesLost int `json:"outcomes_lost"`
}

// String returns the four numbers in the order of the fields; a dash for nil, which is not measured.
func (t *Truth) String() string { return (*epoch.Truth)(t).String() }

// Faults says each in words, if there are any; nothing for nil.
func (t *Truth) Faults() []string { return (*epoch.Truth)(t).Faults() }
