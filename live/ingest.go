package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/ingest"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
)

// ingest shortens tool results that were never sent. The shortened form depends only on the result's round of tools
// and on the user's newest message before it, so it is the same after a restart.
func (p *plan) ingest(ctx context.Context) error {
	o := p.req.s.Ingest
	if p.handles && o.MaxResult == 0 {
		o.MaxResult = p.req.s.Recall.MaxResult
	}
	if o.Off && o.MaxResult == 0 {
		return nil
	}
	var shortened [][]byte
	from := wire.OpenRound(p.req.parsed.Messages)
	short := sync.OnceValues(func() ([][]byte, error) { return p.req.shorten(ctx, from, o) })
	var errs error
	p.state.Shorten(p.req.parsed, p.req.rolling, func(i int) []byte {
		if i < from || len(p.req.parsed.Messages[i].Results) == 0 {
			return nil
		}
		all, err := short()
		if err != nil {
			errs = err
			return nil
		}
		if raw := all[i-from]; raw != nil && !p.req.isProtected(p.req.parsed.Messages[i].Raw) {
			p.ingested++
			shortened = append(shortened, raw)
			return raw
		}
		return nil
	})
	if errs != nil || !p.handles || len(shortened) == 0 {
		return errs
	}
	return p.keepRound(from, shortened)
}

// shorten returns the shorter forms of the messages from an index on; nil for messages that have none.
func (r *request) shorten(ctx context.Context, from int, o Ingest) ([][]byte, error) {
	host, err := r.g.ingesters.get(ctx, o)
	if err != nil {
		return nil, err
	}
	round := r.parsed.Messages[from:]
	api := wire.Of(r.parsed.API)
	raw := append(messages.Raw(round), rawjson.Append(nil, api.Said, ".")) // completes the round: the last request is never changed
	// The user's last message shows why the results are read.
	asked := 0
	for _, m := range slices.Backward(r.parsed.Messages[:from]) {
		if m.Role == "user" && m.Typed && len(m.Results) == 0 {
			raw, asked = slices.Insert(raw, 0, m.Raw), 1
			break
		}
	}
	doc, err := messages.Read(r.parsed.API, raw)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.s.Bounds.Deadline)
	defer cancel()
	turn := ingest.Turn()
	turn.NoRecall = !r.handles
	report, err := host.Manage(ctx, condense.ResumeConversation(doc.Journal), turn)
	short := make([][]byte, len(round))
	if err != nil || !report.Acted {
		return short, err
	}
	out, err := messages.Write(r.parsed.API, doc, true)
	if err != nil {
		return nil, err
	}
	var after []json.RawMessage
	if err := json.Unmarshal(out, &after); err != nil {
		return nil, err
	}
	if len(after) != len(raw) {
		return nil, fmt.Errorf("ingest: %d messages became %d", len(raw), len(after))
	}
	for i := range short {
		if now := after[asked+i]; len(round[i].Results) > 0 && len(now) < len(raw[asked+i]) {
			short[i] = now
		}
	}
	return short, nil
}

// ingesters caches the hosts that shorten results, by their options.
type ingesters struct {
	mu  sync.Mutex
	all map[Ingest]*condense.Host
}

func (g *ingesters) get(ctx context.Context, o Ingest) (*condense.Host, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.all[o]; h != nil {
		return h, nil
	}
	h, err := ingest.Open(context.WithoutCancel(ctx), ingest.Options{Lossless: !o.Off, MaxResult: o.MaxResult})
	if err != nil {
		return nil, err
	}
	if g.all == nil {
		g.all = map[Ingest]*condense.Host{}
	}
	g.all[o] = h
	return h, nil
}

func (g *ingesters) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, h := range g.all {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}
