package score_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/tokens"
)

// bytes4 takes four bytes for a token.
type bytes4 struct{}

func (bytes4) Count(parts ...core.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			n += len(p) / 4
		case core.ToolCall:
			n += (len(p.Name) + len(p.Args)) / 4
		case core.ToolResult:
			n += bytes4{}.Count(p.Content...)
		default:
		}
	}
	return n
}

func user(text string) core.Message {
	return core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}
}

func agent(parts ...core.Part) core.Message {
	return core.Message{Role: core.RoleAssistant, Parts: parts}
}

func call(id, name, args string) core.Part { return core.ToolCall{ID: id, Name: name, Args: args} }

func result(id, text string) core.Message {
	return core.Message{Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(text)}}}}
}

// cutAt returns the scorer of a session of before and after, and before.
func cutAt(t *testing.T, before, after []core.Message, change func(*score.Session)) *score.Scorer {
	t.Helper()
	s := &score.Session{ID: "s", Source: "here", Messages: append(append([]core.Message(nil), before...), after...)}
	for range 8 { // a cut needs a future
		s.Messages = append(s.Messages, agent(core.Text("ok")), user("go on"))
	}
	for i := range s.Messages {
		s.Messages[i].ID = fmt.Sprint("m", i)
	}
	if change != nil {
		change(s)
	}
	core.Measure(bytes4{}, s.Messages)
	cut, ok := score.CutAt(s, "test", len(before))
	if !ok {
		t.Fatal("no cut")
	}
	return score.NewScorer(cut, nil)
}

func needs(s *score.Scorer) string {
	var out []string
	for _, n := range s.Needs(nil) {
		out = append(out, n.Text)
	}
	return strings.Join(out, " ")
}

