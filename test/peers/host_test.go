package peers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
)

// The time-out of a model, retries included: enough on a busy machine, and short where only the
// deadline ends the wait.
const (
	patience   = time.Minute
	impatience = 3 * time.Second
)

var large = says(strings.Repeat("Everything that was said is said again, at length. ", 1200)).with("chunkSize", 1<<12)

// tools are those of the session, in Anthropic's form.
const tools = `[{"name":"read_file","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}]`

// hostCases are cases of a whole host in addition to those of the clients.
var hostCases = []struct {
	name     string
	settings string // further ones of the provider
	answers  []fixture
	outcome  core.Outcome
	requests [2]int // at least and at most
	reason   string
	sends    map[string]string // what the request has, for each vendor
}{
	{
		name:    "a summary larger than what it replaces",
		answers: []fixture{large},
		outcome: core.OutcomeFailed, requests: [2]int{1, 2}, reason: "saves nothing",
	},
	{
		name: "tools as tools", settings: ", request: native",
		sends:   map[string]string{"anthropic": `"tool_choice":{"type":"none"}`, "openai": `"tool_choice":"none"`},
		answers: []fixture{says(summary)},
		outcome: core.OutcomeApplied, requests: [2]int{1, 1},
	},
	{
		name: "behind the unchanged request", settings: ", request: prefix",
		sends:   map[string]string{"anthropic": `"cache_control":{"type":"ephemeral"}`, "openai": `"parameters":{"type":"object","properties"`},
		answers: []fixture{says(summary)},
		outcome: core.OutcomeApplied, requests: [2]int{1, 1},
	},
	{
		name:    "too long at first, then in parts",
		answers: []fixture{refuses(400, "invalid_request_error", "context_length_exceeded", "prompt is too long: 210000 tokens > 200000 maximum"), says(summary)},
		outcome: core.OutcomeApplied, requests: [2]int{2, 32},
	},
}

// A turn is one condensation by a host, with its result.
type turn struct {
	name      string // of the case
	model     string
	settings  string
	outcome   core.Outcome
	requests  [2]int
	reason    string
	sends     string
	messages  []core.Message
	conv      *condense.Conversation
	report    *condense.Report
	err       error
	timeout   time.Duration
	took      time.Duration
	unreached bool
}

// session is a conversation of an agent with some 8,000 tokens, tools included.
func session() []core.Message {
	var all []core.Message
	add := func(role core.Role, parts ...core.Part) {
		all = append(all, core.Message{ID: fmt.Sprintf("m%d", len(all)+1), Role: role, Parts: parts})
	}
	add(core.RoleUser, core.Text("Fix the parser so that nested lists keep their indentation. Never rename ParseList."))
	for i := range 30 {
		call := core.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "read_file", Args: fmt.Sprintf(`{"path":"file%d.go"}`, i)}
		add(core.RoleAssistant, core.Text(fmt.Sprintf("I look at file number %d.", i)), call)
		add(core.RoleTool, core.ToolResult{CallID: call.ID, Content: []core.Part{core.Text(strings.Repeat(fmt.Sprintf("func f%d() { return %d }\n", i, i), 25))}})
		if i%6 == 5 {
			add(core.RoleAssistant, core.Text("That one is fine."))
			add(core.RoleUser, core.Text("Go on, and keep the tests green."))
		}
	}
	return all
}

