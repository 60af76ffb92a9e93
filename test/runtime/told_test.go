package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// telling opens a host whose only provider answers with what do returns.
func telling(t *testing.T, profile string, do func(*core.Request) []core.Message) *condense.Host {
	t.Helper()
	s := registry.Define("told", "Is told.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				return &core.Result{Messages: do(req)}, nil
			}), nil
		})
	h, err := condense.Open(t.Context(), &condense.Options{
		Load:       loadText(t, "tokenizer: chars4\nprofiles: {p: {window: 100000, chain: [told]"+profile+"}}\nproviders: {told: {strategy: told}}\n"),
		Strategies: []registry.Strategy{s},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func condenseNow(t *testing.T, h *condense.Host, c *condense.Conversation, turn condense.Turn) {
	t.Helper()
	turn.Profile, turn.Trigger = "p", core.TriggerManual
	if _, err := h.Manage(t.Context(), c, turn); err != nil {
		t.Fatal(err)
	}
}

// TestLabelsOfMessages: a provider is told why a message must stay, and what the program notes about it: within limits, without keys of
// vendors, and the same after the conversation was read from its journal.
func TestLabelsOfMessages(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5xY7zA9bC1dE3fG5hJ-kL7mNpQA"
	var got []map[string]string
	h := telling(t, ", keep_first: 1", func(req *core.Request) []core.Message {
		got = nil
		for _, m := range req.Messages {
			got = append(got, m.Labels)
		}
		return req.Messages
	})
	many := map[string]string{"kept": "mine", "long": strings.Repeat("é", 500), "key": "it is " + key}
	for i := range 100 {
		many[fmt.Sprintf("n%02d", i)] = "x"
	}
	messages := []core.Message{
		said(core.RoleUser, "Begin."), said(core.RoleAssistant, strings.Repeat("Yes. ", 900)), said(core.RoleUser, "Remember the port."), said(core.RoleAssistant, "I do."),
		said(core.RoleUser, "Go on."), said(core.RoleAssistant, "Done."), said(core.RoleUser, "And now?"),
	}
	messages[3].Labels, messages[5].Labels = map[string]string{"topic": "network"}, many
	var again []core.Message // as a journal stores them
	if data, err := json.Marshal(messages); err != nil || json.Unmarshal(data, &again) != nil {
		t.Fatal(err)
	}
	again[5].Labels["kept\xff"] = "mine, as a program names it"
	c := conversation(t, again...)
	if err := c.Protect(true, c.View()[2].ID, c.View()[4].ID); err != nil {
		t.Fatal(err)
	}
	condenseNow(t, h, c, condense.Turn{Kept: map[string]string{c.View()[4].ID: "recalled"}})
	if len(got) != 7 {
		t.Fatalf("it was told %v", got)
	}
	limited := got[5]
	got[5] = nil
	if want := "[map[kept:keep_first] map[] map[kept:pin] map[topic:network] map[kept:recalled] map[] map[kept:request]]"; fmt.Sprint(got) != want {
		t.Errorf("labels are\n%v, want\n%s", got, want)
	}
	if len(limited) != 16 || limited["kept"] != "" || limited["long"] != strings.Repeat("é", 100) || strings.Contains(fmt.Sprint(limited), key) ||
		!strings.HasPrefix(limited["key"], "it is ") {
		t.Errorf("limited are %v", limited)
	}
	if l := c.View()[0].Labels; l != nil {
		t.Errorf("the conversation has %v", l)
	}
}

// TestCachedPrefix: a provider is told what the program says of the vendor's cache, and nothing if it says nothing.
func TestCachedPrefix(t *testing.T) {
	t.Parallel()
	var got core.Cached
	h := telling(t, "", func(req *core.Request) []core.Message {
		got = req.Cached
		return req.Messages
	})
	c := talk(20)
	want := core.Cached{Messages: 12, Until: time.Now().Add(5 * time.Minute)}
	condenseNow(t, h, c, condense.Turn{Cached: want})
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	condenseNow(t, h, c, condense.Turn{Cached: core.Cached{Messages: 10_000}})
	if got.Messages != 20 {
		t.Errorf("of 20 messages %d are cached", got.Messages)
	}
	condenseNow(t, h, c, condense.Turn{})
	if got != (core.Cached{}) {
		t.Errorf("got %v of a program that does not know", got)
	}
}

// TestNewestTextOfAFile: a provider reads a file as the conversation shows it, through reads, edits and what was condensed since: no file of
// the disk, no key, and nothing that was redacted.
func TestNewestTextOfAFile(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5xY7zA9bC1dE3fG5hJ-kL7mNpQA"
	files, rounds := map[string][]core.FilePiece{}, 0
	h := telling(t, "", func(req *core.Request) []core.Message {
		if rounds++; rounds == 2 {
			m := slices.Clone(req.Messages)
			m[2].Parts = []core.Part{core.ToolResult{CallID: "3", Content: []core.Part{core.Text("     1→name: [redacted]\n     2→port: 80")}}}
			return m
		}
		for _, path := range []string{"a.go", "/work/a.go", "conf.txt", "/etc/passwd", "other.go"} {
			pieces, err := req.File(path)
			if err != nil {
				t.Error(err)
			}
			files[path] = pieces
		}
		return core.KeepGroups(req.Messages, func(i int) bool { return i == 0 || i > 4 })
	})
	use := func(id, tool, args, result string) []core.Message {
		return []core.Message{
			{Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: id, Name: tool, Args: args}}},
			{Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(result)}}}},
		}
	}
	all := []core.Message{said(core.RoleUser, "Rename the function.")}
	all = append(all, use("1", "Read", `{"file_path":"/work/a.go"}`, "     1→package a\n     2→\n     3→func first() {}\n     4→\n     5→func other() {}")...)
	all = append(all, use("2", "Edit", `{"file_path":"/work/a.go","old_string":"func first() {}","new_string":"// newest is new.\nfunc newest() {}"}`, "The file /work/a.go has been updated.")...)
	all = append(all, use("3", "Read", `{"file_path":"/work/conf.txt"}`, "     1→name: hunter2 "+strings.Repeat("and more ", 30)+"\n     2→key: "+key)...)
	c := conversation(t, append(all, said(core.RoleAssistant, "Done."), said(core.RoleUser, "And now?"))...)
	for _, conf := range []string{"name: hunter2", "", "name: [redacted]\nport: 80"} { // before and after the read and the edit are hidden
		clear(files)
		condenseNow(t, h, c, condense.Turn{Dir: "/work"})
		if err := c.Append(said(core.RoleAssistant, strings.Repeat("More. ", 60)), said(core.RoleUser, "And then?")); err != nil {
			t.Fatal(err)
		}
		if conf == "" {
			continue
		}
		want := []core.FilePiece{{First: 1, Text: "package a\n\n// newest is new.\nfunc newest() {}\n\nfunc other() {}\n"}}
		for _, path := range []string{"a.go", "/work/a.go"} {
			if !slices.Equal(files[path], want) {
				t.Errorf("round %d: %s is %+v", rounds, path, files[path])
			}
		}
		if text := fmt.Sprint(files["conf.txt"]); !strings.Contains(text, conf) || strings.Contains(text, key) || rounds == 3 && strings.Contains(text, "hunter2") {
			t.Errorf("round %d: conf.txt is %s", rounds, text)
		}
		if len(files["/etc/passwd"])+len(files["other.go"]) > 0 {
			t.Errorf("files that the conversation does not show: %v", files)
		}
	}
	if len(c.View()) >= len(all)+2 {
		t.Error("nothing was hidden")
	}
}
