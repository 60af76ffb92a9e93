// Package model is the interface between strategies and language models: a [Generator]
// reads a conversation and answers with text. Subdirectories hold clients for vendors'
// APIs; a program with its own client implements Generator.
package model

import (
	"cmp"
	"context"
	"errors"

	"github.com/condensehq/condense/core"
)

// A Generator is a language model. Implementations are safe for concurrent use.
type Generator interface {
	// Generate sends p to the model. It neither modifies nor keeps p, and returns promptly
	// once ctx is done, with an error wrapping ctx.Err().
	//
	// The error wraps [ErrTooLong] if p exceeds the model's window, [core.ErrUnavailable]
	// if the model cannot be called at all (for example because the key is missing), and
	// [ErrNoText] if the answer has no text. Errors contain no secrets. An answer returned
	// with an error reports the tokens spent; a nil answer means none were.
	Generate(ctx context.Context, p *Prompt) (*Answer, error)
	// Info returns the known properties of the model, without calling it.
	Info() Info
}

// A Checker is a [Generator] that can report, without a call, why a call would fail.
type Checker interface {
	Generator
	// CheckKey returns the reason, such as a missing key, or nil. It contains no secret.
	CheckKey() error
}

// CheckKey returns why a call of g would fail, if it is a [Checker] that knows, or nil.
func CheckKey(g Generator) error {
	if c, ok := g.(Checker); ok {
		return c.CheckKey()
	}
	return nil
}

// An Embedder is a [Generator] that turns texts into vectors, one for each, in order. It may return a usage with an error.
type Embedder interface {
	Generator
	Embed(ctx context.Context, texts []string) ([][]float32, core.Usage, error)
}

// A Compactor is a [Generator] whose vendor can shorten conversations itself.
type Compactor interface {
	Generator
	// Compacts names the API in whose requests an answer of Compact can be sent, as
	// [core.Request] does: anthropic or responses. It is empty if the vendor cannot compact.
	Compacts() string
	// Compact asks the vendor for a compaction of all messages of p, by the rules of Generate.
	// The text of the answer is a JSON array: the content or the items that the vendor returned.
	Compact(ctx context.Context, p *Prompt) (*Answer, error)
}

var (
	// ErrTooLong means that the prompt exceeds the model's window.
	ErrTooLong = errors.New("the prompt is longer than the model's window")
	// ErrNoText means that the model answered without text.
	ErrNoText = errors.New("the model answered without text")
	// ErrQuota means that the provider may not ask a model again in this call: see [core.Quota].
	ErrQuota = errors.New("quota")
)

// A Prompt is a request to a model.
type Prompt struct {
	System string
	// Messages are oldest first; only Role and Parts are read. The last one is the user's.
	// Every tool call has its result in the next message.
	Messages []core.Message
	// Tools are the definitions of the tools that Messages call, a JSON array in the form
	// of the vendor's API; empty if no message holds a call, or if they are unknown.
	Tools string
	// MaxOutput limits the tokens of the answer; 0 means the model's own limit.
	MaxOutput int
	// Instructions replace the vendor's own for a compaction, if it takes any; empty leaves it to
	// the vendor. Only Compact reads it.
	Instructions string
	// Cached means that all messages but the last have been sent before in exactly this
	// form, so the vendor's prompt cache is worth using.
	Cached bool
	// Schema is a JSON schema that the answer must match; empty for text. Temperature is the model's own if it is nil, and so is Effort, of
	// reasoning (low, medium, high), if it is empty. The error of a model that lacks one of them wraps [errors.ErrUnsupported].
	Schema      string
	Temperature *float64
	Effort      string
}

// An Answer is a model's answer.
type Answer struct {
	Text      string     // without tool calls and reasoning
	Truncated bool       // the answer reached the limit of output tokens
	Usage     core.Usage // as counted by the vendor
}

// Info has the known properties of a model. Numbers are tokens; zero means unknown.
type Info struct {
	Name      string // for display
	Window    int    // context window: input and output together
	MaxOutput int    // longest answer
	Images    bool   // whether it reads images
	Price     Price  // of requests up to the first tier; zero means unknown unless Free is set
	Tiers     []Tier // higher prices of long requests, ascending
	Free      bool   // requests cost nothing
}

// A Price is in US dollars per million tokens.
type Price = core.Price

// A Quota limits the requests in one call to a provider.
type Quota = core.Quota

// A Tier is the price of a whole request whose input is longer than Above tokens.
type Tier struct {
	Above int   `json:"above"`
	Price Price `json:"price"`
}

// PriceFor returns the price of a request with the given number of input tokens.
func (i Info) PriceFor(input int) Price {
	p := i.Price
	for _, t := range i.Tiers {
		if input > t.Above {
			p = t.Price
		}
	}
	return p
}

// Charge returns u, the usage of one call, with its cost: USD if the price is known,
// otherwise Unpriced.
func (i Info) Charge(u core.Usage) core.Usage {
	p := i.PriceFor(u.InputTokens)
	u.USD, u.Unpriced = 0, 0
	if i.Free {
		return u
	}
	if p == (Price{}) {
		u.Unpriced = u.Calls
		return u
	}
	cached := cmp.Or(p.CacheRead, p.Input)
	u.USD = (float64(u.InputTokens-u.CachedTokens)*p.Input + float64(u.CachedTokens)*cached + float64(u.OutputTokens)*p.Output) / 1e6
	return u
}
