// Package model is what providers know of a language model: something that reads a
// conversation and answers with text. Clients for the APIs of vendors are in packages
// below; a program with a client of its own implements [Generator].
package model

import (
	"context"
	"errors"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/catalog"
)

// A Generator is a language model. Implementations are safe for concurrent use.
type Generator interface {
	// Generate has the model answer p, which it neither modifies nor keeps. It returns
	// promptly once ctx is done, with an error wrapping ctx.Err().
	//
	// The error wraps [ErrTooLong] if p is more than the model can read,
	// [core.ErrUnavailable] if the model cannot be asked at all, such as for want of a
	// key, and [ErrNoText] if it answered without saying anything. No error holds a
	// secret. An answer that comes with an error says what was spent; none means nothing.
	Generate(ctx context.Context, p *Prompt) (*Answer, error)
	// Info says what is known about the model, without asking it.
	Info() Info
}

// A Checker is a [Generator] that knows, without asking anybody, why it could not be asked
// as things are.
type Checker interface {
	Generator
	// CheckKey returns the reason, such as a key that is missing; nil if there is none. It
	// holds no secret.
	CheckKey() error
}

var (
	// ErrTooLong means that the prompt does not fit the window of the model.
	ErrTooLong = errors.New("the prompt is longer than the model's window")
	// ErrNoText means that the model answered without text.
	ErrNoText = errors.New("the model answered without text")
)

// A Prompt is what a model is asked.
type Prompt struct {
	System string
	// Messages are what the model reads, oldest first; only Role and Parts count. The last
	// one is the user's. Every tool call has its result in the message after it.
	Messages []core.Message
	// Tools are the definitions of the tools that Messages call, a JSON array in the form
	// of the vendor's API; empty if no message holds a call, or if they are unknown.
	Tools string
	// MaxOutput is the most tokens that the answer may have; 0 leaves it to the model.
	MaxOutput int
	// Cached says that all messages but the last have been sent before in just this form,
	// so that asking the vendor to look into its cache is worth it.
	Cached bool
}

// An Answer is what a model said.
type Answer struct {
	Text      string     // what it wrote; tool calls and reasoning are left out
	Truncated bool       // it stopped because it reached the most tokens that it may write
	Usage     core.Usage // what it took, as the vendor counts
}

// Info is what is known about a model. Numbers are tokens; zero means unknown.
type Info struct {
	Name      string // as people call it
	Window    int    // the most that it can read and write together
	MaxOutput int    // the longest answer
	Images    bool   // it can read images
	Price     catalog.Price
	Tiers     []catalog.Tier // higher prices of long requests
	Free      bool           // asking costs nothing; a Price of zero alone is one that nobody knows
}

// PriceFor returns the price of a request with so many input tokens.
func (i Info) PriceFor(input int) catalog.Price {
	m := catalog.Model{Price: i.Price, Tiers: i.Tiers}
	return m.PriceFor(input)
}

// Charge returns u with what it costs: with USD if the price is known, else with its calls
// counted as unpriced. U is the usage of one call.
func (i Info) Charge(u core.Usage) core.Usage {
	p := i.PriceFor(u.InputTokens)
	u.USD, u.Unpriced = 0, 0
	if i.Free {
		return u
	}
	if p == (catalog.Price{}) {
		u.Unpriced = u.Calls
		return u
	}
	cached := p.CacheRead
	if cached == 0 {
		cached = p.Input
	}
	u.USD = (float64(u.InputTokens-u.CachedTokens)*p.Input + float64(u.CachedTokens)*cached + float64(u.OutputTokens)*p.Output) / 1e6
	return u
}
