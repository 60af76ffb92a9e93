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

// A scribe asks a model and adds up the usage. It is safe for concurrent use.
type scribe struct {
	gen model.Generator

	mu    sync.Mutex
	spare int // calls beyond the planned ones, for second attempts
	usage core.Usage
}

// again takes n calls from those that are not planned, if there are so many.
func (s *scribe) again(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.spare {
		return false
	}
	s.spare -= n
	return true
}

// generate asks the model once.
func (s *scribe) generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := s.gen.Generate(ctx, p)
	if a != nil {
		u := a.Usage
		if u.Calls == 0 && u.InputTokens+u.OutputTokens > 0 { // a client that leaves counting to others
			u.Calls = 1
			u = s.gen.Info().Charge(u)
		}
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
// model repeated its instructions.
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

// ask has one summary written. One that was cut off, or that is too long for its place, is
// asked for once more, shorter; if that is cut off too, it says so.
func (p *Provider) ask(ctx context.Context, s *scribe, counter core.Counter, t *task, prompt func(*task) *model.Prompt) (string, error) {
	write := func(t *task) (text string, cut bool, err error) {
		a, err := s.generate(ctx, prompt(t))
		if err != nil {
			return "", false, err
		}
		text, err = tidy(a.Text, p.prompt)
		return text, a.Truncated, err
	}
	text, cut, err := write(t)
	if err != nil {
		return "", err
	}
	long := counter.Count(core.Text(text)) > t.fits
	if !cut && !long {
		return text, nil
	}
	if !s.again(1) {
		return withCutNote(text, cut), nil
	}
	again := *t
	again.tokens = t.tokens * 3 / 5
	again.note = strings.TrimSpace(t.note + " A first attempt was too long. Say less about what is finished, and do not exceed the limit.")
	shorter, cutAgain, err := write(&again)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", err
	case err == nil && (!cutAgain || cut):
		text, cut = shorter, cutAgain
	}
	return withCutNote(text, cut), nil
}

// withCutNote returns text with a last line that says that it is not complete.
func withCutNote(text string, cut bool) string {
	if cut {
		text += "\n\n[The summary ends here because the model reached its limit; what happened last may be missing.]"
	}
	return text
}
