// Command arena runs the programs of a list and smart on the same sessions, by every measure of condense compare, and
// writes the results as JSON and as a table:
//
//	arena -condense bin/condense -peers FOLDER -out FOLDER [-sessions FOLDER] [-recorded FOLDER] [-gold FOLDER] [-results bench/results/arena.md]
//
// The sessions are one of each project, of at most 14 projects, those whose names have the smallest SHA-256; without a folder, those that
// come with condense. Planted sentences are measured on the first half. Recorded compactions come from the folder of
// -recorded. Its steps write into the folder of -out: a report each, and lines of JSON with every session and result, which
// bench/second measures again. With -table only the summary and the table are written, from reports that are there.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/condensehq/condense/internal/lab"
)

const (
	most     = 14 // projects
	deadline = 30 * time.Minute
	ours     = "smart/balanced"
	// The recorded summaries of agents, and what vendors and agents do without a model, done by smart.
	polyfills = `,recorded,clear_tool_uses=smart/clear_tool_uses,prune=smart/prune`
)

type arena struct{ condense, peers, out, sessions, recorded, gold, results string }

func main() {
	var a arena
	flag.StringVar(&a.condense, "condense", "bin/condense", "`program` to run")
	flag.StringVar(&a.peers, "peers", "bench/peers", "`folder` with peers.json")
	flag.StringVar(&a.out, "out", "bin/arena", "`folder` for the results")
	flag.StringVar(&a.sessions, "sessions", "", "`folder` with sessions, besides those that come with condense")
	flag.StringVar(&a.recorded, "recorded", "", "`folder` with sessions that record compactions, besides those that come with condense")
	flag.StringVar(&a.gold, "gold", "", "`folder` with conversations of bench/outside, for gold evidence")
	flag.StringVar(&a.results, "results", "", "`file` whose part between the marks of the arena is written")
	tableOnly := flag.Bool("table", false, "only write the table")
	flag.Parse()
	err := os.MkdirAll(a.out, 0o750)
	if err == nil && !*tableOnly {
		err = a.run()
	}
	if err == nil {
		err = a.conclude(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "arena:", err)
		os.Exit(1) //nolint:forbidigo // it is main
	}
}

func (a *arena) file(name string) string { return filepath.Join(a.out, name) }

// run runs the steps until the deadline. A failed one is said, its old report removed, and the others go on.
func (a *arena) run() error {
	ctx, stop := context.WithTimeout(context.Background(), deadline)
	defer stop()
	given, err := a.drawn()
	if err != nil {
		return err
	}
	demo, err := filepath.Glob("internal/lab/demo/*.gz")
	if err != nil {
		return err
	}
	all, some := []string{"demo:"}, []string{"demo:"}
	recorded := all
	if a.recorded != "" {
		recorded = append(recorded, a.recorded)
	}
	if len(given) > 0 {
		all, some, demo = given, given[:(len(given)+1)/2], nil
	}
	anchors := a.file("anchors")
	convert := slices.Concat([]string{"run", "./bench/outside", "anchors"}, demo, given, []string{anchors})
	if err := a.command(ctx, "go", convert...); err != nil {
		return err
	}
	pairs := []string{"--peers", a.peers, "--strategies", ours, "--strategies", "smart/headtail"}
	sized := append(slices.Clone(pairs), "--strategies", ours+"~peers", "--budgets", "25%")
	var planted []string
	for _, g := range some {
		planted = append(planted, "canaries2:"+g)
	}
	steps := []struct {
		name    string
		paths   []string
		flags   []string
		outputs bool
	}{
		{"cuts", all, append(slices.Clone(sized), "--rounds", "3"), true},
		{"anchors", []string{"evidence:" + anchors}, slices.Clone(sized), true},
		{"evidence", []string{"evidence:" + a.gold}, slices.Clone(sized), true},
		{"canaries", planted, append(slices.Clone(pairs), "--budgets", "20%", "--rounds", "3"), false},
		{"recorded", recorded, []string{"--yes", "--budgets", "real", "--strategies", ours + polyfills}, false},
		{"money", all, []string{
			"--replay", "--peers", a.peers, "--windows", "64k", "--prices", "claude-opus-4-6",
			"--policies", ours + ",smart/headtail",
		}, false},
	}
	for _, s := range steps {
		if s.name == "evidence" && a.gold == "" {
			continue
		}
		save := []string{"--cache", "none", "--quiet", "--save", a.file(s.name + ".json")}
		args := slices.Concat([]string{"compare"}, s.paths, s.flags, save)
		if s.outputs {
			args = append(args, "--outputs", a.file(s.name+".jsonl"))
		}
		start := time.Now()
		if err := os.Remove(a.file(s.name + ".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := a.command(ctx, a.condense, args...); err != nil {
			fmt.Fprintf(os.Stderr, "arena: %s: %v\n", s.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, time.Since(start).Round(time.Second))
	}
	return nil
}

// drawn returns the sessions of the folder, in the order of their hashes.
func (a *arena) drawn() ([]string, error) {
	if a.sessions == "" {
		return nil, nil
	}
	items, err := lab.Find(a.sessions)
	if err != nil {
		return nil, err
	}
	hash := func(it lab.Item) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(filepath.Base(it.Name)))) }
	slices.SortFunc(items, func(x, y lab.Item) int { return cmp.Compare(hash(x), hash(y)) })
	var out []string
	seen := map[string]bool{}
	for _, it := range items {
		_, err := os.Stat(filepath.Join("internal/lab/demo", filepath.Base(it.Name)))
		if err == nil || seen[projectOf(it.Name)] || len(out) == most { // some of the demo tuned smart
			continue
		}
		seen[projectOf(it.Name)] = true
		out = append(out, it.Name)
	}
	return out, nil
}

