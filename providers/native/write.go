package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// write has the summaries of a plan written and returns the messages to send.
func (p *Provider) write(ctx context.Context, s *scribe, plan *plan) ([]core.Message, error) {
	tasks, designs, err := p.designs(plan)
	if err != nil {
		return nil, err
	}
	s.spare = p.c.MaxCalls
	for _, d := range designs {
		s.spare -= d.calls()
	}
	texts, err := gather(ctx, parallel, len(tasks), func(ctx context.Context, i int) (string, error) {
		return p.summarize(ctx, s, plan.req, &tasks[i], designs[i])
	})
	if err != nil {
		return nil, err
	}
	return p.compose(ctx, plan, texts)
}

// designs returns the requests of a plan, and the parts in which the model reads each. The error says that it
// cannot, or not within the calls that the settings allow.
func (p *Provider) designs(plan *plan) ([]task, []*design, error) {
	tasks := p.tasks(plan)
	designs := make([]*design, len(tasks))
	calls := 0
	for i := range tasks {
		d, err := p.design(plan.req, &tasks[i], p.window(plan.req))
		if err != nil {
			return nil, nil, err
		}
		designs[i] = d
		calls += d.calls()
	}
	if calls > p.c.MaxCalls {
		return nil, nil, fmt.Errorf("the conversation would have to be read in %d calls to %s, and max_calls allows %d", calls, nameOf(p.gen), p.c.MaxCalls)
	}
	return tasks, designs, nil
}

// tasks returns the requests of a plan: a summary of every section. Kept messages before a section are read
// too, if the settings say so and it is the beginning of the conversation: a summary is better if its author
// knows the task.
func (p *Provider) tasks(plan *plan) []task {
	tasks := make([]task, len(plan.sections))
	for n, section := range plan.sections {
		t := &tasks[n]
		t.tokens = min(plan.text, p.window(plan.req)/4)
		if most := p.gen.Info().MaxOutput; most > 0 {
			t.tokens = min(t.tokens, most)
		}
		t.fits = plan.room - plan.kept() + plan.recent()
		if n == 0 && p.c.readFirst {
			for i := range section[0] {
				if m := &plan.req.Messages[i]; m.Role != core.RoleSystem {
					t.messages = append(t.messages, *m)
				}
			}
		}
		t.messages = append(t.messages, plain.Each(section, func(i int) core.Message { return plan.req.Messages[i] })...)
	}
	if p.c.Request == requestPrefix && len(tasks) == 1 {
		last := plan.sections[0][len(plan.sections[0])-1]
		tasks[0].prefix = true
		tasks[0].kept = len(plan.req.Messages) - last - 1
	}
	return tasks
}

