//go:build unix

package pluginexamples_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit/benchdata"
	"github.com/condensehq/condense/registry"
)

var transports = []struct {
	name      string
	plaintext bool
}{{"plain", true}, {"mTLS", false}}

func transport(plaintext bool) func(*supervise.Spec, *supervise.Options) {
	return func(s *supervise.Spec, _ *supervise.Options) { s.Plaintext = plaintext }
}

// BenchmarkStart measures a whole life: the folder is copied and hashed, the process is started,
// described, configured and called, and ends.
func BenchmarkStart(b *testing.B) {
	for _, l := range languages {
		for _, tr := range transports {
			b.Run(l.name+"/"+tr.name, func(b *testing.B) {
				for b.Loop() {
					p := open(b, l.tricks, "", transport(tr.plaintext))
					if _, err := p.Condense(b.Context(), request("nothing")); err != nil {
						b.Fatal(err)
					}
					if err := p.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCall measures a call to a running process: with a strategy that does nothing, which is
// the cost of the protocol, and with the example's.
func BenchmarkCall(b *testing.B) {
	for _, l := range languages {
		for _, tr := range transports {
			for name, f := range map[string]folder{"nothing": l.tricks, l.exampleName: l.example} {
				p := open(b, f, "", transport(tr.plaintext))
				if err := p.Ping(b.Context()); err != nil { // which starts it
					b.Fatal(err)
				}
				for _, size := range []int{100 << 10, 1 << 20, 10 << 20} {
					req := history(size)
					b.Run(fmt.Sprintf("%s/%s/%s/%dKB", l.name, name, tr.name, size>>10), func(b *testing.B) {
						b.SetBytes(int64(size))
						for b.Loop() {
							if _, err := p.Condense(b.Context(), req); err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			}
		}
	}
}

// history returns a request with about size bytes of an agent's session.
func history(size int) *core.Request {
	const perMessage = 520 // of benchdata
	req := coretest.HalfRequest(coretest.Conversation(benchdata.Messages(size / perMessage)...))
	req.Instructions = "nothing"
	return req
}

// envSame makes this test's binary the plugin in Go of [BenchmarkSame].
const envSame = "CONDENSE_TEST_SAME"

// sameEdit makes the edit that the instructions name, as tricks in other languages do.
var sameEdit = registry.Define("tricks", "Does what it is told.", func() struct{} { return struct{}{} },
	func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
		return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
			n := len(req.Messages)
			if req.Instructions == "ends" {
				return &core.Result{Messages: core.KeepGroups(req.Messages, func(i int) bool { return i < 2 || i >= n-100 })}, nil
			}
			longest, size := 0, 0
			for i := range req.Messages {
				for _, p := range req.Messages[i].Parts {
					if r, ok := p.(core.ToolResult); ok && core.ContentBytes(r.Content...) > size {
						longest, size = i, core.ContentBytes(r.Content...)
					}
				}
			}
			parts := req.Messages[longest].Parts
			r := parts[0].(core.ToolResult)
			r.Content = []core.Part{core.Text("[long]")}
			parts[0] = r
			return &core.Result{Messages: req.Messages}, nil
		}), nil
	})

// BenchmarkSame has a chain make the same edit of 10,001 messages, 2.5 MB, by a provider that is compiled in and by
// plugins that run already. Beside the time it reports the least processor time of both processes: cpu-ms, and the share of the plugin.
func BenchmarkSame(b *testing.B) {
	messages := []core.Message{coretest.User(core.Text("Find out why the build fails and mend it."))}
	for i := range 5000 {
		id := fmt.Sprintf("toolu_%06d", i)
		messages = append(messages,
			coretest.Assistant(core.Text("I look at the next file, because the error names it."), core.ToolCall{ID: id, Name: "read_file", Args: fmt.Sprintf(`{"path":"src/parser%d.go"}`, i)}),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(strings.Repeat("func parse(line string) (string, error) {\n", 9+i%2) + id)}}))
	}
	req := coretest.HalfRequest(coretest.Conversation(messages...))
	req.Budget.Window, req.Budget.Limit = 4*req.Budget.Target, 4*req.Budget.Target
	compiledIn, err := sameEdit.Open(b.Context(), nil, registry.Env{})
	if err != nil {
		b.Fatal(err)
	}
	providers := map[string]core.CondensationProvider{"in": compiledIn}
	pids := map[string]int{}
	start := func(name string, p *plugin) {
		if err := p.Ping(b.Context()); err != nil { // which starts it
			b.Fatal(err)
		}
		providers[name], pids[name] = p, p.Status().PID
	}
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	home := b.TempDir()
	if err := copyAny(filepath.Join(home, "same"), exe); err != nil {
		b.Fatal(err)
	}
	start("go", open(b, folderAt(home, "same"), "", func(s *supervise.Spec, _ *supervise.Options) { s.Env = []string{envSame + "=1"} }))
	for _, l := range languages {
		start(l.name, open(b, l.tricks, ""))
	}
	for _, edit := range []string{"ends", "longest"} {
		for _, name := range []string{"in", "go", "node", "python"} {
			chain, err := core.NewChain([]core.NamedProvider{{Name: "same", Provider: providers[name]}}, nil)
			if err != nil {
				b.Fatal(err)
			}
			given := req.Clone()
			given.Instructions = edit
			run := func(from string, prepare, call func(b *testing.B)) {
				b.Run(from+"/"+edit+"/"+name, func(b *testing.B) { least(b, pids[name], prepare, call) })
			}
			run("chain", func(*testing.B) {}, func(b *testing.B) {
				b.Helper()
				if res, err := chain.Run(b.Context(), given); err != nil || (edit == "ends") != (len(res.Edit.Hide) > 9800) || len(res.Edit.Rewrite) > 1 {
					b.Fatalf("%v: %+v", err, res)
				}
			})
			strategy := registry.Define("mine", "The provider.", func() struct{} { return struct{}{} }, func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
				return core.ProviderFunc(providers[name].Condense), nil // which is not closed
			})
			h, err := condense.Open(b.Context(), &condense.Options{Strategies: []registry.Strategy{strategy}, Values: &config.Values{
				Tuning: config.Tuning{Chain: []string{"mine"}, MinGain: new(0.0)}, Profiles: map[string]config.ProfileValues{"large": {Window: new(4_000_000)}},
			}})
			if err != nil {
				b.Fatal(err)
			}
			c := condense.NewConversation()
			if err := c.Append(req.Clone().Messages...); err != nil {
				b.Fatal(err)
			}
			last := ""
			run("manage", func(b *testing.B) {
				b.Helper()
				if last != "" {
					if err := c.Undo(last); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := h.Check(c, condense.Turn{}); err != nil { // a program has done so before
					b.Fatal(err)
				}
			}, func(b *testing.B) {
				b.Helper()
				r, err := h.Manage(b.Context(), c, condense.Turn{Trigger: core.TriggerManual, Instructions: edit})
				if err != nil || !r.Acted {
					b.Fatalf("%v: %+v", err, r)
				}
				last = r.CondensationID
			})
		}
	}
}

// least reports the least time, and processor time of this process and the plugin's, of a call.
func least(b *testing.B, pid int, prepare, call func(b *testing.B)) {
	b.Helper()
	b.ReportAllocs()
	var least [3]time.Duration // wall, both, the plugin
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		prepare(b)
		b.StartTimer()
		began, host, other := time.Now(), spent(b, os.Getpid()), spent(b, pid)
		call(b)
		took, host, other := time.Since(began), spent(b, os.Getpid())-host, spent(b, pid)-other
		for j, v := range []time.Duration{took, host + other, other} {
			if i == 0 || v < least[j] {
				least[j] = v
			}
		}
	}
	for j, unit := range []string{"least-ms", "cpu-ms", "plugin-ms"} {
		b.ReportMetric(float64(least[j].Microseconds())/1000, unit)
	}
}

// spent returns the processor time of a process so far; 0 for none.
func spent(b *testing.B, pid int) time.Duration {
	b.Helper()
	var t unix.Timespec
	if pid == 0 {
		return 0
	}
	const all = 2 // of CPUCLOCK_SCHED: with the threads that have ended
	if err := unix.ClockGettime(int32(^pid<<3|all), &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
