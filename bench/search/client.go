package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// A client talks to condense mcp, a message a line.
type client struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

func (b *bench) connect(ctx context.Context) (*client, error) {
	c := &client{cmd: b.command(ctx, "mcp", "--agent", "claude", "--sessions")}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = c.ask("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"},
	})
	if err == nil {
		err = json.NewEncoder(c.in).Encode(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *client) close() {
	_ = c.in.Close() // then the server ends
	_ = c.cmd.Wait()
}

func (c *client) ask(method string, params any) (json.RawMessage, error) {
	c.id++
	if err := json.NewEncoder(c.in).Encode(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("condense mcp: %w", err)
		}
		var m struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, err
		}
		switch {
		case m.ID != c.id: // a notification
		case m.Error != nil:
			return nil, errors.New(string(m.Error))
		default:
			return m.Result, nil
		}
	}
}

// search returns the answer to a query.
func (c *client) search(query string) (string, error) {
	raw, err := c.ask("tools/call", map[string]any{"name": "search_sessions", "arguments": map[string]any{"query": query}})
	if err != nil {
		return "", err
	}
	var r struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", err
	}
	if r.IsError || len(r.Content) == 0 {
		return "", errors.New(string(raw))
	}
	return r.Content[0].Text, nil
}
