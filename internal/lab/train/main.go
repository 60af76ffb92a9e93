// Command train fits the weights of package need to recorded sessions:
//
//	go run ./internal/lab/train -traces DIR
//
// It cuts every session at several places, notes what the agent and the person wrote
// after each cut of what stood before it, and writes weights.json and common.txt. The same
// sessions give the same files. With -without NAME the sessions of these sources are left
// out, for a test on what the weights have not seen; with -fold 0/4 every fourth session is,
// from the first one on, in the order of the names of their files.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/lab/sessions"
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
	left, err := sessions.ParseFold(*fold)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o750); err != nil { // before the work that it is to hold
		return err
	}
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return err
	}
	recorded, err := sessions.Load(*traces, tokens.NewCounter(encoding))
	if err != nil {
		return err
	}
	projects := map[string][][]core.Message{}
	var lessons, unseen []Lesson
	for i, s := range recorded {
		if left.Has(i) || slices.Contains(strings.Split(*without, ","), s.Source) {
			unseen = append(unseen, cut(s)...)
			continue
		}
		projects[s.Source] = append(projects[s.Source], s.Messages)
		lessons = append(lessons, cut(s)...)
	}
	fmt.Fprintf(stderr, "%d sessions, %d lessons\n", len(recorded), len(lessons))
	common := Common(projects)
	model, err := Train(lessons, common, stderr)
	if err != nil {
		return err
	}
	if len(unseen) > 0 {
		terms, phrases, err := model.Loss(unseen)
		if err != nil {
			return err
		}
		fmt.Fprintf(stderr, "unseen: %d lessons, loss of terms %.4f, of phrases %.4f\n", len(unseen), terms, phrases)
	}
	terms, phrases, err := model.Loss(lessons)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "seen: %d lessons, loss of terms %.4f, of phrases %.4f\n", len(lessons), terms, phrases)
	note := fmt.Sprintf("made by go run ./internal/lab/train from %d recorded sessions of %d projects", len(recorded), len(projects))
	if err := os.WriteFile(filepath.Join(*out, "weights.json"), model.Weights(note), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, "common.txt"), []byte(common), 0o600)
}

const (
	cuts        = 12
	firstShare  = 0.15 // of the turns before the first cut
	turnsAfter  = 6    // at least
	turnsWithin = 40   // at most are looked at
)

// cut makes lessons of a session: it is cut before turns of the assistant, evenly.
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
