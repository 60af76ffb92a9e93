package live_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/registry"
)

// A diary is a provider that keeps the newest third, and leaves in its state the text of the user that names the tenant, and a stroke for
// each condensation that was made.
type diary struct {
	mu     sync.Mutex
	faults []string
	names  map[string]string // the tenant of each conversation
	most   map[string]int    // strokes, by tenant
}

func (d *diary) Condense(_ context.Context, req *core.Request) (*core.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	tenant := tenantOf(req.Messages)
	was, strokes, _ := strings.Cut(string(req.State), " ")
	if len(req.State) > 0 && was != tenant {
		d.faults = append(d.faults, fmt.Sprintf("%s got the state of %s", tenant, was))
	}
	if of, ok := d.names[req.Conversation]; req.Conversation == "" || ok && of != tenant {
		d.faults = append(d.faults, fmt.Sprintf("%s has the conversation %q of %q", tenant, req.Conversation, of))
	}
	d.names[req.Conversation], d.most[tenant] = tenant, max(d.most[tenant], len(strokes)+1)
	n := len(req.Messages)
	return &core.Result{
		Messages: core.KeepGroups(req.Messages, func(i int) bool { return i == 0 || i >= n*2/3 }),
		State:    []byte(tenant + " " + strokes + "|"),
	}, nil
}

// tenantOf returns the first word of the conversation that begins with "tenant-".
func tenantOf(messages []core.Message) string {
	for i := range messages {
		for _, p := range messages[i].Parts {
			if t, ok := p.(core.Text); ok {
				for w := range strings.FieldsSeq(string(t)) {
					if strings.HasPrefix(w, "tenant-") {
						return w
					}
				}
			}
		}
	}
	return "nobody"
}

func (d *diary) options() *condense.Options {
	s := registry.Define("diary", "Keeps a state.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) { return d, nil })
	o := withWindow(window)
	o.Strategies, o.Values.Chain = []registry.Strategy{s}, []string{"diary"}
	o.Values.Providers = map[string]config.ProviderValues{"diary": {Strategy: "diary"}}
	return o
}

// The state that a provider leaves comes back in the next epoch of the conversation, though the gateway is another one before every
// request, and never in that of another tenant with the same session.
func TestStatesOfConversations(t *testing.T) {
	testkit.Slow(t)
	d := &diary{names: map[string]string{}, most: map[string]int{}}
	names := []string{"tenant-a", "tenant-b"}
	tokens := tokensFile(t, names...)
	file := filepath.Join(t.TempDir(), "live.db")
	epochs := 0
	for _, name := range names {
		v := httptest.NewServer(upstream.New(upstream.Options{Window: window, Script: upstream.Loop(45, 2200, nil)}))
		t.Cleanup(v.Close)
		c := claude("the-same-session")
		c.Header = http.Header{"X-Condense-Token": {tokens.of[name]}, "X-Api-Key": {"sk-ant-the-same-key"}}
		c.History = append(c.History, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": name + " wants the files read."}}})
		for calls := true; calls; {
			g, s := serveWith(t, v.URL, d.options(), func(o *live.Options) { o.Access.Tokens, o.Store.Path = tokens.path, file })
			s.Config.Handler = live.Settled(g)
			c.URL = s.URL
			var err error
			if _, calls, err = c.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Close()
			epochs += g.Stats().EpochCount
		}
		if d.most[name] < 2 {
			t.Errorf("%s: the state was told at most %d times", name, d.most[name]-1)
		}
	}
	if len(d.faults) > 0 || epochs < 4 {
		t.Errorf("in %d epochs: %q", epochs, d.faults)
	}
}

// A provider that wants to wait is asked again when the conversation has grown, and not when the vendor would refuse it: then the next one
// condenses. The gateway's log says why nothing was condensed.
func TestEpochsWait(t *testing.T) {
	testkit.Slow(t)
	var log lockedBuffer
	var mu sync.Mutex
	may, must := 0, 0
	s := registry.Define("patient", "Waits.", func() struct{} { return struct{}{} }, func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
		return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if req.MayWait {
				may++
			} else {
				must++
			}
			return &core.Result{Messages: req.Messages, Later: "a task is half done"}, nil
		}), nil
	})
	p := &play{vendor: upstream.New(upstream.Options{Window: window, Script: agentLoop}), client: new(claude("s"))}
	o := withWindow(window)
	o.Strategies, o.Values.Chain, o.Values.Threshold = []registry.Strategy{s}, []string{"patient", "smart"}, new(50.0)
	o.Values.Providers = map[string]config.ProviderValues{"patient": {Strategy: "patient"}}
	p.serve(t, o, func(o *live.Options) { o.Reports.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	p.begin(t)
	p.untilEpoch(t, 1)
	mu.Lock()
	defer mu.Unlock()
	if epochs := p.Stats().Epochs; may < 2 || must < 1 || epochs[0].Reason != "window" || epochs[0].Provider != "smart" {
		t.Errorf("asked %d times when it may wait and %d when not; epochs %+v", may, must, epochs)
	}
	if may > 60 || !strings.Contains(log.String(), `msg="epoch waits"`) || !strings.Contains(log.String(), "a task is half done") {
		t.Errorf("asked %d times, and the log is %s", may, log.String())
	}
}

// A conversation far below its window is condensed for the number of its messages, and again when as many are new.
func TestEpochForMessages(t *testing.T) {
	testkit.Slow(t)
	const most = 30
	p := &play{vendor: upstream.New(upstream.Options{Window: 200_000, Script: upstream.Loop(60, 600, nil)}), client: new(claude("s"))}
	o := withWindow(200_000)
	o.Values.MaxMessages = new(most)
	p.serve(t, o, nil)
	p.begin(t)
	var at []int // messages of the client at each epoch
	for calls := true; calls; {
		before := p.Stats().EpochCount
		var err error
		n := len(p.client.History)
		if _, calls, err = p.client.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.Stats().EpochCount > before {
			at = append(at, n)
		}
	}
	if len(at) < 3 {
		t.Fatalf("epochs at %v", at)
	}
	for i, n := range at {
		if i > 0 && n-at[i-1] < most/2 || i == 0 && n <= most {
			t.Errorf("epochs at %v messages, with max_messages %d", at, most)
		}
	}
	for _, e := range p.Stats().Epochs {
		if e.Reason != "max_messages" {
			t.Errorf("an epoch for %s: %+v", e.Reason, e)
		}
	}
}
