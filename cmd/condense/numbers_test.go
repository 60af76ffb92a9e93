package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/transcript"
)

// A story is a conversation that goes on in files of several formats. Its messages are as the files had them.
type story struct {
	said  []core.Message
	calls int
}

// more returns more messages: each a call and its result, with words of its own.
func (s *story) more(n int) (all []core.Message) {
	all = append(all, core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(fmt.Sprintf("Now service %d: why does its pump of type %d stop? Look at all its logs.", s.calls, 7000+s.calls))}})
	for range n {
		s.calls++
		id := fmt.Sprintf("call_%d", s.calls)
		var log strings.Builder
		for line := range 60 {
			fmt.Fprintf(&log, "service%d.go:%d: pump_%d reported pressure %d of valve_%d\n", s.calls, line+1, s.calls*100+line, s.calls*line+13, line*s.calls)
		}
		all = append(all,
			core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: id, Name: "bash", Args: fmt.Sprintf(`{"command":"cat service%d.log"}`, s.calls)}}},
			core.Message{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(log.String())}}}})
	}
	return append(all, core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.Text(fmt.Sprintf("The pump of service %d stops because valve_%d is shut.", s.calls, s.calls*39))}})
}

func readFile(t *testing.T, path, format string) *transcript.Document {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Format: format})
	must(t, err)
	return d
}

// goOn adds turns to a session in a file, which is new if it is not there, and remembers them as the next program reads them.
func (s *story) goOn(t *testing.T, path, format string, n int) {
	t.Helper()
	d := &transcript.Document{Format: format, Journal: history.New()}
	if _, err := os.Stat(path); err == nil {
		d = readFile(t, path, format)
	}
	before := len(d.Journal.Messages())
	for range n {
		for i, m := range s.more(3) {
			m.ID = fmt.Sprintf("more-%d-%d", s.calls, i)
			must(t, d.Journal.Append(m))
		}
	}
	var b bytes.Buffer
	_, err := d.Write(&b, format)
	must(t, err)
	must(t, os.WriteFile(path, b.Bytes(), 0o600))
	s.said = append(s.said, readFile(t, path, format).Journal.Messages()[before:]...)
}

