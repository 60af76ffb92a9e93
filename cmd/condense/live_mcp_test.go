package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// callTool starts condense live mcp as an agent does, calls a tool once, and prints the text of its result or error.
func callTool(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: tool NAME ARGUMENTS [ARG…]")
	}
	var arguments map[string]any
	ts.Check(json.Unmarshal([]byte(args[1]), &arguments))
	cmd := exec.Command("condense", append([]string{"live", "mcp"}, args[2:]...)...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "GORACE", "CONDENSE_TOKEN", "GOCOVERDIR", "CLAUDE_CODE_SESSION_ID"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	ctx := context.Background()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, nil)
	if err != nil {
		_, _ = fmt.Fprintf(ts.Stdout(), "error: %v: %s\n", err, log.String())
		return
	}
	defer func() { _ = client.Close() }()
	res, err := client.CallTool(ctx, &mcp.CallToolParams{Name: args[0], Arguments: arguments})
	ts.Check(err)
	for _, c := range res.Content {
		text := c.(*mcp.TextContent).Text
		if res.IsError {
			text = "error: " + text
		}
		_, _ = fmt.Fprintln(ts.Stdout(), text)
	}
}