var before = []core.Message{
	user("Please fix the reader of records. Never touch the generated files."),
	agent(core.Text("I look at it."), call("1", "read_file", `{"path":"lib/reader.go"}`)),
	result("1", "package lib\n\nfunc readRecord(b []byte) error {\n\treturn decodeHeader(b)\n}\n\nfunc closeReader() {}\n"),
	agent(core.Text("The fault is in the header."), call("2", "run", `{"command":"make check"}`)),
	result("2", "FAIL: TestHeader: bad magic 48879\nexit status 1"),
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		after []core.Message
		want  string
		with  func(*score.Session)
	}{
		{"the agent writes it", []core.Message{agent(core.Text("now decodeHeader returns"))}, "decodeHeader", nil},
		{"the person writes it", []core.Message{agent(core.Text("ok")), user("what of decodeHeader here")}, "decodeHeader", nil},
		{"it is in arguments", []core.Message{agent(call("3", "read_file", `{"path":"./lib/reader.go"}`))}, "reader.go", nil},
		{"a result has it first", []core.Message{agent(call("3", "run", `{"command":"ls"}`)), result("3", "decodeHeader reader.go"), agent(core.Text("so decodeHeader it is"))}, "", nil},
		{"only a result has it", []core.Message{agent(call("3", "run", `{"command":"ls"}`)), result("3", "decodeHeader")}, "", nil},
		{"it was not there before", []core.Message{agent(core.Text("now encodeHeader returns"))}, "", nil},
		{"the name of a tool", []core.Message{agent(core.Text("with read_file again"))}, "", nil},
		{"the system prompt has it", []core.Message{agent(core.Text("now decodeHeader returns"))}, "", func(s *score.Session) { s.System = "Mind decodeHeader." }},
		{"it was injected", []core.Message{agent(core.Text("ok")), user("what of decodeHeader here")}, "", func(s *score.Session) {
			s.Origins = make([][]score.Origin, len(s.Messages))
			s.Origins[len(before)+1] = []score.Origin{score.OriginInjected}
		}},
	} {
		if got := needs(cutAt(t, before, c.after, c.with)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// What a unit is worth, by what it is in.
func TestCredit(t *testing.T) {
	t.Parallel()
	s := cutAt(t, before, []core.Message{agent(core.Text("now decodeHeader returns"))}, nil)
	for _, c := range []struct {
		name          string
		text          string
		present       bool
		credit, least float64
	}{
		{"nothing", "", false, 0, 0},
		{"bare", "decodeHeader", true, 0, 0},
		{"a list", "reader.go decodeHeader readRecord TestHeader lib/reader.go 48879", true, 0, 0},
		{"the line", "return decodeHeader(b)", true, 0.5, 0},
		{"the line and the next", "return decodeHeader(b)\n}\n\nfunc closeReader() {}", true, 0.75, 0},
		{"the line and both", "func readRecord(b []byte) error {\n\treturn decodeHeader(b)\n}\nfunc closeReader() {}", true, 1, 0},
		{"another order", "return decodeHeader(b)\nfunc readRecord(b []byte) error {", true, 0.5, 0},
		{"a sentence", "The reader of a record is wrong because decodeHeader does return an error of its own.", true, 1, 0},
		{"a sentence about something else", "It was a dark and stormy night when decodeHeader came to the old town.", true, 0, 0},
		{"words around a copy", "see: package lib func readRecord(b []byte) error { return decodeHeader(b) } and more", true, 0, 0.25},
	} {
		n := s.Needs([]core.Message{user(c.text)})[0]
		if n.Present != c.present {
			t.Errorf("%s: present %v, want %v", c.name, n.Present, c.present)
		}
		if c.least > 0 {
			if n.Credit < c.least {
				t.Errorf("%s: credit %.2f, want %.2f or more", c.name, n.Credit, c.least)
			}
		} else if math.Abs(n.Credit-c.credit) > 1e-9 {
			t.Errorf("%s: credit %.2f, want %.2f", c.name, n.Credit, c.credit)
		}
	}
}

func TestUserWords(t *testing.T) {
	t.Parallel()
	s := cutAt(t, before, nil, nil)
	for _, c := range []struct {
		name string
		view core.Message
		want float64
	}{
		{"all", before[0], 1},
		{"one of two", user("Never touch the generated files."), 5.0 / 11},
		{"other words", user("Leave what is generated alone."), 0},
		{"said by the agent", agent(core.Text("Never touch the generated files.")), 0},
	} {
		got, _ := s.Score([]core.Message{c.view}).UIR.Value()
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: got %.3f, want %.3f", c.name, got, c.want)
		}
	}
}

func TestArtefactsAndErrors(t *testing.T) {
	t.Parallel()
	s := cutAt(t, before, nil, nil)
	for _, c := range []struct {
		name             string
		view             []core.Message
		artefacts, fails float64
	}{
		{"all", before, 1, 1},
		{"nothing", nil, 0, 0},
		{"the name", []core.Message{user("reader.go was read")}, 0.5, 0},
		{"the content", before[2:3], 0.5, 0},
		{"the error", []core.Message{user("FAIL: TestHeader: bad magic 48879")}, 0, 1},
	} {
		score := s.Score(c.view)
		a, _ := score.Artefacts.Value()
		e, _ := score.Errors.Value()
		if a != c.artefacts || e != c.fails {
			t.Errorf("%s: artefacts %.2f, errors %.2f, want %.2f and %.2f", c.name, a, e, c.artefacts, c.fails)
		}
	}
}

// Calls that are written as XML in the text are calls, too.
func TestArtefactsInXML(t *testing.T) {
	t.Parallel()
	said := []core.Message{
		user("Write it."),
		agent(core.Text("I read it.\n<read_file>\n<path>lib/old.go</path>\n</read_file>")),
		user("[read_file for 'lib/old.go'] Result:\npackage old\n\nvar Answer = 42\n"),
		agent(core.Text("<write_to_file>\n<path>lib/new.go</path>\n<content>\npackage new\n\nvar Reply = 43\n</content>\n</write_to_file>")),
		user("[write_to_file for 'lib/new.go'] Result:\nThe content was saved."),
	}
	s := cutAt(t, said, nil, func(s *score.Session) {
		s.Origins = make([][]score.Origin, len(s.Messages))
		s.Origins[2], s.Origins[4] = []score.Origin{score.OriginTool}, []score.Origin{score.OriginTool}
	})
	for _, c := range []struct {
		name string
		view []core.Message
		want float64
	}{
		{"all", said, 1},
		{"one file's last state", []core.Message{user("package new\nvar Reply = 43")}, 0.25},
		{"both names", []core.Message{user("old.go new.go")}, 0.5},
		{"neither", nil, 0},
	} {
		if a, ok := s.Score(c.view).Artefacts.Value(); !ok || a != c.want {
			t.Errorf("%s: got %.2f (%v), want %.2f", c.name, a, ok, c.want)
		}
	}
}

func TestPairErrors(t *testing.T) {
	t.Parallel()
	s := cutAt(t, before, nil, nil)
	for _, c := range []struct {
		name string
		view []core.Message
		want int
	}{
		{"as it was", before, 0},
		{"a result alone", before[2:3], 1},
		{"a call alone", append(append([]core.Message(nil), before[1]), before[3:]...), 1},
		{"twice", append(append([]core.Message(nil), before[1:3]...), before[1:3]...), 2},
		{"blank", []core.Message{user("")}, 1},
	} {
		if got := s.Score(c.view).PairErrors; got != c.want {
			t.Errorf("%s: %d faults, want %d", c.name, got, c.want)
		}
	}
}

// scorers returns those of the recorded sessions of the repository, or of
// CONDENSE_TRACES_DIR, and a counter by the same encoding.
func scorers(t *testing.T, encoding string) ([]*score.Scorer, core.Counter) {
	t.Helper()
	dir := os.Getenv("CONDENSE_TRACES_DIR")
	if dir == "" {
		dir = "../demo"
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sessions in %s (%v)", dir, err)
	}
	e, err := tokens.Open(encoding)
	if err != nil {
		t.Fatal(err)
	}
	var out []*score.Scorer
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		c := tokens.NewCounter(e)
		s, err := lab.ReadSession(f, name, c)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range score.Cuts(s, c) {
			checkCut(t, cut)
			out = append(out, score.NewScorer(cut, score.Common()))
		}
	}
	return out, tokens.NewCounter(e)
}

