// Command train fits the weights of package value to recorded sessions:
//
//	go run ./internal/lab/train -traces DIR
//
// It cuts every session at several places, notes which names, words and phrases from before a cut
// the agent and the user wrote after it, and writes weights.json and common.txt. The same sessions
// give the same files.
//
// To judge weights on sessions that they were not fitted to, leave some out: with -without NAME those
// of a source, with -fold 0/4 every fourth one, starting with the first, by the names of their files. The
// command then also prints what the choice of lines by the new weights keeps on these.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/value"
	"github.com/condensehq/condense/tokens"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1) //nolint:forbidigo // main
	}
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("train", flag.ContinueOnError)
	flags.SetOutput(stderr)
	traces := flags.String("traces", os.Getenv("CONDENSE_TRACES_DIR"), "folder of the sessions")
	out := flags.String("out", "internal/value", "folder that the files are written to")
	without := flags.String("without", "", "sources whose sessions are left out, with commas between")
	fold := flags.String("fold", "", "K/N: every Nth session from number K on, from 0, is left out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	isLeftOut, err := parseFold(*fold)
	if err != nil {
		return err
	}
	if *traces == "" {
		return errors.New("no sessions: set -traces or CONDENSE_TRACES_DIR to a folder of them")
	}
	if err := os.MkdirAll(*out, 0o750); err != nil { // before the work whose result it holds
		return err
	}
	items, err := lab.Find(*traces)
	if err != nil {
		return err
	}
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return err
	}
	counter := tokens.NewCounter(encoding)
	projects := map[string][][]core.Message{}
	var lessons, unseen []Lesson
	var unseenItems []lab.Item
	for i, it := range items {
		s, err := it.Read(counter)
		if err != nil {
			return err
		}
		if isLeftOut(i) || slices.Contains(strings.Split(*without, ","), s.Source) {
			unseen, unseenItems = append(unseen, cut(s)...), append(unseenItems, it)
			continue
		}
		projects[s.Source] = append(projects[s.Source], s.Messages)
		lessons = append(lessons, cut(s)...)
	}
	fmt.Fprintf(stderr, "%d sessions, %d lessons\n", len(items), len(lessons))
	common := Common(projects)
	model, err := Train(lessons, common, stderr)
	if err != nil {
		return err
	}
	note := fmt.Sprintf("made by go run ./internal/lab/train from %d recorded sessions of %d projects", len(items), len(projects))
	if err := os.WriteFile(filepath.Join(*out, "weights.json"), model.Weights(note), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(*out, "common.txt"), []byte(common), 0o600); err != nil {
		return err
	}
	for _, l := range []struct {
		name    string
		lessons []Lesson
	}{{"seen", lessons}, {"unseen", unseen}} {
		if len(l.lessons) == 0 {
			continue
		}
		terms, phrases, err := model.Loss(l.lessons)
		if err != nil {
			return err
		}
		fmt.Fprintf(stderr, "%s: %d lessons, loss of terms %.4f, of phrases %.4f\n", l.name, len(l.lessons), terms, phrases)
	}
	return judge(model, unseenItems, stderr)
}

// judge prints what the choice of lines by m keeps on sessions.
func judge(m *Model, sessions []lab.Item, w io.Writer) error {
	if len(sessions) == 0 {
		return nil
	}
	model, err := m.open()
	if err != nil {
		return err
	}
	choice := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		r, err := value.Shorten(ctx, req.Messages, value.Options{Room: req.Budget.Room(), Counter: req.Counter, Model: model})
		return &core.Result{Messages: r.Messages}, err
	})
	r, err := lab.Run(context.Background(), sessions, []lab.Strategy{{Name: "lines", Provider: choice}}, nil)
	if err != nil {
		return err
	}
	for _, t := range r.Tables {
		for _, l := range t.Lines {
			if e, ok := l.Values[lab.MeasurePanel]; ok && t.Mode == "" {
				fmt.Fprintf(w, "unseen, %s: %s %.3f (%.3f to %.3f, %d sessions)\n", t.Budget, l.Strategy, e.Mean, e.Low, e.High, e.Sessions)
			}
		}
	}
	return nil
}

// parseFold reads "K/N", K from 0 to N-1 and N at least 2, and returns whether a session is in the
// fold. No session is in "".
func parseFold(s string) (has func(session int) bool, err error) {
	if s == "" {
		return func(int) bool { return false }, nil
	}
	first, count, _ := strings.Cut(s, "/")
	k, err1 := strconv.Atoi(first)
	n, err2 := strconv.Atoi(count)
	if err := errors.Join(err1, err2); err != nil || k < 0 || k >= n || n < 2 {
		return nil, fmt.Errorf("fold %q: want K/N, K from 0 to N-1, N at least 2", s)
	}
	return func(session int) bool { return session%n == k }, nil
}

const (
	cuts        = 12
	firstShare  = 0.15 // share of the turns before the first cut
	turnsAfter  = 6    // fewest turns after a cut
	turnsWithin = 40   // turns after a cut that are read
)

// cut makes lessons of a session, by cutting it before assistant turns at even distances.
func cut(s *score.Session) []Lesson {
	var turns []int
	for i := range s.Messages {
		if s.Messages[i].Role == core.RoleAssistant {
			turns = append(turns, i)
		}
	}
	var out []Lesson
	last := -1
	for k := range cuts {
		share := firstShare + (1-firstShare)*float64(k)/cuts
		t := int(share * float64(len(turns)))
		if t == last || len(turns)-t < turnsAfter || t == 0 {
			continue
		}
		last = t
		end := len(s.Messages)
		if t+turnsWithin < len(turns) {
			end = turns[t+turnsWithin]
		}
		out = append(out, Lesson{
			Sequel:  value.Sequel{Before: slices.Clip(s.Messages[:turns[t]]), After: s.Messages[turns[t]:end], System: s.System},
			Project: s.Source,
		})
	}
	return out
}
