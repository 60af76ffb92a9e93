//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// A scenario is an agent's work: so many answers with calls, whose results are so many bytes, several times as many as
// the window holds.
type scenario struct {
	steps, window, size int
	stream              bool // of our own clients
	observe             bool // the gateway only observes, and the vendor has room for all
	recall              bool // the gateway offers its own tool, and the model calls it
}

// An agent cuts results of more than 30,000 characters by itself.
var scenarios = []scenario{
	{steps: 45, window: 60_000, size: 9000},
	{steps: 120, window: 200_000, size: 14_000, stream: true},
	{steps: 45, window: 60_000, size: 9000, stream: true, observe: true},
	{steps: 45, window: 60_000, size: 9000, stream: true, recall: true},
}

const (
	task     = "Run the commands of the checklist, one after the other."
	patience = 10 * time.Minute // for one client
	parallel = 2                // clients at a time
	least    = 99               // percent of the ideal that the cache has to serve
)

// ownTool is the gateway's, and recalled begins what it returns.
const ownTool, recalled = "condense_recall", "[condense recall: message "

// script is the model: some answers call two tools, or one that fails, or also one that returns an image.
func (s scenario) script() []upstream.Step {
	script := upstream.Loop(s.steps, s.size, nil)
	for i := range script[:s.steps] {
		switch {
		case s.recall && i%9 == 4:
			script[i].Commands, script[i].Calls = nil, []upstream.Call{{Tool: ownTool, Input: map[string]any{"grep": "step"}}}
		case i%7 == 6:
			script[i].Commands = append(script[i].Commands, fmt.Sprintf("echo \"step %d has two calls\"", i))
		case i%10 == 9:
			script[i].Commands[0] += " && false"
		case i%15 == 12:
			script[i].Calls = []upstream.Call{{Tool: "screenshot", Input: map[string]any{}}}
		}
	}
	return script
}

// A bench runs the clients.
type bench struct {
	clients, condense string
	only              *regexp.Regexp
}

// A result holds the vendor's counts of a run, and the reason why the row fails.
type result struct {
	epochs, breaks, refused int
	own                     int // of the breaks: made by the client itself
	share                   float64
	tap                     *tap // of a run that is observed
	recalls                 int  // requests with results of the gateway's own tool
	stored                  bool // it is not offered, because the vendor stores the answers
	fault                   string
}

func (r result) String() string {
	if r.tap != nil {
		same, _ := r.tap.counts()
		return strings.TrimPrefix(fmt.Sprintf("%s; %d equal", r.fault, same), "; ")
	}
	if r.stored {
		return "not offered: answers are stored"
	}
	if r.recalls > 0 {
		return strings.TrimPrefix(fmt.Sprintf("%s; %d ×, %d breaks", r.fault, r.epochs, r.breaks), "; ")
	}
	s := fmt.Sprintf("%d × | %d, %d by itself | %.1f %% | %d", r.epochs, r.breaks, r.own, r.share, r.refused)
	s = strings.Replace(s, ", 0 by itself", "", 1)
	if r.fault != "" {
		s = r.fault + "; " + s
	}
	return s
}

