// Command embed is a program that embeds condense, for tests: embed MODULE SHA256 [CONDENSE] condenses a conversation with a module and
// prints the attempts. The name of its file says when it calls Init.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/plugin-sdk/host"
	"github.com/condensehq/condense/plugin-sdk/host/wasm"
)

func main() {
	exe, err := os.Executable()
	check(err)
	starts, err := os.OpenFile(filepath.Join(filepath.Dir(exe), "starts"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	_, err = fmt.Fprintln(starts, len(os.Environ()), os.Getenv("EMBED_SECRET"))
	check(err)
	args, name := os.Args, strings.TrimSuffix(filepath.Base(exe), ".exe")
	if name == "early" {
		os.Args = os.Args[:1] // Init does not need them
		wasm.Init()
	}
	if name == "again" { // it takes whatever it is started with for its work
		if len(args) > 4 {
			args = []string{exe, args[3], args[2]}
		}
		args = append(args, exe)
	}
	if !filepath.IsAbs(args[1]) {
		fmt.Fprintf(os.Stderr, "embed: %q is no file\n", args[1])
		os.Exit(2)
	}
	switch name {
	case "late":
		wasm.Init()
	case "by", "again":
		host.ModulesBy(args[3])
	}
	v := config.Values{
		Profiles:  map[string]config.ProfileValues{"p": {Window: new(20_000)}},
		Providers: map[string]config.ProviderValues{"tidy": {Plugin: args[1], SHA256: args[2], Settings: json.RawMessage(`{"recent": 2}`)}},
	}
	v.Chain = []string{"tidy"}
	c, err := config.New(v, config.Options{})
	check(err)
	h, err := condense.Open(context.Background(), &condense.Options{Config: c, Plugins: host.Plugins("")})
	check(err)
	talk := condense.NewConversation()
	for i := range 40 {
		id := fmt.Sprint("c", i)
		check(talk.Append(
			core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: id, Name: "read", Args: "{}"}}},
			core.Message{Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(strings.Repeat("a line of a file\n", 200))}}}},
		))
	}
	r, err := h.Manage(context.Background(), talk, condense.Turn{Trigger: core.TriggerManual})
	check(err)
	for _, a := range r.Attempts {
		fmt.Println(a.Provider, a.Outcome, a.Reason)
	}
	check(h.Close())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}