func checkCut(t *testing.T, c score.Cut) {
	t.Helper()
	s := c.Session
	turns := 0
	for _, m := range s.Messages[c.At:] {
		if m.Role == core.RoleAssistant {
			turns++
		}
	}
	if turns < 5 || c.Compaction < 0 && (turns < 6 || s.Messages[c.At].Role != core.RoleAssistant) {
		t.Errorf("%s %s: %d turns follow, first a message of %s", s.ID, c.Name, turns, s.Messages[c.At].Role)
	}
	if c.Compaction < 0 && len(s.Compactions) > 0 && c.At > s.Compactions[0].At {
		t.Errorf("%s %s: behind the first compaction", s.ID, c.Name)
	}
	if window := map[string]int{"32k": 32_000, "64k": 64_000, "100k": 100_000}[c.Name]; window > 0 && c.Tokens > window {
		t.Errorf("%s %s: %d tokens", s.ID, c.Name, c.Tokens)
	}
}

// Everything is 1, nothing is 0, more is never less, and everything is the best.
func TestRecordedSessions(t *testing.T) {
	t.Parallel()
	list, _ := scorers(t, tokens.Chars4)
	for _, s := range list {
		cut := s.Cut()
		name := cut.Session.ID + " " + cut.Name
		all := s.Score(cut.Prefix())
		best, ok := all.Panel()
		if ok && math.Abs(best-1) > 1e-9 {
			t.Errorf("%s: everything scores %v", name, best)
		}
		if v, ok := all.UIR.Value(); ok && v != 1 {
			t.Errorf("%s: everything has %v of the user's words", name, v)
		}
		if all.PairErrors != 0 || all.Foretold.Kept != 0 {
			t.Errorf("%s: everything has %d faults and foretells %v", name, all.PairErrors, all.Foretold.Kept)
		}
		if p, _ := s.Score(nil).Panel(); p != 0 {
			t.Errorf("%s: nothing scores %v", name, p)
		}
		rng := rand.New(rand.NewPCG(1, uint64(cut.At)))
		var some, more []core.Message
		for _, m := range cut.Prefix() {
			switch rng.IntN(3) {
			case 0:
				some, more = append(some, m), append(more, m)
			case 1:
				more = append(more, m)
			}
		}
		fewer, greater := s.Score(some), s.Score(more)
		a, ok := fewer.Panel()
		b, _ := greater.Panel()
		if ok && a > b+1e-9 {
			t.Errorf("%s: more messages score %.4f, fewer %.4f", name, b, a)
		}
		budget := cut.Tokens / 10
		for other, view := range map[string][]core.Message{
			"random lines": s.RandomLines(budget, 1, bytes4{}), "random groups": randomGroups(cut.Prefix(), budget, 1), "keep last": score.KeepLast(cut.Prefix(), budget, bytes4{}),
		} {
			if p, _ := s.Score(view).Panel(); ok && p > best+1e-9 {
				t.Errorf("%s: %s scores %.3f, everything %.3f", name, other, p, best)
			}
		}
	}
}
