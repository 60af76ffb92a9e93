package agents_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestResume condenses a copy of a recorded session, and lets the agent go on with it.
func TestResume(t *testing.T) {
	t.Parallel()
	recorded := map[string]string{ // where, below the home folder
		"claude": ".claude/projects/*/*.jsonl",
		"codex":  ".codex/sessions/*/*/*/rollout-*.jsonl",
		"pi":     ".pi/agent/sessions/*/*.jsonl",

		"copilot":  ".copilot/session-state/*/events.jsonl",
		"opencode": "", // in a database
	}
	chains := map[string][]string{
		"rewritten": nil, // what the default chain does
		"hidden":    {"--provider", "slidingwindow"},
		"summary":   {"--provider", "native", "--model", "extractive"},
	}
	tried := some("codex")
	if len(tried) == len(all) {
		tried = recorders
	}
	for n := range len(tried) * len(chains) {
		a := tried[n/len(chains)]
		pattern, ok := recorded[a.name]
		if !ok {
			continue
		}
		name := slices.Sorted(maps.Keys(chains))[n%len(chains)]
		t.Run(a.name+"/"+name, func(t *testing.T) {
			t.Parallel()
			const calls, secret = 12, "the build number is 90125"
			script := upstream.Loop(calls, size, map[int]string{calls: secret})
			d := newDesk(t, upstream.Options{Script: append(script, upstream.Loop(2, size, nil)...)})
			if got := d.direct(t, &a, d.url, task); got.code != 0 {
				t.Fatalf("exit code %d\n%s\n%s", got.code, tail(got.out), d.list())
			}
			before := d.vendor.Turns()
			files := d.sessions(t, &a, pattern)
			if len(files) != 1 {
				t.Fatalf("%s recorded %d sessions; want 1", a.name, len(files))
			}
			path := slices.Collect(maps.Keys(files))[0]

			got := d.run(t, a.env, d.condense(t), append([]string{"resume", a.name, "--window", "50k", "--force"}, chains[name]...)...)
			if got.code != 0 {
				t.Fatalf("condense resume: exit code %d\n%s", got.code, tail(got.out))
			}
			m := resumeLine.FindStringSubmatch(got.out)
			if m == nil || strings.Contains(path, m[1]) {
				t.Fatalf("no command with a new ID\n%s", tail(got.out))
			}
			t.Log(got.out)

			got = d.goOn(t, &a, m[1], "Go on with the checklist.")
			if got.code != 0 {
				t.Fatalf("%s does not go on: exit code %d\n%s\n%s", a.name, got.code, tail(got.out), d.list())
			}
			d.accept(t)
			after := d.vendor.Turns()[len(before):]
			if len(after) < 3 {
				t.Fatalf("%s sent %d requests; want one for each call and one more\n%s", a.name, len(after), d.list())
			}
			first, last := after[0], before[len(before)-1]
			if first.Tokens > last.Tokens*3/4 {
				t.Errorf("the first request has %d tokens, the last one before had %d", first.Tokens, last.Tokens)
			}
			for _, text := range []string{task, secret, "Go on with the checklist."} {
				if text == task && name == "hidden" {
					continue // the window slides over it
				}
				if !bytes.Contains(first.Body, []byte(text)) {
					t.Errorf("the first request does not hold %q", text)
				}
			}
			now := d.sessions(t, &a, pattern)
			if now[path] != files[path] {
				t.Error("the file of the session was changed")
			}
			if len(now) != 2 {
				t.Errorf("there are %d sessions; want the original and the copy, which the agent went on to write", len(now))
			}
			t.Log(d.list())
		})
	}
}

// TestRecallInACopy: the model of OpenCode, which keeps no session in a file, recalls a handle of the condensed copy that it goes on with:
// through condense wrap, and from the MCP server without a gateway.
func TestRecallInACopy(t *testing.T) {
	t.Parallel()
	a := all[slices.IndexFunc(all, func(a agent) bool { return a.name == "opencode" })]
	for _, way := range []string{"wrap", "mcp"} {
		t.Run(way, func(t *testing.T) {
			if way == "mcp" {
				atNight(t)
			}
			t.Parallel()
			loop := upstream.Loop(8, 2*size, nil)
			d := newDesk(t, upstream.Options{ByCredential: true, Script: append(loop, upstream.Step{Make: func(body []byte) []upstream.Call {
				handles, _ := promisesBefore(body)
				var calls []upstream.Call
				for _, h := range handles {
					calls = append(calls, upstream.Call{Tool: "condense_recall", Input: map[string]any{"handle": h, "tokens": 10_000}})
				}
				return calls
			}})})
			if got := d.direct(t, &a, d.url, task); got.code != 0 {
				t.Fatalf("exit code %d\n%s\n%s", got.code, tail(got.out), d.list())
			}
			before := len(d.vendor.Turns())
			got := d.run(t, a.env, d.condense(t), "resume", a.name, "--window", "20k", "--force")
			m := resumeLine.FindStringSubmatch(got.out)
			if got.code != 0 || m == nil {
				t.Fatalf("condense resume: exit code %d\n%s", got.code, tail(got.out))
			}
			const wish = "Go on with the checklist."
			if way == "wrap" {
				d.at(t, &a, "")
				got = d.wrap(t, a.env, slices.Concat([]string{a.name}, a.args, []string{"--session", m[1], wish})...)
			} else {
				with := a
				with.content = a.content[:len(a.content)-1] + `, "mcp": {"condense": {"type": "local", "command": ["` + d.condense(t) + `", "mcp", "--agent", "opencode"]}}}`
				d.at(t, &with, d.url)
				got = d.goOn(t, &with, m[1], wish)
			}
			d.accept(t)
			after := d.vendor.Turns()[before:]
			if got.code != 0 || len(after) != 2 {
				t.Fatalf("exit code %d, %d requests\n%s\n%s", got.code, len(after), tail(got.out), d.list())
			}
			back := 0
			for i, handles := 0, promised.FindAll(after[0].Body, -1); i < 8; i++ {
				result := upstream.Output(loop[i].Commands[0])
				if !within(t, after[0].Body, result) && within(t, after[1].Body, result) {
					back++
				} else if len(handles) == 0 {
					t.Error("the copy has no handles")
				}
			}
			if missing := bytes.Count(after[1].Body, []byte("no content with the handle")); back == 0 || missing > 0 {
				t.Errorf("%d results came back byte for byte, %d did not\n%s", back, missing, after[1].Body)
			}
			t.Logf("%d results came back byte for byte", back)
		})
	}
}

