package native

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// A scribe asks a model and adds up what that takes. It is safe for concurrent use.
type scribe struct {
	gen   model.Generator
	calls int // that may still be made

	mu    sync.Mutex
	usage core.Usage
}

// errCalls says that the model would have to be asked more often than the settings allow.
var errCalls = errors.New("max_calls is reached")

// generate asks the model once.
func (s *scribe) generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	left := s.calls
	s.calls--
	s.mu.Unlock()
	if left <= 0 {
		return nil, errCalls
	}
	a, err := s.gen.Generate(ctx, p)
	if a != nil {
		u := a.Usage
		s.mu.Lock()
		s.usage = s.usage.Add(u)
		s.mu.Unlock()
	}
	switch {
	case err == nil && a == nil:
		err = errors.New("neither an answer nor an error came back")
	case err == nil && strings.TrimSpace(a.Text) == "":
		err = model.ErrNoText
	}
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return a, fmt.Errorf("ask %s: %w", nameOf(s.gen), err)
	}
	return a, nil
}

// spent returns the sum of all answers so far.
func (s *scribe) spent() core.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// repeated is how much of the instructions an answer may repeat, in bytes: more than any
// heading or phrase that it would quote.
const repeated = 200

// tidy returns the summary that an answer holds: without the reasoning that some models
// write before it, and without tags around it. It is an error if nothing is left or if the
// model gave back what it was told.
func tidy(answer, instructions string) (string, error) {
	text := strings.TrimSpace(answer)
	for _, tag := range []string{"think", "thinking"} {
		if rest, ok := strings.CutPrefix(text, "<"+tag+">"); ok {
			_, after, _ := strings.Cut(rest, "</"+tag+">")
			text = strings.TrimSpace(after)
		}
	}
	if rest, ok := strings.CutPrefix(text, "<analysis>"); ok {
		if _, after, ok := strings.Cut(rest, "</analysis>"); ok && strings.TrimSpace(after) != "" {
			text = strings.TrimSpace(after)
		}
	}
	if rest, ok := strings.CutPrefix(text, "<summary>"); ok {
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "</summary>"))
	}
	if text == "" {
		return "", model.ErrNoText
	}
	if i := strings.TrimSpace(instructions); len(i) >= repeated && strings.Contains(text, i[:repeated]) {
		return "", errors.New("the model repeated its instructions in place of a summary")
	}
	return text, nil
}
