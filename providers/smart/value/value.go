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
	"github.com/condensehq/condense/providers/smart/value/need"
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
	w, err := chosen(ctx, messages, &o)
	if err != nil {
		return Result{}, err
	}
	out, tokens, pick := w.fit()
	if tokens > o.Room && o.Shares.Tail+o.Shares.Newest > 0 {
		// What was to stay leaves no room for anything; perhaps nothing need stay.
		bare := *o.Shares
		bare.Tail, bare.Newest = 0, 0
		o.Shares = &bare
		other, err := chosen(ctx, messages, &o)
		if err != nil {
			return Result{}, err
		}
		if less, n, k := other.fit(); n < tokens {
			w, out, tokens, pick = other, less, n, k
		}
	}
	if tokens >= same.Tokens {
		return same, nil
	}
	return Result{Messages: out, Tokens: tokens, Kinds: w.account(pick)}, nil
}

// chosen returns the work after all choices but how many of them there is room for.
func chosen(ctx context.Context, messages []core.Message, o *Options) (*work, error) {
	w := newWork(messages, o)
	var habits *need.Habits
	parallel.Do(w.count, func() { w.estimate = o.Model.Estimate(w.c) }, func() { habits = o.Model.Habits(messages) })
	w.estimate.Follow(habits, w.c)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.price()
	w.keepHuman()
	w.keepMedia()
	return w, w.choose(ctx)
}
