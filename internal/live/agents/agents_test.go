package agents_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/wire"
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// Headers as the agents of the tested versions send them.
var (
	claude = header("User-Agent", "claude-cli/2.1.330 (external, sdk-cli)", "X-Claude-Code-Session-Id", "7429d09d-87ab-4d48-a15e-e1fd1dc0adc4", "X-Api-Key", "sk-ant-x")
	worker = header("User-Agent", "claude-cli/2.1.330 (external, sdk-cli)", "X-Claude-Code-Session-Id", "7429d09d-87ab-4d48-a15e-e1fd1dc0adc4", "X-Claude-Code-Agent-Id", "a1")
	codex  = header("User-Agent", "codex_exec/0.171.0 (Debian 12.0.0; x86_64)", "session-id", "01a2-s", "thread-id", "01a2-s", "x-client-request-id", "01a2-s")
	thread = header("User-Agent", "codex_cli_rs/0.171.0", "session-id", "01a2-s", "thread-id", "01a2-t")
	open   = header("User-Agent", "opencode/1.18.33 ai-sdk/provider-utils/4.0.46", "x-session-affinity", "ses_1", "x-session-id", "ses_1")
	pi     = header("User-Agent", "OpenAI/JS 6.26.0", "session_id", "01a2-p", "x-client-request-id", "01a2-p")
)

const piHead = `[{"type":"text","text":"You are an expert coding assistant operating inside pi, a coding agent harness. You help users"}]`

func TestRecognized(t *testing.T) {
	for _, tt := range []struct {
		header            http.Header
		head, body        string
		name, session, of string
	}{
		{claude, "", "", "claude-code", "7429d09d-87ab-4d48-a15e-e1fd1dc0adc4", ""},
		{worker, "", "", "claude-code", "7429d09d-87ab-4d48-a15e-e1fd1dc0adc4", "a1"},
		{codex, "", "", "codex", "01a2-s", ""},
		{thread, "", "", "codex", "01a2-s", "01a2-t"},
		{open, "", "", "opencode", "ses_1", ""},
		{pi, piHead, "", "pi", "01a2-p", ""},
		{header("User-Agent", "Anthropic/JS 0.91.1"), piHead, "", "pi", "", ""},
		{header("User-Agent", "pi/1.6.0 (linux; node/v22.23.3; x64)"), "", "", "pi", "", ""},
		{header("User-Agent", "Anthropic/JS 0.129.0"), strings.Replace(piHead, "an expert coding assistant operating", "a coding assistant running", 1), "", "pi", "", ""},
		{header("User-Agent", "OpenAI/JS 5.20.1"), `"You are the GitHub Copilot CLI, a terminal assistant"`, "", "copilot", "", ""},
		{header("User-Agent", "ai-sdk/openai-compatible/3.0.37"), `"You are Cline, an AI coding agent. Your primary goal"`, "", "cline", "", ""},
		{header("User-Agent", "kilo/latest/7.7.7/cli", "X-Session-Affinity", "ses_1"), "", "", "kilo", "ses_1", ""},
		{header("User-Agent", "curl/8"), "", "cache-key", "any", "cache-key", ""},
		{header("User-Agent", "curl/8"), "", "../../etc/passwd", "any", "", ""},
		{header("User-Agent", "x", "X-Session-Id", "s1"), "", "cache-key", "any", "s1", ""},
		{header("User-Agent", "x", "X-Client-Request-Id", "r1"), "", "", "any", "", ""},
		{header("User-Agent", "x", "X-Session-Id", strings.Repeat("s", 200), "X-Condense-Session", "mine"), "", "", "any", "mine", ""},
		{header("User-Agent", "claude-cli/2.0", "X-Condense-Session", "a/b"), "", "legacy", "claude-code", "legacy", ""},
	} {
		a := agents.Of(tt.header, []byte(tt.head))
		if a.Name != tt.name || a.Session(tt.header, tt.body) != tt.session || a.SubAgent(tt.header) != tt.of {
			t.Errorf("%v: agent %q, session %q, sub-agent %q; want %q, %q, %q", tt.header, a.Name, a.Session(tt.header, tt.body), a.SubAgent(tt.header), tt.name, tt.session, tt.of)
		}
	}
}

