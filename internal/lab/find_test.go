package lab_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/tokens"
)

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, n := range []string{"a.json", "b.jsonl", "sub/c.json.gz", "sub/notes.txt", ".git/d.json", "task/api_conversation_history.json", "task/ui_messages.json"} {
		put(t, filepath.Join(dir, n), "[]")
	}
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{""}, "a.json b.jsonl sub/c.json.gz task/api_conversation_history.json"},
		{[]string{"a.json", "a.json"}, "a.json"},
		{[]string{"sub/notes.txt"}, "sub/notes.txt"}, // who names a file means it
		{[]string{"*.json*"}, "a.json b.jsonl"},
		{[]string{"s*"}, "sub/c.json.gz"},
	} {
		var paths []string
		for _, p := range c.paths {
			paths = append(paths, filepath.Join(dir, p))
		}
		items, err := lab.Find(paths...)
		if err != nil {
			t.Errorf("%v: %v", c.paths, err)
		}
		if s := below(t, dir, items); s != c.want {
			t.Errorf("%v: got %s, want %s", c.paths, s, c.want)
		}
	}
	if items, err := lab.Find("demo:"); err != nil || len(items) != len(lab.Demo()) {
		t.Errorf("demo: %d sessions, %v", len(items), err)
	}
	for _, p := range []string{filepath.Join(dir, "none.json"), filepath.Join(dir, "*.xyz"), filepath.Join(dir, ".git"), "demo:none"} {
		if items, err := lab.Find(p); err == nil && len(items) == 0 {
			t.Errorf("%s: neither sessions nor an error", p)
		}
	}
}

// A folder of links to sessions has transcripts.
func TestFindFollowsLinksButNotInCircles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "real", "a.json"), "[]")
	put(t, filepath.Join(dir, "real", "deep", "b.jsonl"), "")
	put(t, filepath.Join(dir, "real", ".git", "c.json"), "[]")
	for link, to := range map[string]string{
		"links/one.json":     "../real/a.json",
		"links/two":          "../real/deep",
		"links/nowhere.json": "../gone.json",
		"links/notes.txt":    "../real/a.json",
		"real/deep/up":       "../..",
		"real/deep/self":     ".",
		"all":                "real",
	} {
		name := filepath.Join(dir, link)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.FromSlash(to), name); err != nil {
			t.Skipf("links cannot be made here: %v", err)
		}
	}
	for _, c := range []struct{ path, want string }{
		{"real/deep", "real/deep/b.jsonl real/deep/up/all/a.json real/deep/up/links/nowhere.json real/deep/up/links/one.json"},
		{"all", "all/a.json all/deep/b.jsonl all/deep/up/links/nowhere.json all/deep/up/links/one.json"},
	} {
		items, err := lab.Find(filepath.Join(dir, c.path))
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
		if s := below(t, dir, items); s != c.want {
			t.Errorf("%s: got %s, want %s", c.path, s, c.want)
		}
	}
	// A broken link is a session that cannot be read, and the report lists it.
	items, err := lab.Find(filepath.Join(dir, "links"))
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, items, lab.Options{}, window("window", "budget"))
	if !slices.ContainsFunc(r.Skipped, func(s lab.Skipped) bool { return strings.HasSuffix(s.Name, "nowhere.json") }) {
		t.Errorf("the link that leads nowhere is not said: %v", r.Skipped)
	}
}

func TestParseBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"25%", "25%"},
		{" 12.5% ", "12.5%"},
		{"32k", "32k"},
		{"128000", "128k"},
		{"200123", "200123"},
		{"REAL", "real"},
		{"12.5%@real", "12.5%@real"},
		{"32k@real", ""},
		{"101%@real", ""},
		{"0%", ""},
		{"100%", ""},
		{"-3k", ""},
		{"12", ""},
		{"", ""},
		{"k", ""},
		{"NaN%", ""},
		{"x%", ""},
	} {
		b, err := lab.ParseBudget(c.in)
		if (err != nil) != (c.want == "") || err == nil && b.String() != c.want {
			t.Errorf("%q: got %s, %v, want %q", c.in, b, err, c.want)
		}
	}
}

