package wasm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/registry"
)

// A guest serves the calls of a host with a module. Every call has an instance that has had no other, so that nothing of a
// conversation stays; the next one is made ready meanwhile.
type guest struct {
	module *module
	out    io.Writer

	mu       sync.Mutex
	about    []byte // the description
	settings *settings
	spare    *instance // with these settings; nil if there is none
}

// settings are checked settings.
type settings struct {
	request []byte // a ConfigureRequest
	values  []byte // the fields of a call
}

var _ wire.Guest = (*guest)(nil)

// Describe implements [wire.Guest].
func (g *guest) Describe(ctx context.Context) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.describe(ctx)
}

// describe asks the module once. The lock is held.
func (g *guest) describe(ctx context.Context) ([]byte, error) {
	if g.about != nil {
		return g.about, nil
	}
	i, err := g.module.open(ctx, g.out)
	if err != nil {
		return nil, asStatus(err)
	}
	about, err := i.invoke(ctx, "describe", 0)
	i.close(ctx)
	if err != nil {
		return nil, asStatus(fmt.Errorf("describe: %w", err))
	}
	g.about = append([]byte{}, about...)
	return g.about, nil
}

// Configure implements [wire.Guest].
func (g *guest) Configure(ctx context.Context, raw []byte) ([]wire.Problem, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	about, err := g.describe(ctx)
	if err != nil {
		return nil, err
	}
	known, err := caller.DescribedSettings(about)
	if err != nil {
		return nil, err
	}
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return []wire.Problem{{Message: "not a JSON object"}}, nil
		}
	}
	set, problems := flatten(known, given, "")
	if len(problems) > 0 && !g.module.has("configure") {
		return problems, nil
	}
	s := &settings{request: byhand.AppendBytes(nil, 1, raw)}
	for _, v := range set {
		s.request = byhand.AppendBytes(s.request, 2, v)
		s.values = byhand.AppendBytes(s.values, 3, v)
	}
	i, problems, err := g.ready(ctx, s)
	if err != nil || len(problems) > 0 {
		return problems, asStatus(err)
	}
	if g.spare != nil {
		g.spare.close(ctx)
	}
	g.settings, g.spare = s, i
	return nil, nil
}

// ready returns an instance that has its settings, or their problems.
func (g *guest) ready(ctx context.Context, s *settings) (*instance, []wire.Problem, error) {
	i, err := g.module.open(ctx, g.out)
	name, data := "configure", s.request
	if !g.module.has(name) {
		name, data = "check_settings", s.values
	}
	if err != nil || !g.module.has(name) {
		return i, nil, err
	}
	answer, err := i.invoke(ctx, name, len(data), data)
	var problems []wire.Problem
	if err == nil {
		problems, err = wire.ParseProblems(answer)
	}
	if err != nil || len(problems) > 0 {
		i.close(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return i, problems, err
}

// Condense implements [wire.Guest].
func (g *guest) Condense(ctx context.Context, c *wire.GuestCall) ([]byte, error) {
	g.mu.Lock()
	i, s := g.spare, g.settings
	g.spare = nil
	g.mu.Unlock()
	if s == nil {
		return nil, asStatus(&fault{codes.FailedPrecondition, "not configured yet"})
	}
	if i == nil {
		var problems []wire.Problem
		var err error
		if i, problems, err = g.ready(ctx, s); err == nil && len(problems) > 0 {
			refusal := &caller.SettingsError{Problems: problems}
			err = bug("it refuses settings that it has accepted: %s", plain.First(refusal.Error(), maxLine))
		}
		if err != nil {
			return nil, asStatus(err)
		}
	}
	i.call = c
	head := append(byhand.AppendBytes(nil, 2, c.Start), s.values...)
	edit, err := i.invoke(ctx, "condense", len(head)+len(c.Messages), head, c.Messages)
	i.call = nil
	i.close(context.WithoutCancel(ctx))
	go g.refill(s) //nolint:gosec,contextcheck // it outlives the call
	return edit, asStatus(err)
}

// refill makes the instance for the next call. If that fails, the next call says why.
func (g *guest) refill(s *settings) {
	ctx := context.Background()
	i, problems, err := g.ready(ctx, s)
	if err != nil || len(problems) > 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.spare == nil && g.settings == s {
		g.spare = i
		return
	}
	i.close(ctx)
}

// asStatus returns the status of an error, or nil.
func asStatus(err error) error {
	if err == nil {
		return nil
	}
	code := codes.Internal
	if f, ok := errors.AsType[*fault](err); ok {
		code = f.code
	}
	return status.Error(code, strings.ToValidUTF8(err.Error(), "\ufffd"))
}

// flatten returns the settings with their defaults, each as an encoded Value, and the problems of those that are given.
func flatten(known []registry.Setting, given map[string]json.RawMessage, prefix string) (values [][]byte, problems []wire.Problem) {
	names := map[string]bool{}
	for _, s := range known {
		name, value := prefix+s.Name, given[s.Name]
		names[s.Name] = true
		for _, was := range s.Was {
			if names[was] = true; value == nil {
				value = given[was]
			} else if given[was] != nil {
				problems = append(problems, wire.Problem{Key: prefix + was, Message: "is the former name of " + s.Name + ", which is set as well"})
			}
		}
		if value == nil || string(value) == "null" {
			value = s.Default
		}
		if inner := map[string]json.RawMessage{}; len(s.Fields) > 0 && json.Unmarshal(value, &inner) == nil {
			v, p := flatten(s.Fields, inner, name+".")
			values, problems = append(values, v...), append(problems, p...)
			continue
		}
		text, wrong := textOf(&s, value)
		if wrong != "" {
			problems = append(problems, wire.Problem{Key: name, Message: wrong})
		}
		values = append(values, byhand.AppendStrings(nil, name, text))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !names[name] {
			problems = append(problems, wire.Problem{Key: prefix + name, Message: "unknown setting"})
		}
	}
	return values, problems
}

// textOf returns a value as a guest gets it: a string as its text, anything else as JSON. Wrong describes its fault; empty
// for none.
func textOf(s *registry.Setting, value json.RawMessage) (text, wrong string) {
	if len(value) == 0 || string(value) == "null" {
		return "", ""
	}
	is := cmp.Or(map[byte]string{'"': "string", '[': "array", '{': "object", 't': "boolean", 'f': "boolean"}[value[0]], "number")
	if _, err := strconv.ParseInt(string(value), 10, 64); err == nil && s.Type == "integer" {
		is = "integer"
	}
	if is == "string" && json.Unmarshal(value, &text) != nil || is != "string" {
		text = string(value)
	}
	switch {
	case is != s.Type:
		wrong = fmt.Sprintf("got a JSON %s; want %s", is, s.Type)
	case len(s.Enum) > 0 && text != "" && !slices.Contains(s.Enum, text):
		wrong = fmt.Sprintf("%q is none of %s", text, strings.Join(s.Enum, ", "))
	}
	return text, wrong
}