// gather calls f for 0 to n-1, so many at a time, and returns its answers in order. The first error ends the
// others.
func gather[T any](ctx context.Context, parallel, n int, f func(ctx context.Context, i int) (T, error)) ([]T, error) {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := make([]T, n)
	slots := make(chan struct{}, max(1, parallel))
	var wait sync.WaitGroup
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wait.Go(func() {
			defer func() {
				// A client is somebody else's code, and a panic here is beyond the reach of
				// the caller of the provider.
				if r := recover(); r != nil {
					cancel(fmt.Errorf("panic: %v", r))
				}
				<-slots
			}()
			v, err := f(ctx, i)
			if err != nil {
				cancel(err)
				return
			}
			out[i] = v
		})
	}
	wait.Wait()
	err := context.Cause(ctx)
	if caller.Err() != nil && !errors.Is(err, caller.Err()) {
		err = fmt.Errorf("%w: %w", caller.Err(), err)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// compose puts the summaries in their places and adds further information, as far as there is room.
func (p *Provider) compose(ctx context.Context, plan *plan, texts []string) ([]core.Message, error) {
	req := plan.req
	room := min(plan.room, plan.before-1)
	summaries := make([]core.Message, len(texts))
	for i, text := range texts {
		heading := strings.ReplaceAll(p.c.heading, "%d", strconv.Itoa(len(plan.sections[i])))
		summaries[i] = core.Message{Role: p.c.role, Kind: core.KindSummary, Parts: []core.Part{core.Text(core.Frame(Name) + "\n" + heading + dialog.HideTags(text))}}
	}
	last := &summaries[len(summaries)-1]
	add := func(text string) {
		if text != "" {
			last.Parts = append(last.Parts, core.Text(text))
		}
	}
	add(plan.workflows())
	var ack *core.Message
	if p.c.acknowledgement != "" {
		ack = &core.Message{Role: core.RoleAssistant, Kind: core.KindMarker, Parts: []core.Part{core.Text(p.c.acknowledgement)}}
		ack.Tokens = core.MessageTokens(req.Counter, *ack)
	}
	total := func() int {
		n := plan.kept()
		n += plain.Sum(summaries, func(x core.Message) int { return core.MessageTokens(req.Counter, x) })
		if ack != nil {
			n += ack.Tokens
		}
		return n
	}
	unread := 0
	for total() > room {
		n := plan.dropRecent()
		if n == 0 {
			return nil, tooLong(plan, total())
		}
		if unread += n; unread == n {
			last.Parts = append(last.Parts, core.Text(""))
		}
		last.Parts[len(last.Parts)-1] = core.Text(fmt.Sprintf("[… %d messages between this summary and what follows left out for want of room]", unread))
	}
	if err := p.addExtras(ctx, plan, last, room-total()); err != nil {
		return nil, err
	}
	for i := range summaries {
		summaries[i].Tokens = core.MessageTokens(req.Counter, summaries[i])
	}
	return plan.assemble(summaries, ack), nil
}

func tooLong(plan *plan, after int) error {
	if after >= plan.before {
		return fmt.Errorf("the summary saves nothing: %s tokens of messages would become %s", size.Group(plan.before), size.Group(after))
	}
	return fmt.Errorf("the summary is too long: %s tokens of messages would become %s, and %s are allowed", size.Group(plan.before), size.Group(after), size.Group(plan.room))
}

// addExtras adds to the last summary, as far as room allows: the place of the originals, the words of the user,
// the environment, signatures of files. No part of it is worth failing for.
func (p *Provider) addExtras(ctx context.Context, plan *plan, last *core.Message, room int) error {
	req := plan.req
	add := func(text string) bool {
		if text == "" {
			return true
		}
		if n := req.Counter.Count(core.Text(text)); n < room { // one is lost where parts meet
			last.Parts = append(last.Parts, core.Text(text))
			room -= n + 1
			return true
		}
		return false
	}
	add(plan.originalsNote())
	if budget := wordsBudget(req, &p.c); budget > 0 {
		block, lost := wordsBlock(req.Counter, plan.userWords(), min(budget, room))
		add(block)
		plan.lost = lost
	}
	state := framed(req.Environment)
	environment := p.c.environment && req.Trigger != core.TriggerManual && strings.TrimSpace(req.Environment) != ""
	reserve := 0
	if environment {
		if reserve = req.Counter.Count(core.Text(state)) + 1; reserve >= room/2 {
			environment, reserve = false, 0
		}
	}
	room -= reserve
	if chars := min(p.c.FoldedChars, room*charsPerToken); chars >= minFolded && len(req.FilesRead) > 0 && req.Dir != "" {
		blocks, err := p.fold(ctx, req, chars)
		if err != nil {
			return err
		}
		for _, b := range blocks {
			if !add(b) {
				break
			}
		}
	}
	if environment {
		last.Parts = append(last.Parts, core.Text(state))
	}
	return nil
}

// framed returns text with a frame if it would be read as the user's in a format that does not
// record who wrote it, as an environment without tags would.
func framed(text string) string {
	var talk dialog.AuthorReader
	m := userText(text)
	if slices.ContainsFunc(talk.Message(&m)[0], func(s dialog.Segment) bool { return s.Kind == dialog.KindUser }) {
		return core.Frame(Name) + "\n" + text
	}
	return text
}

// charsPerToken is the average of signatures; minFolded is the least size of a block that says anything.
const (
	charsPerToken = 4
	minFolded     = 200
)

// recent returns the tokens of the groups that stay only because they are recent.
func (p *plan) recent() int {
	n := 0
	for i := range p.groups {
		if p.groups[i].recent {
			n += p.groups[i].tokens
		}
	}
	return n
}
