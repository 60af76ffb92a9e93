package sdktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
	"github.com/condensehq/condense/registry"
)

// A recorder is a test that may fail.
type recorder struct {
	testing.TB

	out   bytes.Buffer
	fatal string
}

func (r *recorder) Output() io.Writer { return &r.out }

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

type config struct {
	Keep int `json:"keep"`
}

// chatty logs and reports progress.
func chatty() registry.Strategy {
	return registry.Define("chatty", "A test.", func() config { return config{} },
		func(ctx context.Context, _ config, env registry.Env) (core.CondensationProvider, error) {
			env.Logger.InfoContext(ctx, "opened")
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				core.Progress(ctx, 0.5, "half")
				counts := core.CountEach(req.Counter, []core.Part{core.Text("12345")}, []core.Part{core.Text("1")})
				env.Logger.InfoContext(ctx, "asked", "counts", counts)
				return &core.Result{Messages: req.Messages}, nil
			}), nil
		})
}

func TestRefusedSettings(t *testing.T) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		sdktest.Loopback(r, chatty(), json.RawMessage(`{"kep": 3}`))
	}()
	<-done
	if want := `chatty refuses its settings: unknown setting "kep"`; !strings.Contains(r.fatal, want) {
		t.Errorf("the test ended with %q; want %q", r.fatal, want)
	}
}

func TestLogs(t *testing.T) {
	r := &recorder{TB: t}
	p := sdktest.Loopback(r, chatty(), nil)
	if _, err := p.Condense(t.Context(), coretest.HalfRequest(coretest.Session())); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`msg=opened`, `msg=asked counts="[2 1]"`} {
		if !strings.Contains(r.out.String(), want) {
			t.Errorf("the log is %s\nwant %s in it", r.out.String(), want)
		}
	}
}

// TestPanicsAreFaults: code that panics on some conversations fails the suite, through the protocol too; an error that it returns declines.
func TestPanicsAreFaults(t *testing.T) {
	for _, panics := range []bool{true, false} {
		s := registry.Define("unusual", "A test.", func() config { return config{} },
			func(context.Context, config, registry.Env) (core.CondensationProvider, error) {
				return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
					for i := range req.Messages {
						for _, p := range req.Messages[i].Parts {
							if _, ok := p.(core.Image); !ok {
								continue
							}
							if panics {
								panic("an image")
							}
							return nil, errors.New("an image")
						}
					}
					return &core.Result{Messages: req.Messages}, nil
				}), nil
			})
		report := coretest.Examine(t.Context(), sdktest.Loopback(t, s, nil))
		if err := report.Err(); panics != (err != nil && strings.Contains(err.Error(), "panic: an image")) {
			t.Errorf("panics %t: got %v", panics, err)
		}
	}
}