// recorders are the agents whose sessions can be resumed.
var recorders = append(slices.Clip(all), copilot)

// resumeLine matches the command with which an agent goes on.
var resumeLine = regexp.MustCompile(`(?m)^(?:claude --resume |codex(?: exec)? resume |(?:pi|opencode) --session |copilot --resume=)([0-9a-f-]{36}|ses_[0-9A-Za-z]+)$`)

// goOn lets an agent go on with a session.
func (d *desk) goOn(t *testing.T, a *agent, id, text string) result {
	t.Helper()
	var args []string
	switch a.name { // -p is the last of the arguments
	case "claude":
		args = slices.Concat([]string{"--resume", id}, a.args)
	case "codex":
		args = slices.Concat(a.args, []string{"resume", id})
	case "copilot":
		args = slices.Concat([]string{"--resume=" + id}, a.args)
	case "opencode":
		args = slices.Concat(a.args, []string{"--session", id})
	case "pi":
		args = slices.Concat([]string{"--session", id}, a.args)
	}
	return d.run(t, a.env, filepath.Join(d.home, "bin", a.name), append(args, text)...)
}

// TestHandoff lets another agent go on with a recorded session. CONDENSE_AGENTS=all tries all pairs of agents: OpenCode
// takes half a minute to start.
func TestHandoff(t *testing.T) {
	t.Parallel()
	for i := range recorders {
		for k := range recorders {
			from, to := recorders[i], recorders[k]
			next := k == (i+1)%len(recorders) && from.name != "opencode" && to.name != "opencode"
			if i == k || !next && !everywhere() {
				continue
			}
			t.Run(from.name+" to "+to.name, func(t *testing.T) {
				t.Parallel()
				const calls, secret, wish = 8, "the build number is 90125", "Go on with the checklist."
				script := upstream.Loop(calls, size, map[int]string{calls: secret})
				d := newDesk(t, upstream.Options{Script: append(script, upstream.Loop(2, size, nil)...)})
				if got := d.direct(t, &from, d.url, task); got.code != 0 {
					t.Fatalf("exit code %d\n%s\n%s", got.code, tail(got.out), d.list())
				}
				before := len(d.vendor.Turns())
				d.at(t, &to, d.url)
				got := d.run(t, slices.Concat(from.env, to.env), d.condense(t), "handoff", "--from", from.name, "--to", to.name, "--window", "50k", "--force")
				m := resumeLine.FindStringSubmatch(got.out)
				if got.code != 0 || m == nil {
					t.Fatalf("condense handoff: exit code %d\n%s", got.code, tail(got.out))
				}
				t.Log(got.out)
				if got = d.goOn(t, &to, m[1], wish); got.code != 0 {
					t.Fatalf("%s does not go on: exit code %d\n%s\n%s", to.name, got.code, tail(got.out), d.list())
				}
				d.accept(t)
				after := d.vendor.Turns()[before:]
				if len(after) < 3 {
					t.Fatalf("%s sent %d requests; want one for each call and one more\n%s", to.name, len(after), d.list())
				}
				for _, text := range []string{task, secret, wish} {
					if !bytes.Contains(after[0].Body, []byte(text)) {
						t.Errorf("the first request does not hold %q", text)
					}
				}
			})
		}
	}
}

// sessions returns the content of the agent's sessions: of the files that match the pattern, or what OpenCode exports.
func (d *desk) sessions(t *testing.T, a *agent, pattern string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if pattern == "" {
		program := filepath.Join(d.home, "bin", a.name)
		for _, m := range regexp.MustCompile(`"id": *"(ses_[0-9A-Za-z]+)"`).FindAllStringSubmatch(d.run(t, a.env, program, "session", "list", "--format", "json").out, -1) {
			path := filepath.Join(t.TempDir(), "export") // through a pipe a long one is cut off
			d.run(t, a.env, "/bin/sh", "-c", `exec "$0" export "$1" >"$2"`, program, m[1], path)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[m[1]] = string(data)
		}
		return files
	}
	paths, err := filepath.Glob(filepath.Join(d.home, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(data)
	}
	return files
}
