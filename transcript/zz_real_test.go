package transcript_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

func sameView(a, b []core.Message) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d messages, want %d", len(a), len(b))
	}
	for i := range a {
		if a[i].ID != b[i].ID || a[i].Role != b[i].Role || !core.EqualParts(a[i].Parts, b[i].Parts) {
			return fmt.Sprintf("message %d: %s %s %v\nwant %s %s %v", i, a[i].ID, a[i].Role, a[i].Parts, b[i].ID, b[i].Role, b[i].Parts)
		}
	}
	return ""
}

func randomEdit(r *rand.Rand, view []core.Message) core.Edit {
	groups := core.Groups(view)
	var e core.Edit
	for gi, g := range groups {
		last := ""
		if g.Start > 0 {
			last = view[g.Start-1].ID
		}
		switch r.IntN(8) {
		case 0, 1, 2:
			for i := g.Start; i < g.End; i++ {
				e.Hide = append(e.Hide, view[i].ID)
			}
		case 3:
			id := view[g.Start].ID
			if p, ok := view[g.Start].Parts[0].(core.Text); ok {
				e.Rewrite = append(e.Rewrite, core.Rewrite{ID: id, Parts: []core.Part{core.Text(strings.ToValidUTF8("cut: " + string(p[:min(10, len(p))]) + "\"", "?"))}})
			}
		case 4:
			e.Insert = append(e.Insert, core.Insert{After: last, Message: core.Message{ID: uuid.NewString(), Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(fmt.Sprint("summary ", gi))}}})
			if r.IntN(2) == 0 {
				e.Insert = append(e.Insert, core.Insert{After: last, Message: core.Message{ID: uuid.NewString(), Role: core.RoleAssistant, Kind: core.KindMarker, Parts: []core.Part{core.Text("ok")}}})
			}
		}
	}
	return e
}

func TestZZReal(t *testing.T) {
	files, _ := filepath.Glob(os.Getenv("REAL"))
	for _, f := range files {
		data, _ := os.ReadFile(f)
		if len(data) == 0 {
			continue
		}
		d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Name: f})
		if err != nil {
			t.Error(err)
			continue
		}
		if got, _ := write(t, d, ""); got != string(data) {
			t.Errorf("%s: not the same bytes", f)
		}
		for seed := range uint64(5) {
			d, _ := transcript.Read(bytes.NewReader(data), nil)
			j := d.Journal
			r := rand.New(rand.NewPCG(seed, 1))
			if cs := j.Condensations(); len(cs) > 0 && seed == 1 {
				j.Undo(cs[len(cs)-1].ID)
				out, _ := write(t, d, "")
				again, err := transcript.Read(strings.NewReader(out), nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := sameView(again.Journal.View(), j.View()); diff != "" {
					t.Errorf("%s undone: %s %v", f, diff, again.Warnings)
				}
			}
			for k := range 3 {
				e := randomEdit(r, j.View())
				if e.Empty() {
					continue
				}
				if err := j.Condense(history.Condensation{ID: fmt.Sprint("c", k), Edit: e}); err != nil {
					t.Fatal(err)
				}
				out, ws := write(t, d, "")
				if len(ws) > 0 {
					t.Error(ws)
				}
				again, err := transcript.Read(strings.NewReader(out), &transcript.ReadOptions{Format: d.Format})
				if err != nil {
					t.Fatal(err)
				}
				if diff := sameView(again.Journal.View(), j.View()); diff != "" {
					t.Errorf("%s: seed %d %d: %s %v", f, seed, k, diff, again.Warnings)
					os.WriteFile("/tmp/bad.jsonl", []byte(out), 0o644)
					break
				}
			}
		}
		fmt.Println(filepath.Base(f), d.Format, d.Model, "view", d.Journal.Len(), "all", len(d.Journal.Messages()), "cond", len(d.Journal.Condensations()), d.Warnings)
	}
}
