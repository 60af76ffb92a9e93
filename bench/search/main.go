// Command search measures condense search on sessions that it makes of recorded ones: their steps in another order, with
// other names, words and numbers, as files of four agents in a home folder of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/condensehq/condense/internal/size"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(2) //nolint:forbidigo // it is main
	}
}

// A bench is a home folder with sessions, and the program.
type bench struct {
	out           io.Writer
	home, program string
	sessions      []session
}

func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.out, format, args...) // a closed output loses numbers only
}

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	total := flags.String("size", "200M", "`bytes` of the files of sessions")
	from := flags.String("sessions", "testdata/traces", "`folder` of recorded sessions")
	program := flags.String("condense", "bin/condense", "the `program`")
	queries := flags.Int("queries", 200, "`number` of queries")
	keep := flags.String("keep", "", "`folder` for the sessions and the index, which stay there; if it has sessions, they are used")
	if err := flags.Parse(args); err != nil {
		return err
	}
	bytes, ok := size.Parse(*total)
	if !ok || bytes <= 0 || *queries <= 0 || flags.NArg() > 0 {
		return fmt.Errorf("want -size such as 200M, -queries above 0, and no other arguments; got %q", args)
	}
	b := bench{out: stdout, home: *keep}
	if b.program, err = filepath.Abs(*program); err != nil {
		return err
	}
	if b.home == "" {
		if b.home, err = os.MkdirTemp("", "condense-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.home)) }()
	}
	begin := time.Now()
	if b.sessions, err = generate(ctx, *from, b.home, bytes); err != nil {
		return err
	}
	b.say("%d sessions made in %.0f s on %d processors\n", len(b.sessions), time.Since(begin).Seconds(), runtime.GOMAXPROCS(0))
	return b.measure(ctx, *queries)
}

// measure times the index, queries, and changes.
func (b *bench) measure(ctx context.Context, queries int) error {
	if err := b.index(ctx, "index"); err != nil {
		return err
	}
	if err := b.search(ctx, queries); err != nil {
		return err
	}
	if err := b.index(ctx, "nothing new"); err != nil {
		return err
	}
	grown, gone, forgotten := &b.sessions[1], &b.sessions[2], &b.sessions[3]
	if err := grown.grow(b.home, &b.sessions[5]); err != nil {
		return err
	}
	if err := b.index(ctx, "one session grew"); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(b.home, gone.Path)); err != nil {
		return err
	}
	if err := b.index(ctx, "one session deleted"); err != nil {
		return err
	}
	_, err := b.timed(ctx, "one session forgotten", "search", "--forget", filepath.Join(b.home, forgotten.Path))
	return err
}

var textBytes = regexp.MustCompile(`\(([0-9,. ]+) bytes of text\)`)

func (b *bench) index(ctx context.Context, what string) error {
	said, err := b.timed(ctx, what, "search", "--index")
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(b.home, "state", "condense", "search.db"))
	if err != nil {
		return err
	}
	m := textBytes.FindStringSubmatch(said)
	if m == nil {
		return fmt.Errorf("condense search --index said %q", said)
	}
	text, err := strconv.Atoi(strings.Join(strings.FieldsFunc(m[1], func(r rune) bool { return r < '0' || r > '9' }), ""))
	if err != nil {
		return err
	}
	b.say("    %s new bytes of text, an index of %s bytes", size.Group(text), size.Group(int(info.Size())))
	if what == "index" {
		files := int64(0)
		for _, s := range b.sessions {
			files += s.Size
		}
		b.say(" (%.1f %%), files of %s bytes", 100*float64(info.Size())/float64(text), size.Group(int(files)))
	}
	b.say("\n")
	return nil
}

// command returns a run of the program that sees no other sessions.
func (b *bench) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.program, args...) //nolint:gosec // the user names the program
	cmd.Dir = b.home
	cmd.Env = []string{"HOME=" + b.home, "XDG_STATE_HOME=" + filepath.Join(b.home, "state"), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	return cmd
}

// timed runs the program and prints the time that it took.
func (b *bench) timed(ctx context.Context, what string, args ...string) (said string, err error) {
	begin := time.Now()
	cmd := b.command(ctx, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("condense %s: %w: %s", strings.Join(args, " "), err, out)
	}
	wall, state := time.Since(begin).Seconds(), cmd.ProcessState
	b.say("%s: %.2f s, %.2f s of processor time\n", what, wall, (state.UserTime() + state.SystemTime()).Seconds())
	return string(out), nil
}

// search sends queries to the tool search_sessions, of all kinds in turn, and then some to the command.
func (b *bench) search(ctx context.Context, n int) error {
	server, c, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()                                      //nolint:errcheck // it ends with the bench
	if _, err := answer(ctx, c, "nothing"); err != nil { // the first one opens the index
		return err
	}
	took, found := map[string][]time.Duration{}, map[string]int{}
	var all, alone []time.Duration
	for i := range n {
		s := &b.sessions[(i*7919+3)%len(b.sessions)]
		q := s.Queries[i%len(s.Queries)]
		if q.Text == "" {
			continue
		}
		begin := time.Now()
		text, err := answer(ctx, c, q.Text)
		if err != nil {
			return err
		}
		d := time.Since(begin)
		all, took[q.Kind] = append(all, d), append(took[q.Kind], d)
		if strings.Contains(text, filepath.Base(s.Path)) {
			found[q.Kind]++
		}
		if i%10 == 0 {
			begin := time.Now()
			if out, err := b.command(ctx, "search", q.Text).CombinedOutput(); err != nil {
				return fmt.Errorf("condense search %q: %w: %s", q.Text, err, out)
			}
			alone = append(alone, time.Since(begin))
		}
	}
	if err := c.Close(); err != nil {
		return err
	}
	state := server.ProcessState
	b.say("%d queries to condense mcp --sessions: %s; %.1f ms of processor time each\n", len(all), spread(all),
		float64((state.UserTime()+state.SystemTime()).Milliseconds())/float64(len(all)))
	for _, kind := range kinds {
		b.say("    %s: %s; %d of %d find their session\n", kind, spread(took[kind]), found[kind], len(took[kind]))
	}
	b.say("%d runs of condense search: %s\n", len(alone), spread(alone))
	return nil
}

func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	ms := func(share float64) float64 { return float64(d[int(share*float64(len(d)-1))].Microseconds()) / 1000 }
	return fmt.Sprintf("p50 %.1f, p90 %.1f, p99 %.1f, longest %.1f ms", ms(.5), ms(.9), ms(.99), ms(1))
}

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