func read(t *testing.T, name, text string) *score.Session {
	t.Helper()
	e, err := tokens.Open(tokens.Chars4)
	if err != nil {
		t.Fatal(err)
	}
	s, err := lab.ReadSession(strings.NewReader(text), name, tokens.NewCounter(e))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The authors of text are detected for formats that do not record them.
func TestReadSession(t *testing.T) {
	t.Parallel()
	s := read(t, "/logs/project-x/one.json", `[
		{"role":"user","content":[{"type":"text","text":"<environment_details>\nopen: a.go\n<slug>ask</slug>\n</environment_details>"},{"type":"text","text":"Fix it."}]},
		{"role":"assistant","content":[{"type":"text","text":"I read it."},{"type":"tool_use","id":"1","name":"read","input":{"path":"a.go"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"package a"}]},
		{"role":"user","content":[{"type":"text","text":"[read_file for 'a.go'] Result:"},{"type":"text","text":"package a"}]},
		{"role":"assistant","content":"Done."}]`)
	if s.ID != "one" || s.Source != "project-x" || s.Mode != "ask" {
		t.Errorf("ID %q, source %q, mode %q", s.ID, s.Source, s.Mode)
	}
	var got []string
	for i, m := range s.Messages {
		if m.Tokens == 0 {
			t.Errorf("message %d is not measured", i)
		}
		for p := range m.Parts {
			o := score.OriginUnknown
			if i < len(s.Origins) && p < len(s.Origins[i]) {
				o = s.Origins[i][p]
			}
			got = append(got, map[score.Origin]string{score.OriginUnknown: "-", score.OriginInjected: "injected", score.OriginTool: "tool"}[o])
		}
	}
	if s := strings.Join(got, ","); s != "injected,-,-,-,-,tool,tool,-" {
		t.Errorf("got %s", s)
	}
}

// The name of a session is that of its file, or of its folder where all files have the same name.
func TestSessionID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, id, source string }{
		{"/logs/project/one.jsonl.gz", "one", "project"},
		{"/roo/tasks/17/api_conversation_history.json", "17", "tasks"},
		{"/messages.json", "messages", "/"},
	} {
		if s := read(t, c.name, `[{"role":"user","content":"hello"}]`); s.ID != c.id || s.Source != c.source {
			t.Errorf("%s: ID %q, source %q, want %q and %q", c.name, s.ID, s.Source, c.id, c.source)
		}
	}
}

