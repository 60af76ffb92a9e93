package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect starts condense mcp.
func (b *bench) connect(ctx context.Context) (*exec.Cmd, *mcp.ClientSession, error) {
	cmd := b.command(ctx, "mcp", "--agent", "claude", "--sessions")
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	return cmd, session, err
}

// answer returns the answer to a query.
func answer(ctx context.Context, s *mcp.ClientSession, query string) (string, error) {
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "search_sessions", Arguments: map[string]any{"query": query}})
	if err != nil {
		return "", err
	}
	if len(r.Content) > 0 && !r.IsError {
		if text, ok := r.Content[0].(*mcp.TextContent); ok {
			return text.Text, nil
		}
	}
	return "", fmt.Errorf("query %q: %v", query, r.Content)
}