// configure writes a configuration file with a profile, a provider and a model for every
// turn, and loads it as a program would.
func configure(t *testing.T, turns []*turn, base string) *config.Config {
	t.Helper()
	var profiles, provs, models strings.Builder
	for _, u := range turns {
		api, _, _ := strings.Cut(u.model, "-")
		at, key := base, "PEERS_TEST_KEY"
		if u.unreached {
			at = "http://127.0.0.1:9/v1" // discard: no server listens there
		}
		if strings.HasSuffix(u.model, "no-key") {
			key = "PEERS_TEST_NO_KEY"
		}
		fmt.Fprintf(&profiles, "  %s: {window: 16000, threshold: 30, chain: [%s, truncation]}\n", u.model, u.model)
		fmt.Fprintf(&provs, "  %s: {strategy: native, timeout: %v, settings: {model: %s%s}}\n", u.model, u.timeout, u.model, u.settings)
		fmt.Fprintf(&models, "  %s: {api: %s, base_url: %q, api_key_env: %s, window: 200000, max_output: 8000, price: {input: 1, output: 5}}\n", u.model, api, at, key)
	}
	file := filepath.Join(t.TempDir(), "condense.yaml")
	text := "default_profile: " + turns[0].model + "\nprofiles:\n" + profiles.String() + "providers:\n" + provs.String() + "models:\n" + models.String()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Path: file, Env: []string{}, Trust: func(config.Claims) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hostTurns returns every case of both vendors as a turn of a host, and what the server
// has to answer.
func hostTurns() ([]*turn, map[string][]fixture) {
	var turns []*turn
	fixtures := map[string][]fixture{}
	add := func(u *turn, answers []fixture) {
		u.messages = session()
		if u.timeout == 0 {
			u.timeout = patience
		}
		fixtures[u.model] = answers
		turns = append(turns, u)
	}
	for vendor := range vendors {
		for _, c := range cases {
			if c.vendor != "" && c.vendor != vendor {
				continue
			}
			u := &turn{name: vendor + "/" + c.name, model: modelOf(vendor, c.name), outcome: core.OutcomeFailed, requests: [2]int{1, 8}}
			if c.kind == remote.KindSilent {
				u.timeout = impatience
			}
			switch {
			case c.kind == "":
				u.outcome = core.OutcomeApplied
			case c.is == core.ErrUnavailable: //nolint:errorlint // a table, not an error
				u.outcome = core.OutcomeSkipped
			}
			add(u, c.answers)
		}
		for _, c := range hostCases {
			add(&turn{name: vendor + "/" + c.name, model: modelOf(vendor, c.name), settings: c.settings, outcome: c.outcome, requests: c.requests, reason: c.reason, sends: c.sends[vendor]}, c.answers)
		}
		add(&turn{name: vendor + "/no key", model: modelOf(vendor, "no key"), outcome: core.OutcomeSkipped, reason: "PEERS_TEST_NO_KEY"}, []fixture{says(summary)})
		add(&turn{name: vendor + "/nobody there", model: modelOf(vendor, "nobody there"), outcome: core.OutcomeSkipped, reason: "refused", unreached: true}, []fixture{says(summary)})
	}
	return turns, fixtures
}

// For every behaviour of the vendor, a turn of the host ends in time, with the right outcome, a
// conversation below its limit, and the original unchanged.
func TestHost(t *testing.T) {
	t.Setenv("PEERS_TEST_KEY", "sk-peers-0123456789abcdef")
	turns, fixtures := hostTurns()
	server := start(t, fixtures)
	h, err := condense.Open(t.Context(), &condense.Options{Config: configure(t, turns, server.tap.url+"/v1")})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var wg sync.WaitGroup
	for _, u := range turns { // concurrently: most of the time they wait
		u.conv = condense.NewConversation()
		if err := u.conv.Append(u.messages...); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			began := time.Now()
			u.report, u.err = h.Manage(t.Context(), u.conv, condense.Turn{
				Profile: u.model, System: "You are an agent.", Tools: json.RawMessage(tools),
			})
			u.took = time.Since(began)
		})
	}
	wg.Wait()
	sent := server.tap.requests(t)
	for _, u := range turns {
		t.Run(u.name, func(t *testing.T) { u.check(t, sent) })
	}
}

func (u *turn) check(t *testing.T, sent []request) {
	t.Helper()
	if u.err != nil {
		t.Fatal(u.err)
	}
	r := u.report
	if len(r.Attempts) == 0 {
		t.Fatalf("nobody was asked: %s", r.Reason)
	}
	first := r.Attempts[0]
	if first.Provider != u.model || first.Outcome != u.outcome || !strings.Contains(first.Reason, u.reason) {
		t.Errorf("got %s of %s (%s), want %s because of %q", first.Outcome, first.Provider, first.Reason, u.outcome, u.reason)
	}
	if strings.Contains(first.Reason, "sk-") {
		t.Errorf("the reason shows a key: %s", first.Reason)
	}
	if u.outcome != core.OutcomeApplied {
		last := r.Attempts[len(r.Attempts)-1]
		if last.Provider != condense.Truncation || last.Outcome != core.OutcomeApplied {
			t.Errorf("got %s of %s at the end, want truncation", last.Outcome, last.Provider)
		}
	}
	if !r.Acted || r.Tokens.After >= r.Tokens.Before || r.Tokens.After > r.Budget.Limit {
		t.Errorf("got %d tokens after %d, want fewer and at most %d", r.Tokens.After, r.Tokens.Before, r.Budget.Limit)
	}
	n := 0
	for _, q := range sent {
		if strings.Contains(string(q.body), `"model":"`+u.model+`"`) {
			n++
			if !strings.Contains(string(q.body), u.sends) {
				t.Errorf("the request lacks %s:\n%.3000s", u.sends, q.body)
			}
		}
	}
	if n < u.requests[0] || n > u.requests[1] {
		t.Errorf("got %d requests, want %d to %d", n, u.requests[0], u.requests[1])
	}
	u.checkOriginal(t)
}

// checkOriginal checks that the journal still has every message, and that undoing the condensation
// restores the conversation.
func (u *turn) checkOriginal(t *testing.T) {
	t.Helper()
	same := func(what string, got []core.Message) {
		if len(got) != len(u.messages) {
			t.Errorf("%s: got %d messages, want %d", what, len(got), len(u.messages))
			return
		}
		for i := range got {
			if !got[i].Equal(u.messages[i]) {
				t.Errorf("%s: message %s has changed", what, got[i].ID)
			}
		}
	}
	same("the journal", u.conv.Journal().Messages())
	if err := u.conv.Undo(u.report.CondensationID); err != nil {
		t.Fatal(err)
	}
	same("taken back", u.conv.View())
}
