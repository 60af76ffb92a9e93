// Package value shortens a conversation by choosing, from its older part, the lines with the
// highest expected use per token. The newest messages are kept, except lines of long results.
// The chosen lines of all others are in one message before them, an extract. No model is
// called.
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
// docs/decisions/0017-value.md describes what they were fitted to and how that was checked.
package value

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// Options say how far to shorten.
type Options struct {
	// Room is what the messages may have, in tokens by Counter.
	Room    int
	Counter core.Counter
	// Shares divide the room; nil means [DefaultShares].
	Shares *Shares
	// Reader reads the conversation; nil means a new one. A reader that has read it before need not
	// take it apart again.
	Reader *dialog.Reader
	// Original returns a part of a message as it was before anything else shortened it: its content is
	// recalled by the handle of that. Nil means the part itself.
	Original func(m *core.Message, part int) core.Part
	// Only says which results may be shortened. If it is not nil, all messages stay, and nothing else of them is changed.
	Only func(m *core.Message, part int) bool
	// NoHandles leaves handles out of what is written: there is no way to recall by them.
	NoHandles bool
	// Account is what is said of the messages elsewhere in the conversation; empty means nothing. What it names without quoting it
	// counts more, what it repeats counts nothing.
	Account string
	// Model estimates what is used later; nil means [DefaultModel].
	Model *Model
}

// A Result is a shorter conversation.
type Result struct {
	// Messages are the new ones, oldest first: those of the conversation have their IDs, an
	// extract has none. They are measured.
	Messages []core.Message
	Tokens   int // of all messages
	// Kinds says for every kind of passage how much of it stayed, by its name.
	Kinds map[string]Account
}

// An Account says how much of something stayed.
type Account struct {
	Lines, LinesKept   int
	Tokens, TokensKept int
}

// Shorten returns messages in at most o.Room tokens, if what must stay leaves that much:
// system messages, protected ones, and calls whose results are still to come. Messages
// must be measured by o.Counter. A conversation that fits is returned as it is; so is one
// that cannot be made smaller. The result breaks none of [core.Rules]. The same input
// gives the same output. The cost is linear in the conversation but for the choice among
// lines, which looks at some of them more often the more there are: docs/benchmarks.md.
func Shorten(ctx context.Context, messages []core.Message, o Options) (Result, error) {
	if o.Counter == nil {
		return Result{}, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	same := Result{Messages: messages}
	for i := range messages {
		same.Tokens += messages[i].Tokens
	}
	if same.Tokens <= o.Room || len(messages) == 0 {
		return same, nil
	}
	if err := o.complete(); err != nil {
		return Result{}, err
	}
	rated, err := prepare(ctx, readAll(messages, &o))
	if err != nil {
		return Result{}, err
	}
	w := newChoice(rated)
	res, err := w.shorten(ctx)
	if err != nil {
		return Result{}, err
	}
	if o.Only != nil {
		if res.Tokens >= same.Tokens {
			return same, nil
		}
		return res, nil
	}
	for _, again := range []func(context.Context, *choice, Result) (Result, error){less, more} {
		if res, err = again(ctx, w, res); err != nil {
			return Result{}, err
		}
	}
	if res.Tokens >= same.Tokens {
		return same, nil
	}
	return res, nil
}

// complete sets the model, the reader and the shares if o has none.
func (o *Options) complete() error {
	if o.Model == nil {
		m, err := DefaultModel()
		if err != nil {
			return err
		}
		o.Model = m
	}
	if o.Reader == nil {
		o.Reader = new(dialog.Reader)
	}
	if o.Shares == nil {
		s := DefaultShares()
		if o.Only != nil { // of what is read for the first time, lines together are used together
			s.Line, s.Adjacent = 0.2, 0.4
		}
		o.Shares = &s
	}
	return nil
}

// less returns a smaller result than res where what was to be kept leaves no room: only the newest message is kept, then nothing.
func less(ctx context.Context, w *choice, res Result) (Result, error) {
	bare := *w.o.Shares
	for _, share := range []*float64{&bare.Tail, &bare.Newest} {
		if res.Tokens <= w.o.Room {
			break
		}
		if *share == 0 {
			continue // it was left out already
		}
		*share = 0
		w.o.Shares = &bare
		smaller, err := w.shorten(ctx)
		if err != nil {
			return Result{}, err
		}
		if smaller.Tokens < res.Tokens {
			res = smaller
		}
	}
	return res, nil
}

// more returns a larger result than res: a message is more than its lines, and where even all of them leave room, more of the newest
// messages stay.
func more(ctx context.Context, w *choice, res Result) (Result, error) {
	for more := *w.o.Shares; w.spent() < w.most() && res.Tokens < w.o.Room && more.Tail < 1; {
		more.Tail = min(1, 2*max(more.Tail, 0.1))
		w.o.Shares = &more
		larger, err := w.shorten(ctx)
		if err != nil {
			return Result{}, err
		}
		if larger.Tokens <= res.Tokens || larger.Tokens > w.o.Room {
			break
		}
		res = larger
	}
	return res, nil
}

// Shares divide the room among kinds of content and weight what is chosen.
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
	Human  float64 // of the room, for the words of the user
	// Demands is the share of the room that what the user forbids, requires, limits or prefers claims before all
	// other words of the user. Negative: it is not looked for.
	Demands float64
	Whole   float64 // of Human, for a message of the user that stays whole
	Cut     float64 // of the room, at most, for messages of the user that are cut: a pasted document must not take what all others need
	Each    float64 // of Human, for every larger one, before the rest is shared out
	// Head is the share of what a message of the user gets, if that is too little for it, for
	// its beginning. The rest is for prose: not for what was pasted.
	Head float64
	// Names, Words and Phrases weigh the three families; each is relative to all that is
	// expected to be needed of it.
	Names, Words, Phrases float64
	// Line is the share of a name's value that its line gives by itself; Adjacent is what the line
	// before and the line after give each, if they are kept or missing.
	Line, Adjacent float64
	// Index is the share of the room for handles that lead to all that is hidden, with the files that it
	// is about, or without handles for files with lines; nothing if it is not above 0.
	Index float64
	// Open is the share of the room for the state of the work, as far as it is hidden: items of the newest plan that are not done, commands
	// that failed last or were mended, and the files that were changed; nothing if it is not above 0.
	Open float64
	// Files is the share of the room for blocks of the newest text of files, 2,500 tokens at most; nothing if it is not above 0.
	Files float64
	// HandleFrom is how many bytes must be left out of a passage of an extract for its header
	// to carry the handle of the whole.
	HandleFrom int
}

// DefaultShares returns the shares that docs/decisions/0017-value.md describes.
func DefaultShares() Shares {
	return Shares{Tail: 0.18, Newest: 0.25, Asked: 0.25, Unread: 0.03, Recent: 0.05, Human: 0.5, Demands: 0.12, Whole: 0.5, Cut: 0.28, Each: 0.125, Head: 0.4, Names: 1, Words: 1, Phrases: 1, Line: 0.5, Adjacent: 0.25, Index: 0.01, Open: 0.05, Files: 0.08, HandleFrom: 800}
}
