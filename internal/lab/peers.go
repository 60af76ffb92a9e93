package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// peersFile is the name of the list in a folder.
const peersFile = "peers.json"

// A Peer is another program in a list, and how it was had. docs/comparing.md documents the file.
type Peer struct {
	Name    string `json:"name"`
	Program string `json:"program"`
	Version string `json:"version"`
	// Had is where it comes from: npm, PyPI, a Go module, its sources, or "rewritten" from a page or a paper.
	Had string `json:"had"`
	// Command is the program and its arguments. It runs in the folder of the list.
	Command []string `json:"command"`
	// Stays reports whether the program answers one line of JSON with another until its input ends, rather than start
	// once a condensation.
	Stays bool   `json:"stays,omitempty"`
	Note  string `json:"note,omitempty"`
	// Missing is why it cannot run on this machine; empty if it can.
	Missing string `json:"missing,omitempty"`
}

// Peers reads a list of other programs, a file or peers.json in a folder, and returns it with a strategy for each that
// condenses a small conversation here. The strategies are closed by the returned function.
func Peers(ctx context.Context, path string) ([]Peer, []Strategy, func() error, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, peersFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, nil, err
	}
	var list struct {
		Peers []Peer `json:"peers"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, nil, nil, fmt.Errorf(`%s: %w; it must be {"peers": [{"name", "program", "version", "had", "command"}]}`, path, err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, nil, nil, err
	}
	var out []Strategy
	var opened []external
	closeAll := func() error {
		errs := plain.Each(opened, func(e external) error { return e.close() })
		return errors.Join(errs...)
	}
	for i := range list.Peers {
		p := &list.Peers[i]
		if p.Name == "" || len(p.Command) == 0 {
			return nil, nil, nil, errors.Join(fmt.Errorf("%s: program %d has no name or no command", path, i+1), closeAll())
		}
		if p.Missing != "" {
			continue // known beforehand
		}
		e, err := newExternal(p.Command, dir, p.Stays)
		if err == nil {
			opened = append(opened, e)
			err = e.probe(ctx)
		}
		if ctx.Err() != nil {
			return nil, nil, nil, errors.Join(ctx.Err(), closeAll())
		}
		if err != nil {
			p.Missing = err.Error()
			continue
		}
		about := fmt.Sprintf("%s %s (%s)", p.Program, p.Version, p.Had)
		out = append(out, Strategy{Name: p.Name, Provider: e, Unchecked: true, About: about})
	}
	return list.Peers, out, closeAll, nil
}

// probe condenses a small conversation that fits.
func (e external) probe(ctx context.Context) error {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return err
	}
	counter := tokens.NewCounter(encoding)
	messages := []core.Message{
		{ID: "a", Role: core.RoleUser, Parts: []core.Part{core.Text("Read main.go.")}},
		{ID: "b", Role: core.RoleAssistant, Parts: []core.Part{core.Text("I read it."), core.ToolCall{ID: "t1", Name: "read", Args: `{"path":"main.go"}`}}},
		{ID: "c", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "t1", Content: []core.Part{core.Text("package main")}}}},
		{ID: "d", Role: core.RoleAssistant, Parts: []core.Part{core.Text("It is empty.")}},
		{ID: "e", Role: core.RoleUser, Parts: []core.Part{core.Text("Go on.")}},
	}
	core.Measure(counter, messages)
	req := &core.Request{Messages: messages, Counter: counter, Budget: core.Budget{Window: 1000, Limit: 1000, Target: 1000}}
	if _, err = e.Condense(ctx, req); errors.Is(err, errNoMessages) {
		return nil // it runs, and leaves nothing of so little
	}
	return err
}
