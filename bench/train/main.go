// Command train fits the weights of package value to recorded sessions:
//
//	go run -C bench ./train -traces DIR
//
// It cuts every session at several places, notes which names, words and phrases from before a cut
// the agent and the user wrote after it, and writes weights.json and common.txt. The same sessions
// give the same files.
//
// With -folds 4 it writes no weights, but measures the choice of lines on projects that its weights were not fitted to.
// With -save and -against it compares the result with an earlier one.
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
	out := flags.String("out", "../internal/value", "folder that the files are written to")
	folds := flags.Int("folds", 0, "write no weights: share the projects out among so many folds, and judge on each the weights fitted to the others")
	save := flags.String("save", "", "file that the result of -folds is written to")
	against := flags.String("against", "", "file of an earlier result: print the differences")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *traces == "":
		return errors.New("no sessions: set -traces or CONDENSE_TRACES_DIR to a folder of them")
	case *folds == 1 || *folds < 0:
		return fmt.Errorf("-folds %d: want 2 at least", *folds)
	}
	before, err := readOutcome(*against)
	if err != nil {
		return err
	}
	sessions, err := readSessions(*traces)
	if err != nil {
		return err
	}
	if *folds == 0 {
		return write(sessions, *out, stderr)
	}
	now, err := judgeFolds(foldsOf(sessions, *folds), sessions, stderr)
	if err != nil {
		return err
	}
	project := map[string]string{}
	for i := range sessions {
		project[sessions[i].item.Name] = sessions[i].project
	}
	now.print(stderr, before, project)
	if *save == "" {
		return nil
	}
	return now.write(*save)
}

func readSessions(folder string) ([]recorded, error) {
	items, err := lab.Find(folder)
	if err != nil {
		return nil, err
	}
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return nil, err
	}
	counter := tokens.NewCounter(encoding)
	out := make([]recorded, len(items))
	for i, it := range items {
		s, err := it.Read(counter)
		if err != nil {
			return nil, err
		}
		out[i] = recorded{it, s.Source, s.Messages, cut(s)}
	}
	return out, nil
}

// write fits weights to all sessions and writes the files.
func write(sessions []recorded, folder string, log io.Writer) error {
	if err := os.MkdirAll(folder, 0o750); err != nil { // before the work whose result it will hold
		return err
	}
	model, err := fitTo(sessions, log)
	if err != nil {
		return err
	}
	note := fmt.Sprintf("made by go run -C bench ./train from %d recorded sessions of %d projects", len(sessions), len(model.words.terms))
	if err := os.WriteFile(filepath.Join(folder, "weights.json"), model.weights(note), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "common.txt"), []byte(model.words.common("")), 0o600)
}

func fitTo(sessions []recorded, log io.Writer) (*model, error) {
	var lessons []lesson
	for i := range sessions {
		lessons = append(lessons, sessions[i].lessons...)
	}
	fmt.Fprintf(log, "%d sessions, %d lessons\n", len(sessions), len(lessons))
	return train(lessons, vocabularyOf(sessions), log)
}

func vocabularyOf(sessions []recorded) *vocabulary {
	projects := map[string][][]core.Message{}
	for i := range sessions {
		s := &sessions[i]
		projects[s.project] = append(projects[s.project], s.messages)
	}
	return newVocabulary(projects)
}

// judgeFolds leaves out the projects of each fold in turn, and measures the weights fitted to the other folds on
// them.
func judgeFolds(folds [][]string, sessions []recorded, log io.Writer) (outcome, error) {
	out := outcome{}
	for k, fold := range folds {
		var seen, unseen []recorded
		for _, s := range sessions {
			if slices.Contains(fold, s.project) {
				unseen = append(unseen, s)
			} else {
				seen = append(seen, s)
			}
		}
		m, err := fitTo(seen, log)
		if err != nil {
			return nil, err
		}
		var lessons []lesson
		var items []lab.Item
		for i := range unseen {
			items, lessons = append(items, unseen[i].item), append(lessons, unseen[i].lessons...)
		}
		terms, phrases, err := m.loss(lessons)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(log, "fold %d (%s): loss of terms %.4f, of phrases %.4f\n", k+1, strings.Join(fold, " "), terms, phrases)
		if err := judge(m, items, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const strategy = "lines"

// judge adds the measures of m's choice of lines in sessions to out.
func judge(m *model, sessions []lab.Item, out outcome) error {
	model, err := m.open("")
	if err != nil {
		return err
	}
	choice := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		r, err := value.Shorten(ctx, req.Messages, value.Options{Room: req.Budget.Room(), Counter: req.Counter, Model: model})
		return &core.Result{Messages: r.Messages}, err
	})
	budgets := []lab.Budget{{Share: 10}, {Share: 25}, {Share: 50}, {Real: true}}
	r, err := lab.Run(context.Background(), sessions, []lab.Strategy{{Name: strategy, Provider: choice}}, &lab.Options{Budgets: budgets})
	if err != nil {
		return err
	}
	out.add(r)
	return nil
}

const (
	cuts        = 12
	firstShare  = 0.15 // share of the turns before the first cut
	turnsAfter  = 6    // fewest turns after a cut
	turnsWithin = 40   // turns after a cut that are read
)

// cut makes lessons of a session, by cutting it before assistant turns at even distances.
func cut(s *score.Session) []lesson {
	var turns []int
	for i := range s.Messages {
		if s.Messages[i].Role == core.RoleAssistant {
			turns = append(turns, i)
		}
	}
	var out []lesson
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
		out = append(out, lesson{
			Sequel:  value.Sequel{Before: slices.Clip(s.Messages[:turns[t]]), After: s.Messages[turns[t]:end], System: s.System},
			Project: s.Source,
		})
	}
	return out
}