// Compactions are found where a journal recorded them, with what was kept.
func TestReadCompactions(t *testing.T) {
	t.Parallel()
	var messages []core.Message
	j := history.New()
	for i := range 6 {
		role := core.RoleUser
		if i%2 == 1 {
			role = core.RoleAssistant
		}
		messages = append(messages, core.Message{ID: fmt.Sprint("m", i), Role: role, Parts: []core.Part{core.Text(fmt.Sprint("text ", i))}, Time: still().Add(time.Duration(i) * time.Minute)})
	}
	if err := j.Append(messages[:4]...); err != nil {
		t.Fatal(err)
	}
	if err := j.Condense(history.Condensation{ID: "c", Time: still().Add(210 * time.Second), Edit: core.Edit{
		Hide:   []string{"m0", "m1"},
		Insert: []core.Insert{{Message: core.Message{ID: "s", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("It was about text.")}}}},
	}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(messages[4:]...); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := history.Encode(&b, j); err != nil {
		t.Fatal(err)
	}
	s := read(t, "j.condense", b.String())
	if len(s.Messages) != 6 || len(s.Compactions) != 1 {
		t.Fatalf("%d messages, compactions %+v, want 6 and one", len(s.Messages), s.Compactions)
	}
	is, left := s.Compactions[0], ""
	for _, m := range is.View {
		left += m.ID + " "
	}
	if is.At != 4 || is.KeptFrom != 2 || is.Summary != "It was about text." || left != "s m2 m3 " {
		t.Errorf("got %+v, left %s", is, left)
	}
}

func TestReadTrace(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"id":"x","source":"src","mode":"code","messages":[
		{"role":"user","origin":"human","content":[{"type":"text","text":"a","origin":"injected"},{"type":"text","text":"b","origin":"human"}]},
		{"role":"assistant","origin":"agent","content":[{"type":"text","text":"c","origin":"agent"}]}],
		"compactions":[{"at":2,"kept_from":1,"summary":"S"},{"at":2,"summary":null}]}`))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	s := read(t, "x.json.gz", packed.String())
	if s.ID != "x" || s.Source != "src" || s.Mode != "code" {
		t.Errorf("got %q of %q, mode %q", s.ID, s.Source, s.Mode)
	}
	if o := s.Origins[0]; len(o) != 2 || o[0] != score.OriginInjected || o[1] != score.OriginUser {
		t.Errorf("origins %v", o)
	}
	if len(s.Compactions) != 2 || fmt.Sprint(s.Compactions[0]) != fmt.Sprint(score.Compaction{At: 2, KeptFrom: 1, Summary: "S"}) || s.Compactions[1].KeptFrom != 2 {
		t.Errorf("compactions %v", s.Compactions)
	}
	e, err := tokens.Open(tokens.Chars4)
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{`{"source":"s","messages":[{"role":"user","origin":"human","content":"a"}],"compactions":[{"at":9}]}`, "\x1f\x8bno"} {
		if _, err := lab.ReadSession(strings.NewReader(broken), "b.json", tokens.NewCounter(e)); err == nil || !strings.Contains(err.Error(), "b.json") {
			t.Errorf("%q: got %v, want an error that names the file", broken, err)
		}
	}
}

func TestPlan(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	opts := lab.Options{Budgets: budgets(t, "25%"), Cache: t.TempDir(), Now: still, Repeat: 1}
	items := small()[:2]
	w := window("window", "budget")
	dear := lab.Strategy{Name: "dear", Provider: estimator{w.Provider}}
	p, err := lab.NewPlan(t.Context(), items, []lab.Strategy{w, dear}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	if p.Sessions != 2 || p.Rows < 4 || p.Cached != 0 || p.Usage.Calls != p.Rows/2 || p.ByStrategy["dear"] != p.Usage || strings.Join(p.Silent, " ") != "window" {
		t.Errorf("got %+v", p)
	}
	opts.Rounds = 5
	long := items[:0:0]
	for _, it := range lab.Demo() {
		if strings.Contains(it.Name, "super-bench") {
			long = append(long, it)
		}
	}
	one, err := lab.NewPlan(t.Context(), long, []lab.Strategy{dear}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	if n := one.Usage.Calls - one.Rows; n < 6 || n > 10 {
		t.Errorf("%d calls for five rounds, want two for each", n)
	}
	opts.Rounds = 0
	run(t, items, opts, w)
	if q, err := lab.NewPlan(t.Context(), items, []lab.Strategy{w, dear}, &opts); err != nil || q.Cached != p.Rows/2 {
		t.Errorf("after a run %d of %d rows are cached (%v)", q.Cached, q.Rows, err)
	}
}

type estimator struct{ core.CondensationProvider }

func (estimator) EstimateCost(_ context.Context, _ *core.Request) (core.Usage, error) {
	return core.Usage{Calls: 1, InputTokens: 100, USD: 0.5}, nil
}

// below returns the names of items relative to dir.
func below(t *testing.T, dir string, items []lab.Item) string {
	t.Helper()
	var names []string
	for _, it := range items {
		rel, err := filepath.Rel(dir, it.Name)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.ToSlash(rel))
	}
	return strings.Join(names, " ")
}