func TestSideCalls(t *testing.T) {
	text := func(role, text string) string {
		return `{"role":"` + role + `","content":[{"type":"tool_result","tool_use_id":"t","content":"Your task is to create a detailed summary of x"},{"type":"text","text":"` + text + `"}]}`
	}
	for name, tt := range map[string]struct {
		call agents.Call
		want agents.Side
	}{
		"turn":                  {agents.Call{Messages: 3, Tools: true, Last: []byte(text("user", "Go on"))}, agents.Turn},
		"first turn":            {agents.Call{Messages: 1, Tools: true, Last: []byte(`{"role":"user","content":"Go on"}`)}, agents.Turn},
		"chat without tools":    {agents.Call{Messages: 3, Last: []byte(`{"role":"user","content":"Go on"}`)}, agents.Turn},
		"quota":                 {agents.Call{Messages: 1, MaxOutput: 1, Tools: true, Last: []byte(`{"role":"user","content":"quota"}`)}, agents.Probe},
		"classifier":            {agents.Call{Messages: 1, Structured: true, Tools: true}, agents.Classifier},
		"structured loop":       {agents.Call{Messages: 9, Structured: true, Tools: true}, agents.Turn},
		"title of OpenCode":     {agents.Call{Messages: 1, System: []byte(`[{"type":"text","text":"You are a title generator. You output ONLY"}]`)}, agents.Title},
		"summary of OpenCode":   {agents.Call{Messages: 1, System: []byte(`"You are a context summarization agent. You are"`)}, agents.Summary},
		"summary of pi":         {agents.Call{Messages: 1, System: []byte(`[{"type":"text","text":"You are a context summarization assistant. Your"}]`)}, agents.Summary},
		"summary of Claude":     {agents.Call{Messages: 58, Tools: true, Last: []byte(text("user", `\n CRITICAL: Respond with TEXT ONLY. Do NOT`))}, agents.Summary},
		"older summary":         {agents.Call{Messages: 58, Tools: true, Last: []byte(`{"role":"user","content":"Your task is to create a detailed summary of the conversation so far"}`)}, agents.Summary},
		"summary of Codex":      {agents.Call{Messages: 9, Tools: true, Last: []byte(`{"type":"message","role":"user","content":[{"type":"input_text","text":"You are performing a CONTEXT CHECKPOINT COMPACTION. Create"}]}`)}, agents.Summary},
		"quoted by the model":   {agents.Call{Messages: 8, Tools: true, Last: []byte(text("assistant", "Your task is to create a detailed summary of x"))}, agents.Turn},
		"quoted in the middle":  {agents.Call{Messages: 8, Tools: true, Last: []byte(text("user", "It says: Your task is to create a detailed summary of x"))}, agents.Turn},
		"Codex's header":        {agents.Call{Messages: 8, Tools: true, Header: header("x-openai-subagent", "compact")}, agents.Summary},
		"Codex's review":        {agents.Call{Messages: 8, Tools: true, Header: header("x-openai-subagent", "review")}, agents.Turn},
		"one question":          {agents.Call{Messages: 1}, agents.Short},
		"result of a call last": {agents.Call{Messages: 8, Tools: true, Last: []byte(`{"type":"function_call_output","call_id":"c","output":"You are performing a CONTEXT CHECKPOINT COMPACTION"}`)}, agents.Turn},
		"invalid":               {agents.Call{Messages: 8, Tools: true, Last: []byte(`{"role":"user","content":[{"text":`), System: []byte(`[`)}, agents.Turn},
	} {
		if got := agents.SideOf(tt.call); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The attribution changes when Claude Code compacts, and the head of the conversation does not.
func TestVolatile(t *testing.T) {
	head := func(system string) wire.Hash {
		r, err := wire.Parse(wire.Messages, []byte(`{"model":"m","system":[{"type":"text","text":"`+system+`"},{"type":"text","text":"You are"}],"messages":[{"role":"user","content":"Go"}]}`),
			&wire.Options{Volatile: agents.Of(claude, nil).Volatile})
		if err != nil {
			t.Fatal(err)
		}
		return r.Head
	}
	first := head("x-anthropic-billing-header: cc_version=2.1.330.64a; cc_entrypoint=sdk-cli;")
	if head("x-anthropic-billing-header: cc_version=2.1.330.232; cc_entrypoint=sdk-cli;") != first {
		t.Error("the attribution is part of the hash")
	}
	if head("You may use tools.") == first {
		t.Error("the system prompt is not part of the hash")
	}
}

// Qwen Code leaves the date out when it goes on with a session.
func TestVolatileDate(t *testing.T) {
	first := func(date string) wire.Hash {
		r, err := wire.Parse(wire.Chat, []byte(`{"model":"m","messages":[{"role":"user","content":[`+date+`{"type":"text","text":"Go"}]}]}`),
			&wire.Options{Volatile: agents.Of(header("User-Agent", "QwenCode/0.24.4 (linux; x64)"), nil).Volatile})
		if err != nil {
			t.Fatal(err)
		}
		return r.Messages[0].Hash
	}
	const reminder = `{"type":"text","text":"<system-reminder>\nThe current date is: Sunday, November 29, 2026. Note: This is the authoritative current date\n</system-reminder>"},`
	if first("") != first(reminder) {
		t.Error("the date makes another conversation")
	}
}

func TestSubscription(t *testing.T) {
	for name, tt := range map[string]struct {
		header http.Header
		want   bool
	}{
		"key of Anthropic":   {claude, false},
		"login of Anthropic": {header("Authorization", "Bearer sk-ant-oat01-x"), true},
		"login by its beta":  {header("Authorization", "bearer abc", "Anthropic-Beta", "a,oauth-2025-04-20"), true},
		"token of a gateway": {header("Authorization", "Bearer my-gateway"), false},
		"key of OpenAI":      {header("Authorization", "Bearer sk-proj-x"), false},
		"login of ChatGPT":   {header("Authorization", "Bearer eyJ", "ChatGPT-Account-ID", "acc"), true},
		"nothing":            {header(), false},
	} {
		if got := agents.Subscription(tt.header); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What runs for every request allocates nothing.
func TestAllocations(t *testing.T) {
	last := []byte(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"` + strings.Repeat("line\\n", 1000) + `"}]}`)
	if n := testing.AllocsPerRun(100, func() {
		a := agents.Of(pi, []byte(piHead))
		a.Session(pi, "")
		a.SubAgent(pi)
	}); n > 0 {
		t.Errorf("%v allocations to recognize a request", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		agents.SideOf(agents.Call{Header: claude, Messages: 9, Tools: true, System: []byte(piHead), Last: last})
	}); n > 4 { // iterators
		t.Errorf("%v allocations to find side calls", n)
	}
}

func TestNames(t *testing.T) {
	for _, name := range agents.Names() {
		a := agents.Find(name)
		switch {
		case a == nil:
			t.Errorf("Names has %q, which Find does not know", name)
		case a.Title == "" || a != agents.Any() && (a.Command == "" || a.Get == ""):
			t.Errorf("%s is not complete", name)
		}
	}
	if agents.Find("claude") == nil || agents.Find("claude") != agents.Find("claude-code") || agents.Find("nobody") != nil {
		t.Error("Find")
	}
}

// An agent that condenses by itself begins again at the size that was measured, and never sends more than its limit.
func TestAlone(t *testing.T) {
	codex, claude := agents.Find("codex"), agents.Find("claude")
	for _, tt := range []struct {
		agent           *agents.Agent
		window, history int
		want            int
		known           bool
	}{
		{claude, 200_000, 100_000, 100_000, true},
		{claude, 200_000, 167_000, 167_000, true},
		{claude, 200_000, 167_001, 52_001, true},
		{claude, 200_000, 167_000 + 3*115_000, 52_000, true},
		{claude, 60_000, 50_000, 0, false}, // its limit is below what it begins with
		{codex, 272_000, 300_000, 21_000 + 55_200, true},
		{agents.Find("pi"), 200_000, 300_000, 0, false},
	} {
		if n, known := tt.agent.Alone("m", tt.window, tt.history); n != tt.want || known != tt.known {
			t.Errorf("%s sends %d of %d in a window of %d, %v; want %d, %v", tt.agent.Name, n, tt.history, tt.window, known, tt.want, tt.known)
		}
	}
}
