//go:build unix

package pluginexamples_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/model"
)

// goOfVersion1 is the plugin tricks built with the SDK for Go as of version 1, whose packages had the paths of today. It is built with the
// foreign modules of today: the cache may have no others.
var goOfVersion1 = folder{"tricks-go", func(ctx context.Context) (string, error) {
	source, dir := filepath.Join(scratch, "v1", "go"), filepath.Join(scratch, "v1-go")
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyAny(filepath.Join(source, name), filepath.Join(root, name)); err != nil {
			return "", err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "tricks-go"), "./tricks")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	return dir, nil
}}

// TestGoOfVersion1: a plugin in Go as of version 1 works unchanged under this host: its settings, calls, callbacks, errors and report.
func TestGoOfVersion1(t *testing.T) {
	t.Parallel()
	testkit.Process(t)
	if _, err := goOfVersion1.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("go of version 1", func(t *testing.T) {
		t.Parallel()
		var said []caller.Progress
		p := open(t, goOfVersion1, ` {"greeting": "good morning", "share": 1, "style": "fancy"} `, withAll, func(_ *supervise.Spec, o *supervise.Options) {
			o.Client.Progress = func(_ context.Context, p caller.Progress) { said = append(said, p) }
			m := &once{}
			o.Client.Model = func(*core.Request, string) (model.Generator, error) { return m, nil }
		})
		for name, run := range map[string]func(t *testing.T, l *language, p *plugin){
			"request": testRequest, "sizes": testSizes, "many": testMany, "hide the rest": testHideRest, "cancel": testCancel,
		} {
			t.Run(name, func(t *testing.T) { run(t, nil, p) })
		}
		d, err := p.Describe(t.Context())
		if err != nil || d.Name != "tricks" || d.Doc != "Does what it is told." || len(d.Settings) != 3 || !slices.Equal(d.Settings[2].Enum, []string{"plain", "fancy"}) {
			t.Errorf("got %+v, %v", d, err)
		}
		for trick, is := range map[string]error{
			"invalid": core.ErrInvalidRequest, "unavailable": core.ErrUnavailable, "unsupported": errors.ErrUnsupported, "fail": nil, "panic": nil,
		} {
			_, err := p.Condense(t.Context(), request(trick))
			if err == nil || is != nil && !errors.Is(err, is) || is == nil && !strings.Contains(err.Error(), "boom") {
				t.Errorf("%s: got %v, want %v", trick, err, is)
			}
			if broken := plugins.Broken(err); broken != (is == nil) {
				t.Errorf("%s: broken %t", trick, broken)
			}
		}
		if got := ask(t, p, request("count"))[0] + ask(t, p, request("generate"))[0]; got != "2Be brief. 2 messages after 9" {
			t.Errorf("callbacks: got %q", got)
		}
		if _, err := p.Condense(t.Context(), request("generate")); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("a model without its key: got %v", err)
		}
		// It knows neither a state nor waiting, and its answer is that of one that leaves none.
		req := request("tell")
		req.Conversation, req.State, req.MayWait = "c1", []byte("of another"), true
		res, err := p.Condense(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if res.State != nil || res.Later != "" || res.Usage != (core.Usage{Calls: 1, InputTokens: 10, OutputTokens: 2, USD: 0.5}) {
			t.Errorf("got %+v", res)
		}
		step := core.Step{
			Name: "first", Looked: 3, Changed: 2, Saved: map[string]int{"user": 7}, TokensBefore: 9, TokensAfter: 2,
			Duration: 1500 * time.Microsecond, Note: "as said",
		}
		if diff := cmp.Diff([]core.Step{step}, res.Steps); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		if len(said) != 1 || said[0] != (caller.Progress{Fraction: 0.5, Text: "half"}) {
			t.Errorf("progress: got %+v", said)
		}
		if want := `level=WARN msg=attention plugin=acme n=7 greeting="good morning"`; !strings.Contains(p.log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
		if s := p.Status(); s.Starts != 1 || s.Crashes != 0 {
			t.Errorf("the process was replaced: %+v", s)
		}
	})
	for settings, want := range map[string]string{
		`{"share": 2}`:           "share: must be from 0 to 1",
		`{"greetings": "hello"}`: `unknown setting "greetings"; did you mean "greeting"?`,
		`{"share": "half"}`:      "share: got a JSON string; want number",
	} {
		_, err := open(t, goOfVersion1, settings).Describe(t.Context())
		if refused := new(caller.SettingsError); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", settings, err, want)
		}
	}
}
