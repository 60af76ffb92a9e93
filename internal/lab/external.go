package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// externalFormat is the format of the messages that an external program gets and returns.
const externalFormat = "anthropic"

// externalDeadline limits one condensation by an external program.
const externalDeadline = 5 * time.Minute

// An external condenses by another program.
type external struct{ command []string }

// External returns a strategy that runs another program, given as a list of its path and its arguments. Each
// condensation starts it. It reads one JSON object, {"messages": […], "tokens": N, "budget": N}: the messages in the
// form of Anthropic's API, their size, and the size to reach, both in tokens; and writes {"messages": […]}. Its
// output is measured unchanged, whether or not it is valid.
func External(name string, command []string) (Strategy, error) {
	if len(command) == 0 || command[0] == "" {
		return Strategy{}, errors.New("external: no program")
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return Strategy{}, fmt.Errorf("external: %w", err)
	}
	return Strategy{
		Name: name, Provider: external{append([]string{path}, command[1:]...)}, Unchecked: true,
		About: "another program: " + strings.Join(command, " "),
	}, nil
}

// Condense implements [core.CondensationProvider].
func (e external) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, externalDeadline)
	defer cancel()
	var body bytes.Buffer
	j := history.New()
	if err := j.Append(slices.Clone(req.Messages)...); err != nil {
		return nil, err
	}
	if _, err := (&transcript.Document{Journal: j}).Write(&body, externalFormat); err != nil {
		return nil, err
	}
	var messages json.RawMessage = body.Bytes()
	if object := (struct{ Messages json.RawMessage }{}); json.Unmarshal(messages, &object) == nil {
		messages = object.Messages
	}
	tokens := 0
	for i := range req.Messages {
		tokens += core.MessageTokens(req.Counter, req.Messages[i])
	}
	input, err := json.Marshal(map[string]any{"messages": messages, "tokens": tokens, "budget": req.Budget.Room()})
	if err != nil {
		return nil, err
	}
	var out, failed bytes.Buffer
	cmd := exec.CommandContext(ctx, e.command[0], e.command[1:]...) //nolint:gosec // the user names it on the command line
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &failed
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if text := clip(failed.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return nil, fmt.Errorf("%s: %w", e.command[0], err)
	}
	doc, err := transcript.Read(&out, &transcript.ReadOptions{Format: externalFormat})
	if err != nil {
		return nil, fmt.Errorf("%s: its output: %w", e.command[0], err)
	}
	view := doc.Journal.View()
	if len(view) == 0 && len(req.Messages) > 0 {
		return nil, fmt.Errorf("%s: it wrote no messages", e.command[0])
	}
	for i := range view {
		view[i].ID, view[i].Source = "", nil // new messages: their originals are unknown
	}
	core.Measure(req.Counter, view)
	return &core.Result{Messages: view}, nil
}

func clip(s string) string {
	const most = 400
	if s = strings.TrimSpace(s); len(s) > most {
		s = s[len(s)-most:]
	}
	return s
}
