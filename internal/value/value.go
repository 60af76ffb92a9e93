// Package value shortens a conversation by choosing, from its older part, the lines that
// are worth most for what they cost. The newest messages stay as they are, but for lines
// of long results; what was chosen from the rest stands before them in one message, an
// extract. No model is called.
package value

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/parallel"
	"github.com/condensehq/condense/internal/value/need"
)

// Options say how far to shorten.
type Options struct {
	// Room is what the messages may have, in tokens by Counter.
	Room    int
	Counter core.Counter
	// Shares divide the room; nil means [DefaultShares].
	Shares *Shares
	// Model values what is said; nil means [need.Default].
	Model *need.Model
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
	if o.Model == nil {
		m, err := need.Default()
		if err != nil {
			return Result{}, err
		}
		o.Model = m
	}
	if o.Shares == nil {
		s := DefaultShares()
		o.Shares = &s
	}
	w := newWork(messages, &o)
	if err := w.foresee(ctx); err != nil {
		return Result{}, err
	}
	res, err := w.shorten(ctx)
	if err != nil {
		return Result{}, err
	}
	// What was to stay may leave no room for anything. The newest message alone comes first,
	// then nothing need stay.
	bare := *o.Shares
	for _, share := range []*float64{&bare.Tail, &bare.Newest} {
		if res.Tokens <= o.Room {
			break
		}
		if *share == 0 {
			continue // it was left out already
		}
		*share = 0
		o.Shares = &bare
		less, err := w.shorten(ctx)
		if err != nil {
			return Result{}, err
		}
		if less.Tokens < res.Tokens {
			res = less
		}
	}
	if res.Tokens >= same.Tokens {
		return same, nil
	}
	return res, nil
}

// foresee finds what every line costs and what it is worth.
func (w *work) foresee(ctx context.Context) error {
	var habits *need.Habits
	parallel.Do(w.count, func() { w.estimate = w.o.Model.Estimate(w.c) }, func() { habits = w.o.Model.Habits(w.messages) })
	w.estimate.Follow(habits, w.c)
	w.price()
	return ctx.Err()
}

// shorten makes all choices.
func (w *work) shorten(ctx context.Context) (Result, error) {
	w.arrange()
	w.forget()
	w.settle(0, len(w.lines))
	for _, keep := range []func(context.Context) error{w.keepAsked, w.keepRules, w.keepUnread, w.keepHuman, w.keepMedia, w.keepRecent, w.choose, w.keepRest} {
		if err := keep(ctx); err != nil {
			return Result{}, err
		}
	}
	out, tokens, pick := w.fit()
	return Result{Messages: out, Tokens: tokens, Kinds: w.account(pick)}, nil
}
