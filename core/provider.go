package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/size"
)

// A CondensationProvider shortens conversations. Implementations must:
//
//   - answer with messages that break none of the [Rules], and as close below
//     Budget.Target as they can;
//   - not keep req or anything that it points to after returning, and modify none of it;
//   - return promptly once ctx is done, with an error wrapping ctx.Err();
//   - be safe for concurrent use.
//
// Returning the messages unchanged is valid and means that nothing can be saved. After an
// error, the next provider is asked. The host does not use a provider's own numbers; it
// counts itself.
type CondensationProvider interface {
	Condense(ctx context.Context, req *Request) (*Result, error)
}

// ProviderFunc is a function that is a [CondensationProvider].
type ProviderFunc func(ctx context.Context, req *Request) (*Result, error)

// Condense calls f.
func (f ProviderFunc) Condense(ctx context.Context, req *Request) (*Result, error) {
	return f(ctx, req)
}

// A Result is a provider's answer.
type Result struct {
	// Messages replace the messages of the request, oldest first. See the package comment for the meaning of IDs.
	Messages []Message
	// State comes back in the next request about the conversation, [Request.State], if this result is applied, and is undone with it. It
	// has at most [MaxState] bytes; empty leaves the state as it was.
	State []byte
	// Later is why it is better not to condense yet, in a line, with the messages unchanged: "a task is half done". If the request may
	// wait, nothing is condensed, and the provider is asked again once the conversation has grown; else the next provider is asked.
	Later string
	// Usage is the provider's use of models.
	Usage Usage
	// Steps describe the provider's work, for reports; optional and unchecked.
	Steps []Step
}

// MaxState is the most bytes that a state may have.
const MaxState = 64 << 10

// A Step is part of a provider's report about its work, with its own numbers.
type Step struct {
	Name         string         `json:"name"`
	Looked       int            `json:"looked,omitempty"`  // pieces of content considered
	Changed      int            `json:"changed,omitempty"` // pieces of content changed
	Saved        map[string]int `json:"saved,omitempty"`   // tokens, by kind of content
	TokensBefore int            `json:"tokens_before,omitempty"`
	TokensAfter  int            `json:"tokens_after,omitempty"`
	Duration     time.Duration  `json:"-"`
	Note         string         `json:"note,omitempty"` // anything else
	// Warning is a loss that the user should know of: reports repeat it if the result is used.
	Warning string `json:"warning,omitempty"`
	// Handles are the handles that replace content; see [Handle].
	Handles []string `json:"-"`
}

// MarshalJSON writes the duration in milliseconds.
func (s Step) MarshalJSON() ([]byte, error) {
	type plain Step
	return json.Marshal(struct {
		plain
		MS float64 `json:"ms"`
	}{plain(s), float64(s.Duration.Microseconds()) / 1000})
}

// UnmarshalJSON reads the output of MarshalJSON, without loss. Times that do not fit a duration become zero.
func (s *Step) UnmarshalJSON(data []byte) error {
	type plain Step
	var j struct {
		plain
		MS float64 `json:"ms"`
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*s = Step(j.plain)
	s.Duration = 0
	if us := math.Round(j.MS * 1000); us >= 0 && us < math.MaxInt64/float64(time.Microsecond) {
		s.Duration = time.Duration(us) * time.Microsecond
	}
	return nil
}

// Usage is the sum of a provider's calls to language models.
type Usage struct {
	Calls        int     `json:"calls,omitempty"`
	InputTokens  int     `json:"input_tokens,omitempty"`
	OutputTokens int     `json:"output_tokens,omitempty"`
	CachedTokens int     `json:"cached_tokens,omitempty"` // of InputTokens
	USD          float64 `json:"usd,omitempty"`           // of the calls whose price is known
	Unpriced     int     `json:"unpriced,omitempty"`      // calls whose price is not known
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Calls:        u.Calls + v.Calls,
		InputTokens:  u.InputTokens + v.InputTokens,
		OutputTokens: u.OutputTokens + v.OutputTokens,
		CachedTokens: u.CachedTokens + v.CachedTokens,
		USD:          u.USD + v.USD,
		Unpriced:     u.Unpriced + v.Unpriced,
	}
}

type progressKey struct{}

// WithProgress returns a context with which [Progress] calls report. Reports may come from
// any goroutine, and after the call has ended.
func WithProgress(ctx context.Context, report func(fraction float64, text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Progress reports how far the call of ctx is: fraction is between 0 and 1, or negative if
// unknown. It does nothing without a listener.
func Progress(ctx context.Context, fraction float64, text string) {
	if report, ok := ctx.Value(progressKey{}).(func(float64, string)); ok {
		report(fraction, text)
	}
}

// A CostEstimator estimates the cost of a request before it is made.
type CostEstimator interface {
	EstimateCost(ctx context.Context, req *Request) (Usage, error)
}

// EstimateCost returns p's estimate for req. The error wraps [errors.ErrUnsupported] if p is
// no [CostEstimator].
func EstimateCost(ctx context.Context, p CondensationProvider, req *Request) (Usage, error) {
	if e, ok := p.(CostEstimator); ok {
		return e.EstimateCost(ctx, req)
	}
	return Usage{}, fmt.Errorf("estimate cost: %w", errors.ErrUnsupported)
}

// Close releases the resources of p if p is an [io.Closer].
func Close(p CondensationProvider) error {
	if c, ok := p.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

var (
	// ErrInvalidRequest means that the request itself is wrong.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrUnavailable means that a provider cannot work at the moment and did not try;
	// the chain skips it.
	ErrUnavailable = errors.New("unavailable")
)

// A ViolationError says how a result breaks a rule.
type ViolationError struct {
	Rule    string // one of [Rules]
	Message string // ID of the message concerned; empty if none or if it is new
	Detail  string
}

// Error returns the rule, the message and the fault.
func (e *ViolationError) Error() string {
	if e.Message == "" {
		return e.Rule + ": " + e.Detail
	}
	return fmt.Sprintf("%s: message %s: %s", e.Rule, e.Message, e.Detail)
}

// An ExhaustedError means that no provider of a chain brought the conversation to its limit.
// It unwraps to the errors of all attempts.
type ExhaustedError struct {
	Tokens   int // of the best valid result
	Limit    int
	Attempts []Attempt
}

// Error lists the attempts.
func (e *ExhaustedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no provider brought the conversation to its limit of %s tokens; it still has %s", size.Group(e.Limit), size.Group(e.Tokens))
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "; %s: %s", a.Provider, a.Outcome)
		if a.Reason != "" {
			b.WriteString(", " + a.Reason)
		}
	}
	return b.String()
}

// Unwrap returns the errors of the attempts that have one.
func (e *ExhaustedError) Unwrap() []error {
	var errs []error
	for _, a := range e.Attempts {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}
