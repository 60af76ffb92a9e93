package caller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// callback answers a callback of the plugin, or queues it.
func (c *call) callback(ctx context.Context, cb *condensepb.Callback, size int) error {
	limits := &c.client.opts.Limits
	refuse := func(as error, format string, args ...any) error {
		c.put(ctx, reply(cb, "", func(*condensepb.Reply) error { return marked{fmt.Errorf(format, args...), as} }))
		return nil
	}
	c.seen.callbacks++
	switch over := c.seen.callbacks - limits.Callbacks; {
	case over > excess:
		return broken("it goes on calling back, %d times above the limit of %d", over, limits.Callbacks)
	case over > 0:
		return refuse(errQuota, "more than %d callbacks in a call", limits.Callbacks)
	}
	opts, lacks := &c.client.opts, ""
	switch cb.GetCall().(type) {
	case *condensepb.Callback_CountTokens:
	case *condensepb.Callback_Generate, *condensepb.Callback_Embed:
		if err := c.client.Abilities().Check(core.AsksModels, "", "asks a language model"); err != nil {
			return err
		}
		if cb.GetGenerate() != nil && opts.Model == nil || cb.GetEmbed() != nil && opts.Embedder == nil {
			lacks = "has no language model to plugins"
		}
	case *condensepb.Callback_Hidden, *condensepb.Callback_Run, *condensepb.Callback_File:
		if c.req.Hidden == nil && cb.GetHidden() != nil || c.req.File == nil && cb.GetFile() != nil || opts.Run == nil && cb.GetRun() != nil {
			lacks = "does not answer it"
		}
	default:
		lacks = "does not know the request"
	}
	if lacks != "" {
		return refuse(errors.ErrUnsupported, "this host %s", lacks)
	}
	if c.countable -= size; c.countable < 0 {
		return refuse(errQuota, "more than %d bytes to count or to read in a call", limits.CountBytes)
	}
	if cb.GetCountTokens() != nil {
		c.enqueue(ctx, cb)
		return nil
	}
	if c.models == nil {
		c.models = &modelUse{call: c, slots: make(chan struct{}, concurrentModels), input: limits.ModelInput, output: limits.ModelOutput}
	}
	c.models.enqueue(ctx, cb)
	return nil
}

// callbacks names the callbacks that are answered beside count_tokens and generate; schema is that of a Generate.
func (c *call) callbacks() []string {
	names := []string{"schema"}
	for i, answered := range []bool{c.req.Hidden != nil, c.client.opts.Run != nil, c.client.opts.Embedder != nil, c.req.File != nil} {
		if answered {
			names = append(names, []string{"hidden", "run", "embed", "file"}[i])
		}
	}
	return names
}

// excess is how many callbacks above the limit a plugin may have open when it learns of the
// limit.
const excess = 1000

// put queues r for sending.
func (c *call) put(ctx context.Context, r *condensepb.Reply) {
	select {
	case c.replies <- r:
	case <-ctx.Done():
	}
}

// enqueue has cb answered by another goroutine: counting takes time, and receiving must
// continue so that the end of ctx is detected.
func (c *call) enqueue(ctx context.Context, cb *condensepb.Callback) {
	if c.work == nil {
		c.work = make(chan *condensepb.Callback, waiting)
		counter := itemCounter{slices.Clone(c.req.Messages), c.req.Counter, c.answer.at}
		go func() { // not waited for: a counter cannot be canceled
			for {
				select {
				case <-ctx.Done():
					return
				case cb := <-c.work:
					c.put(ctx, counter.reply(ctx, cb))
				}
			}
		}()
	}
	select {
	case c.work <- cb:
	case <-ctx.Done():
	}
}

// An itemCounter counts for a plugin. It shares no data with the request that the owner of
// the request could change: it may outlive the call.
type itemCounter struct {
	messages []core.Message
	counter  core.Counter
	at       map[string]int
}

func (c *itemCounter) reply(ctx context.Context, cb *condensepb.Callback) *condensepb.Reply {
	return reply(cb, "counting", func(r *condensepb.Reply) error {
		items := cb.GetCountTokens().GetItems()
		counts := &condensepb.TokenCounts{Tokens: make([]int64, len(items)), FramingTokens: core.FramingTokens}
		work := 0 // messages summed, so that a million ranges over all messages are refused
		for i, item := range items {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := c.count(item, &work)
			if err != nil {
				return marked{fmt.Errorf("item %d: %w", i, err), errInvalid}
			}
			counts.Tokens[i] = int64(n)
		}
		r.Result = &condensepb.Reply_TokenCounts{TokenCounts: counts}
		return nil
	})
}