// table writes the table of clients. Rows that are no good are in it, and in the error.
func table(ctx context.Context, out io.Writer, b *bench) error {
	fmt.Fprint(out, "# APIs, measured\n\nWritten by `make wires`: unmodified clients through `condense serve`, before a scripted vendor as strict\n"+
		"as the real one. Some answers call two tools, or one that fails, or also one that returns an image if the loop has\n"+
		"it. *Breaks* are prompts that do not continue the one before, *cache* is the share that the vendor's cache served\n"+
		"of the tokens sent before. *Observed* are the requests, or frames, with `--observe`, that reached the vendor with the\n"+
		"SHA-256 and the credential that the client sent: AWS signatures are the client's own, and the vendor verifies them.\n"+
		"*Recalls* are with [the gateway's own tool](../../docs/recall.md#through-the-gateway), which the model calls five times; none is refused.\n\n"+
		"| API | client | version |")
	for _, s := range scenarios {
		if s.observe {
			fmt.Fprintf(out, " %d steps: observed |", s.steps)
			continue
		}
		if s.recall {
			fmt.Fprintf(out, " %d steps: recalls |", s.steps)
			continue
		}
		fmt.Fprintf(out, " %d steps, window of %d tokens: condensed | breaks | cache | refused |", s.steps, s.window)
	}
	fmt.Fprintln(out, "\n|---|---|---"+strings.Repeat("|---|---|---|---", 2)+"|---|---|")
	rows := make([][]result, len(clients))
	places := make(chan struct{}, parallel)
	var wait sync.WaitGroup
	for i, c := range clients {
		rows[i] = make([]result, len(scenarios))
		for j, s := range scenarios {
			if !b.only.MatchString(title(&c, s)) {
				continue
			}
			places <- struct{}{}
			wait.Go(func() {
				began := time.Now()
				rows[i][j] = b.row(ctx, &c, s)
				fmt.Fprintf(os.Stderr, "%s: %s (%.0f s)\n", title(&c, s), rows[i][j], time.Since(began).Seconds())
				<-places
			})
		}
	}
	wait.Wait()
	var faults []error
	for i, c := range clients {
		fmt.Fprintf(out, "| %s | %s | %s |", c.wire, c.name, b.version(c.pkg))
		for j, s := range scenarios {
			fmt.Fprintf(out, " %s |", rows[i][j])
			if f := rows[i][j].fault; f != "" {
				faults = append(faults, fmt.Errorf("%s: %s", title(&c, s), f)) //nolint:err113 // for a person
			}
		}
		fmt.Fprintln(out)
	}
	return errors.Join(faults...)
}

func title(c *client, s scenario) string {
	if s.observe {
		return fmt.Sprintf("%s: %s: %d steps, observed", c.wire, c.name, s.steps)
	}
	if s.recall {
		return fmt.Sprintf("%s: %s: %d steps, recalls", c.wire, c.name, s.steps)
	}
	return fmt.Sprintf("%s: %s: %d steps", c.wire, c.name, s.steps)
}

// version returns the version of an installed package.
func (b *bench) version(pkg string) string {
	var p struct{ Version string }
	text, _ := os.ReadFile(filepath.Join(b.clients, "node_modules", pkg, "package.json"))
	_ = json.Unmarshal(text, &p) // a row without a version
	return p.Version
}

