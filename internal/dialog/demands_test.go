package dialog_test

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/dialog"
)

// A labelled is a sentence of testdata/demands.tsv, with the demand that its author meant.
type labelled struct {
	language, sort, text string
	want                 dialog.Demand
}

var demandNames = map[string]dialog.Demand{"none": dialog.NoDemand, "prefers": dialog.Prefers, "requires": dialog.Requires, "forbids": dialog.Forbids}

// readDemands returns the half of the sentences that the detector was tuned on, or the other one.
func readDemands(tb testing.TB, held bool) []labelled {
	tb.Helper()
	data, err := os.ReadFile("testdata/demands.tsv")
	if err != nil {
		tb.Fatal(err)
	}
	var out []labelled
	for line := range strings.Lines(string(data)) {
		if line[0] == '#' {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		want, ok := demandNames[f[1]]
		if len(f) != 4 || !ok {
			tb.Fatalf("not a sentence with its demand: %q", line)
		}
		h := fnv.New32a()
		h.Write([]byte(f[3]))
		if h.Sum32()%2 == 1 == held {
			out = append(out, labelled{language: f[0], sort: f[2], text: f[3], want: want})
		}
	}
	return out
}

// A tally counts sentences: demands that were found, taken for one, missed, and found as another kind.
type tally struct{ found, wrong, missed, other, none int }

func (t *tally) add(want, got dialog.Demand) {
	switch {
	case want == dialog.NoDemand && got == dialog.NoDemand:
		t.none++
	case want == dialog.NoDemand:
		t.wrong++
	case got == dialog.NoDemand:
		t.missed++
	case got != want:
		t.other++
		t.found++
	default:
		t.found++
	}
}

func (t *tally) precision() float64 { return float64(t.found) / float64(max(t.found+t.wrong, 1)) }
func (t *tally) recall() float64    { return float64(t.found) / float64(max(t.found+t.missed, 1)) }

func (t *tally) String() string {
	return fmt.Sprintf("found %d of %d (as another kind %d), taken for one %d of %d; precision %.3f, recall %.3f",
		t.found, t.found+t.missed, t.other, t.wrong, t.wrong+t.none, t.precision(), t.recall())
}

// TestDemandsOfUsers: of the sentences that were not tuned on, at least nine of ten that are taken for a demand are
// one, and nine of ten demands are found. It prints figures only, since they must not be tuned on.
func TestDemandsOfUsers(t *testing.T) {
	for name, held := range map[string]bool{"tuned": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			var all tally
			parts := map[string]*tally{}
			for _, s := range readDemands(t, held) {
				got := dialog.DemandOf(s.text)
				all.add(s.want, got)
				for _, part := range []string{"in " + s.language, "sort " + s.sort} {
					if parts[part] == nil {
						parts[part] = new(tally)
					}
					parts[part].add(s.want, got)
				}
				if !held && got != s.want {
					t.Logf("%s: %q is %d, want %d", s.language, s.text, got, s.want)
				}
			}
			names := make([]string, 0, len(parts))
			for p := range parts {
				names = append(names, p)
			}
			slices.Sort(names)
			for _, p := range names {
				t.Logf("%-15s %v", p, parts[p])
			}
			t.Logf("%-15s %v", "all", &all)
			if all.precision() < .9 || all.recall() < .9 {
				t.Errorf("precision %.3f, recall %.3f", all.precision(), all.recall())
			}
		})
	}
}

// BenchmarkDemandOf measures one sentence of a user.
func BenchmarkDemandOf(b *testing.B) {
	all := append(readDemands(b, false), readDemands(b, true)...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		dialog.DemandOf(all[i%len(all)].text)
	}
}

// BenchmarkDemandOfHostile measures a sentence of words with the most patterns, which begin all over again.
func BenchmarkDemandOfHostile(b *testing.B) {
	for _, s := range []string{strings.Repeat("use keep no ", 33), strings.Repeat("{do} every all never ", 19), strings.Repeat("不要每个所有先", 18), strings.Repeat("a ", 199)} {
		b.Run(s[:9], func(b *testing.B) {
			for b.Loop() {
				dialog.DemandOf(s)
			}
		})
	}
}