// numbersIn returns the numbers that a session's view promises.
func numbersIn(t *testing.T, path, format string) (all []string) {
	t.Helper()
	view := readFile(t, path, format).Journal.View()
	for r := range recall.Mentioned(view) {
		if r.Handle == "" {
			all = append(all, r.String())
		}
	}
	for _, r := range recall.Trailing(view) {
		all = append(all, r.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unitOf matches a unit of the contents: its number and the file that it names.
var unitOf = regexp.MustCompile(`(m[0-9.]+(?:-m[0-9]+)?) (?:bash )?cat (service[0-9]+)\.log`)

// check recalls numbers from the file, and compares the content with the messages that were said and with what the view in the file
// says of it.
func (s *story) check(t *testing.T, path, format string, numbers []string) {
	t.Helper()
	named, session := map[string]string{}, path
	if name := strings.TrimSuffix(filepath.Base(path), ".json"); strings.HasPrefix(name, "ses_") {
		session = name // it is in no file that condense knows
	}
	for _, m := range readFile(t, path, format).Journal.View() {
		for _, p := range m.Parts {
			text, _ := p.(core.Text)
			for _, unit := range unitOf.FindAllStringSubmatch(string(text), -1) {
				named[unit[1]] = "cat " + unit[2] + ".log"
			}
		}
	}
	for _, number := range numbers {
		from, to, isRange := strings.Cut(number, "-")
		_, nth, _ := strings.Cut(from, ".")
		first, last := at(from), at(from)
		if isRange {
			last = at(to)
		}
		if first < 1 || last > len(s.said) {
			t.Errorf("%s: there are %d messages", number, len(s.said))
			continue
		}
		var got []struct{ Text string }
		out := in(t, "recall", session, number, "--json")
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&got); err != nil { // warnings follow
			t.Errorf("%s: %s", number, out)
			continue
		}
		if !strings.Contains(out, named[number]) {
			t.Errorf("%s has no %q but %.200q", number, named[number], out)
		}
		for _, m := range s.said[first-1 : last] {
			results := 0
			for _, p := range m.Parts {
				want := ""
				switch p := p.(type) {
				case core.Text:
					want = string(p)
				case core.ToolResult:
					if results++; nth == "" || nth == strconv.Itoa(results) {
						want = string(p.Content[0].(core.Text))
					}
				default:
				}
				if want != "" && (nth == "" || results > 0) && !slices.ContainsFunc(got, func(g struct{ Text string }) bool { return g.Text == want }) {
					t.Errorf("%s has no %.60q but %.200q", number, want, out)
				}
			}
		}
	}
}

// TestNumbersOfFiles: from each format to each other and back, three times, each number in a view brings the message at its place of the
// conversation from its beginning, at once and after the next agent went on. Outside of `make night`, from each to three.
func TestNumbersOfFiles(t *testing.T) {
	testkit.Slow(t)
	alone(t)
	var formats []string
	for _, f := range transcript.Formats() {
		if !f.ReadOnly {
			formats = append(formats, f.Name)
		}
	}
	done := map[[2]string]bool{}
	for step := range formats {
		if !testkit.Night() && !slices.Contains([]int{0, 1, 5}, step) {
			continue
		}
		for first, from := range formats {
			if done[[2]string{from, formats[(first+step)%len(formats)]}] {
				continue
			}
			t.Run(fmt.Sprint(from, " ", step), func(t *testing.T) {
				var s story
				dir, format := t.TempDir(), from
				path := filepath.Join(dir, "0")
				s.goOn(t, path, format, 16)
				for round := 1; round <= 3; round++ {
					next, to := filepath.Join(dir, strconv.Itoa(round)), formats[(first+round*step)%len(formats)]
					done[[2]string{format, to}] = true
					if out := in(t, "run", path, "--format", format, "--to", to, "-o", next, "--originals", "parts", "--force", "--window", "12k", "--max-output", "1k"); !smartApplied.MatchString(out) {
						t.Fatal(out)
					}
					path, format = next, to
					numbers := numbersIn(t, path, format)
					if last := strings.Split(slices.MaxFunc(numbers, func(a, b string) int { return at(a) - at(b) }), "-"); len(numbers) < 10 || at(last[len(last)-1]) < len(s.said)/2 {
						t.Errorf("round %d, %d messages: %q", round, len(s.said), numbers)
					}
					for i := range 8 { // all of them take minutes
						s.check(t, path, format, numbers[i*(len(numbers)-1)/7:][:1])
					}
					s.goOn(t, path, format, 6)
					s.check(t, path, format, numbers[len(numbers)/2:][:2])
				}
			})
		}
	}
}

var smartApplied = regexp.MustCompile(`smart +applied`)

// at returns the first message of a number.
func at(number string) int {
	n, _ := strconv.Atoi(strings.FieldsFunc(number, func(r rune) bool { return strings.ContainsRune("m.-", r) })[0])
	return n
}

// TestNumbersAfterHandoffs: the same for sessions that are handed from each agent to each other, on and back, and for the server that the
// agent starts. Outside of `make night`, each agent hands to two others.
func TestNumbersAfterHandoffs(t *testing.T) {
	testkit.Slow(t)
	alone(t)
	here, err := os.Getwd()
	must(t, err)
	t.Setenv("PATH", here+string(filepath.ListSeparator)+os.Getenv("PATH"))
	must(t, os.WriteFile("opencode", []byte("#!/bin/sh\ncase $1 in export) cat $HOME/$2.json;; import) cp $2 $HOME && basename $2;; esac\n"), 0o700))
	all := slices.DeleteFunc(sessions.Agents(), func(a *sessions.Agent) bool { return a.ReadOnly })
	pathOf := func(a *sessions.Agent, id, said string) string {
		if a.InFiles() {
			return said
		}
		return filepath.Join(here, id+".json")
	}
	for i, from := range all {
		for k, to := range all {
			if from == to || !testkit.Night() && k != (i+1)%len(all) {
				continue
			}
			t.Run(from.Name+" "+to.Name, func(t *testing.T) {
				var s story
				made := filepath.Join(t.TempDir(), "made")
				s.goOn(t, made, from.Format, 16)
				data, err := os.ReadFile(made)
				must(t, err)
				session, err := from.New(here, time.Now())
				must(t, err)
				must(t, session.Adopt(t.Context(), data))
				s.said = readFile(t, pathOf(from, session.ID, session.Path), from.Format).Journal.Messages()
				one, id := from, session.ID
				var path string
				var numbers []string
				for _, next := range []*sessions.Agent{to, from, all[(i+k+1)%len(all)]} {
					if next == one {
						next = to
					}
					out := in(t, "handoff", "--from", one.Name, "--to", next.Name, id, "--force", "--window", "12k", "--max-output", "1k")
					id = regexp.MustCompile(`ses_\w+|[0-9a-f-]{36}`).FindString(out[:strings.IndexByte(out, '\n')])
					path = pathOf(next, id, regexp.MustCompile(`goes on with (.*)`).FindStringSubmatch(out)[1])
					one, numbers = next, numbersIn(t, path, next.Format)
					if len(numbers) < 10 || !regexp.MustCompile("its numbers: condense recall .*"+id[:8]+".* m12").MatchString(out) {
						t.Fatalf("to %s: %q in %s", next.Name, numbers, out)
					}
					for i := range 4 {
						s.check(t, path, next.Format, numbers[i*(len(numbers)-1)/3:][:1])
					}
					s.goOn(t, path, next.Format, 5)
					s.check(t, path, next.Format, numbers[1:2])
				}
				out := in(t, "resume", one.Name, id, "--force", "--window", "12k", "--max-output", "1k")
				id = regexp.MustCompile(`ses_\w+|[0-9a-f-]{36}`).FindString(out[:strings.IndexByte(out, '\n')])
				path = pathOf(one, id, regexp.MustCompile(`its copy is (.*)`).FindStringSubmatch(out)[1])
				numbers = numbersIn(t, path, one.Format)
				s.check(t, path, one.Format, []string{numbers[0], numbers[len(numbers)-1]})
				cmd := exec.Command("condense", "mcp", "--agent", one.Name)
				client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, nil)
				must(t, err)
				defer client.Close() //nolint:errcheck // the process is not the subject
				first := at(numbers[0])
				res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "recall", Arguments: map[string]any{
					"what": "m" + strconv.Itoa(first), "of": recall.Key(readFile(t, path, one.Format).Journal.View()), "tokens": 10_000,
				}})
				must(t, err)
				for _, p := range s.said[first-1].Parts {
					r, is := p.(core.ToolResult)
					if is && !slices.ContainsFunc(res.Content, func(c mcp.Content) bool { return c.(*mcp.TextContent).Text == string(r.Content[0].(core.Text)) }) {
						t.Errorf("m%d: %v", first, res.Content)
					}
				}
			})
		}
	}
}