// row plays a scenario with a client.
func (b *bench) row(ctx context.Context, c *client, s scenario) result {
	o := upstream.Options{
		Window: s.window, Script: s.script(), ByCredential: true, StreamOverflow: true, Secrets: map[string]string{amazonKey: amazonSecret},
	}
	if s.observe {
		o.Window, o.Secrets = 10*s.window, map[string]string{amazonKey + ofClient: amazonSecret}
	}
	v := upstream.New(o)
	vendor := httptest.NewServer(v)
	defer vendor.Close()
	dir, err := os.MkdirTemp("", "wires-*")
	if err != nil {
		return result{fault: err.Error()}
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the system's temporary files
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	to := vendor.URL
	var between *tap
	if s.observe {
		between = newTap(vendor.URL)
		defer between.Close()
		to = between.URL
	}
	g, err := b.serve(ctx, dir, to, s)
	if err != nil {
		return result{fault: err.Error()}
	}
	defer g.stop()
	url := g.url
	if s.observe {
		between.gateway.Store(&g.url)
		url = between.URL
	}
	if c.pkg == "" {
		own := c.own
		own.URL, own.Session, own.Stream = url, "s", s.stream
		_, err = own.Say(ctx, task)
	} else {
		err = b.play(ctx, c, s, url, dir)
	}
	g.stop() // and its log is complete
	r := judge(v, c, s, g.epochs())
	if s.observe {
		r = judgeObserved(v, s, between)
	}
	if err != nil {
		r.fault += fmt.Sprintf("; failed: %v", err)
	}
	return r
}

// judge makes the result of a run from the vendor's records.
func judge(v *upstream.Vendor, c *client, s scenario, epochs int) result {
	read, ideal := v.Cached()
	r := result{epochs: epochs, breaks: len(v.Breaks()), share: 100 * float64(read) / float64(max(1, ideal))}
	all := v.Records()
	for _, b := range v.Breaks() {
		count := func(n int) int { return bytes.Count(all[n-1].Body, []byte(c.replaces)) }
		if c.replaces != "" && count(b.To) > count(b.From) {
			r.own++
		}
	}
	for _, x := range all {
		if x.Rule != "" && x.Rule != "path" { // the agents ask for more than the vendor has
			r.refused++
		}
		if bytes.Contains(x.Body, []byte(recalled)) {
			r.recalls++
		}
	}
	offered := slices.ContainsFunc(all, func(x upstream.Record) bool { return bytes.Contains(x.Body, []byte(ownTool)) })
	switch n := slices.Max(append(slices.Collect(maps.Values(v.Played())), 0)); {
	case s.recall && !offered && c.wire == responses && n > 0: // the model has nothing else to do at its first recall
		r.stored = true
	case n <= s.steps:
		r.fault = fmt.Sprintf("ended after %d steps", n)
	case r.refused > 0:
		r.fault = fmt.Sprintf("%d refused", r.refused)
	case r.epochs == 0:
		r.fault = "never condensed"
	case r.breaks-r.own > r.epochs:
		r.fault = fmt.Sprintf("%d breaks, %d by itself, %d epochs", r.breaks, r.own, r.epochs)
	case r.share < least:
		r.fault = fmt.Sprintf("cache %.1f %%", r.share)
	case s.recall && r.recalls == 0:
		r.fault = "nothing recalled"
	}
	return r
}

// judgeObserved makes the result of a run that is observed.
func judgeObserved(v *upstream.Vendor, s scenario, t *tap) result {
	r := result{tap: t}
	for _, x := range v.Records() {
		if x.Rule != "" && x.Rule != "path" {
			r.fault = "refused: " + x.Error
			return r
		}
	}
	n := slices.Max(append(slices.Collect(maps.Values(v.Played())), 0))
	switch same, changed := t.counts(); {
	case n <= s.steps:
		r.fault = fmt.Sprintf("ended after %d steps", n)
	case changed > 0 || same <= s.steps:
		r.fault = fmt.Sprintf("%d changed", changed)
	}
	return r
}

// play runs a client to its end.
func (b *bench) play(ctx context.Context, c *client, s scenario, url, dir string) error {
	modules, err := filepath.Abs(filepath.Join(b.clients, "node_modules"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(modules, c.pkg)); err != nil {
		return fmt.Errorf("npm has not installed %s", c.pkg) //nolint:err113 // for a person
	}
	program, err := exec.LookPath("node")
	if err != nil {
		return err
	}
	fill := strings.NewReplacer("{url}", url, "{task}", task).Replace
	path := filepath.Dir(program) + ":/usr/local/bin:/usr/bin:/bin"
	args := make([]string, 0, len(c.args))
	for _, a := range c.args {
		args = append(args, fill(a))
	}
	if c.program == "" {
		args[0] = filepath.Join(filepath.Dir(modules), args[0])
	} else if found, _ := filepath.Glob(filepath.Join(modules, c.program)); len(found) == 0 {
		return fmt.Errorf("npm has no program of %s for this machine", c.name) //nolint:err113 // for a person
	} else if strings.HasSuffix(found[0], ".js") {
		args = append([]string{found[0]}, args...)
	} else {
		program = found[0]
	}
	env := []string{"PATH=" + path, "HOME=" + dir, "TERM=xterm", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1,localhost"}
	for _, e := range append(slices.Clone(where[c.wire]), c.env...) {
		env = append(env, fill(e))
	}
	for name, text := range c.home {
		if err := write(filepath.Join(dir, name), fill(text)); err != nil {
			return err
		}
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o750); err != nil {
		return err
	}
	p, err := start(ctx, work, env, program, args...)
	if err != nil {
		return err
	}
	defer p.stop()
	if err := p.cmd.Wait(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%w: %s", err, p.last())
	}
	return nil
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