// reply returns the reply to cb that do completes. A panic, of a part of the host with this name, makes only this reply fail.
func reply(cb *condensepb.Callback, name string, do func(*condensepb.Reply) error) (r *condensepb.Reply) {
	fail := func(err error) {
		e := &condensepb.CallbackError{Code: condensepb.CallbackError_CODE_FAILED, Message: byhand.Valid(err.Error())}
		for _, c := range generateCodes {
			if errors.Is(err, c.err) {
				e.Code = c.code
				break
			}
		}
		r = &condensepb.Reply{Id: cb.GetId(), Result: &condensepb.Reply_Error{Error: e}}
	}
	defer func() {
		if p := recover(); p != nil {
			fail(fmt.Errorf("%s: %v", name, p))
		}
	}()
	r = &condensepb.Reply{Id: cb.GetId()}
	if err := do(r); err != nil {
		fail(err)
	}
	return r
}

// A marked error counts as another, whose text it lacks.
type marked struct {
	error

	as error
}

// Is reports whether it counts as target.
func (m marked) Is(target error) bool { return target == m.as }

// maxSummed is how many messages the ranges of one callback may have together.
const maxSummed = 10_000_000

func (c *itemCounter) count(item *condensepb.CountItem, work *int) (int, error) {
	switch k := item.GetKind().(type) {
	case *condensepb.CountItem_Messages:
		first, last, err := span(c.at, k.Messages)
		if err != nil {
			return 0, err
		}
		if *work += last - first + 1; *work > maxSummed {
			return 0, fmt.Errorf("ranges of more than %d messages together", maxSummed)
		}
		sum := 0
		for i := first; i <= last; i++ {
			sum += c.messages[i].Tokens
		}
		return sum, nil
	case *condensepb.CountItem_Part:
		i, err := index(c.at, k.Part.GetMessage())
		if err != nil {
			return 0, err
		}
		parts := c.messages[i].Parts
		if n := k.Part.GetPart(); uint64(n) < uint64(len(parts)) {
			return c.counter.Count(parts[n]), nil
		}
		return 0, fmt.Errorf("message %q has no part %d", k.Part.GetMessage(), k.Part.GetPart())
	case *condensepb.CountItem_Content:
		parts, err := fromParts(k.Content.GetParts())
		if err != nil {
			return 0, err
		}
		return c.counter.Count(parts...), nil
	default:
		return 0, errors.New("of a kind that this host does not know")
	}
}

// maxLine is in bytes.
const maxLine = 8 << 10

// logLevel returns the lowest level that the host's log records.
func (c *call) logLevel(ctx context.Context) string {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if c.client.opts.Logger.Enabled(ctx, l) {
			return wire.LevelName(l)
		}
	}
	return wire.LevelName(slog.LevelError)
}

// log writes a record of the plugin to the host's log.
func (c *call) log(ctx context.Context, l *condensepb.Log) {
	limit := c.client.opts.Limits.LogLines
	switch c.seen.lines++; {
	case c.seen.lines > limit+1:
		return
	case c.seen.lines > limit:
		c.client.opts.Logger.WarnContext(ctx, "the plugin logs too much; the rest of this call is dropped", "lines", limit)
		return
	}
	room := maxLine
	text := func(b []byte) string {
		s := string(b[:min(len(b), room)])
		room -= len(s)
		return line(s, maxLine)
	}
	message := text(l.GetMessage())
	var attrs []slog.Attr
	for _, f := range l.GetFields() {
		if room <= 0 {
			break
		}
		attrs = append(attrs, slog.String(text([]byte(f.GetKey())), text(f.GetValue())))
	}
	c.client.opts.Logger.LogAttrs(ctx, wire.Levels[l.GetLevel()], message, attrs...) //nolint:sloglint // the message is the plugin's
}

// line returns a text of the plugin as one line of at most the given number of bytes.
func line(s string, most int) string {
	s = strings.Join(strings.Fields(printable(byhand.Valid(s[:min(len(s), 4*most)]))), " ") // cleaning more is a waste
	return strings.ToValidUTF8(s[:min(len(s), most)], "")                                   // a character that was cut
}

// progress reports the progress of the plugin to the host.
func (c *call) progress(ctx context.Context, p *condensepb.Progress) {
	if c.client.opts.Progress == nil {
		return
	}
	f := -1.0
	if p.Fraction != nil && !math.IsNaN(p.GetFraction()) {
		f = min(max(p.GetFraction(), 0), 1)
	}
	c.client.opts.Progress(ctx, Progress{Fraction: f, Text: line(p.GetText(), maxProgress)})
}

// maxProgress is in bytes.
const maxProgress = 200