func (a *arena) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // the user names it
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

func read(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, json.Unmarshal(data, v))
}

func (a *arena) write(s *summary) error {
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(a.file("arena.json"), append(data, '\n'), 0o600)
}

// conclude writes arena.json and the table.
func (a *arena) conclude(ctx context.Context) error {
	var r reports
	err := errors.Join(
		read(a.file("cuts.json"), &r.cuts), read(a.file("anchors.json"), &r.anchors),
		read(a.file("evidence.json"), &r.evidence), read(a.file("canaries.json"), &r.canaries),
		read(a.file("recorded.json"), &r.recorded), read(a.file("money.json"), &r.money),
	)
	if err != nil {
		return err
	}
	s := summarize(&r)
	if err := a.write(s); err != nil { // bench/second reads it
		return err
	}
	for _, step := range [][]string{{"cuts"}, {"anchors", a.file("anchors")}, {"evidence", a.gold}} {
		name := step[0]
		if _, err := os.Stat(a.file(name + ".json")); err != nil {
			continue
		}
		args := append([]string{"bench/second/second.py", "--arena", a.file("arena.json"), a.file(name + ".json"), a.file(name + ".jsonl")}, step[1:]...)
		out, err := exec.CommandContext(ctx, "python3", args...).Output() //nolint:gosec // ours
		var again second
		if err = errors.Join(err, json.Unmarshal(out, &again)); err != nil {
			fmt.Fprintf(os.Stderr, "arena: the second measurement of %s: %v\n", name, err)
			continue
		}
		s.Second = append(s.Second, again)
	}
	if err := a.write(s); err != nil {
		return err
	}
	text := s.markdown()
	if a.results == "" {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	old, err := os.ReadFile(a.results)
	if err != nil {
		return err
	}
	part := regexp.MustCompile(`(?s)<!-- arena -->\n.*<!-- end of arena -->\n`)
	if !part.Match(old) {
		return fmt.Errorf("%s: it has no lines <!-- arena --> and <!-- end of arena -->", a.results)
	}
	text = "<!-- arena -->\n" + text + "<!-- end of arena -->\n"
	return os.WriteFile(a.results, part.ReplaceAllLiteral(old, []byte(text)), 0o644) //nolint:gosec // a document
}

// A second is what bench/second/second.py prints.
type second struct {
	Report   string  `json:"report"`
	Verdicts int     `json:"verdicts"`
	Agreed   int     `json:"agreed"`
	Share    float64 `json:"share"`
	Opposite int     `json:"opposite"`
	ByKind   map[string]struct {
		Verdicts int `json:"verdicts"`
		Agreed   int `json:"agreed"`
	} `json:"by_kind"`
}

type reports struct {
	cuts, anchors, evidence, canaries, recorded lab.Report
	money                                       lab.ReplayReport
}
