// Command outline compares the definitions found by package outline with tree-sitter's. It reads the output of
// oracle.mjs from standard input and prints a table: see `make outline-accuracy`.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/outline"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "outline:", err)
		os.Exit(1) //nolint:forbidigo // it is main
	}
}

// A truth is the answer of the oracle for a file.
type truth struct {
	Path        string  `json:"path"`
	Set         string  `json:"set"`
	Language    string  `json:"language"`
	Error       bool    `json:"error"`
	MS          float64 `json:"ms"`
	Definitions []node  `json:"definitions"`
}

// A node is a definition of the oracle: name, line of the name, first and last line, type.
type node struct {
	name              string
	line, first, last int
	kind              string
}

func (n *node) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&n.name, &n.line, &n.first, &n.last, &n.kind})
}

// A score is the sum over the files of a language.
type score struct {
	files, left           int // skipped
	truth, ours, hit, end int
	bytes                 int
	time                  time.Duration
	oracle                float64 // ms
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := flag.NewFlagSet("outline", flag.ContinueOnError)
	set := flags.String("set", "report", "files to count: report (projects that no rule was fitted to) or tune")
	broken := flags.Bool("broken", false, "count only files that the oracle could not parse without an error")
	show := flags.String("show", "", "list the differences in this language")
	if err := flags.Parse(args); err != nil {
		return err
	}
	scores := make(map[string]*score)
	in := bufio.NewReader(stdin)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		var t truth
		if err := json.Unmarshal(line, &t); err != nil {
			return fmt.Errorf("answers of the oracle: %w", err)
		}
		if t.Set != *set {
			continue
		}
		src, err := os.ReadFile(t.Path)
		if err != nil {
			return err
		}
		s := scores[t.Language]
		if s == nil {
			s = &score{}
			scores[t.Language] = s
		}
		diff := io.Discard
		if *show == t.Language {
			diff = stdout
		}
		s.add(t, string(src), *broken, diff)
	}
	fmt.Fprintln(stdout, "| language | files | definitions | recall % | precision % | same last line % | MB/s | tree-sitter MB/s |")
	fmt.Fprintln(stdout, "|---|---|---|---|---|---|---|---|")
	for _, l := range slices.Sorted(maps.Keys(scores)) {
		s := scores[l]
		fmt.Fprintf(stdout, "| %s | %d | %d | %.2f | %.2f | %.1f | %.0f | %.1f |\n", l, s.files-s.left, s.truth,
			percent(s.hit, s.truth), percent(s.hit, s.ours), percent(s.end, s.hit),
			float64(s.bytes)/1e6/s.time.Seconds(), float64(s.bytes)/1e3/s.oracle)
	}
	return nil
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// add compares one file and writes the differences. Files that the oracle could not parse are skipped unless
// a flag includes them.
func (s *score) add(t truth, src string, broken bool, diff io.Writer) {
	language := t.Language
	if filepath.Ext(t.Path) == ".h" {
		language = "c"
	}
	s.files++
	s.bytes += len(src)
	s.oracle += t.MS
	best := time.Duration(1 << 62)
	var ours []outline.Definition
	for range 3 {
		begin := time.Now()
		ours = outline.Definitions(language, src)
		best = min(best, time.Since(begin))
	}
	s.time += best
	if t.Error != broken {
		s.left++
		return
	}
	s.truth += len(t.Definitions)
	s.ours += len(ours)
	used := make([]bool, len(ours))
	for _, n := range t.Definitions {
		k := -1
		for i, d := range ours {
			// The name of a typedef may be on its last line.
			within := d.Start <= n.line && n.line < d.Body || d.Kind == "typedef" && d.End == n.line
			if !used[i] && within && (t.Language == "markdown" || same(d.Name, n.name)) {
				k = i
				break
			}
		}
		if k < 0 {
			fmt.Fprintf(diff, "missed %s:%d %s %s\n", t.Path, n.line, n.kind, n.name)
			continue
		}
		used[k] = true
		s.hit++
		if ours[k].End == n.last || t.Language == "markdown" {
			s.end++
		} else {
			fmt.Fprintf(diff, "ends %s:%d %s %d, want %d\n", t.Path, n.line, n.name, ours[k].End, n.last)
		}
	}
	for k, d := range ours {
		if !used[k] {
			fmt.Fprintf(diff, "false %s:%d %s %s\n", t.Path, d.Start, d.Kind, d.Name)
		}
	}
}

// same compares names without quotes and white space, which grammars treat differently.
func same(a, b string) bool {
	if a == b {
		return true
	}
	strip := strings.NewReplacer(" ", "", "\t", "", "\n", "", `"`, "", "'", "", "`", "", "[", "", "]", "", `\`, "")
	return strip.Replace(a) == strip.Replace(b)
}
