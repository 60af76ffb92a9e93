package history_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core/history"
)

func TestRepairKeepsEverythingBeforeAndAfterTheDamage(t *testing.T) {
	whole := replay(t, "append a b c d", "condense X hide a b; insert S after b", "append e", "condense Y hide S c; insert T after c", "append f", "rewind e", "append g")
	lines := strings.SplitAfter(encode(t, whole), "\n")
	for _, tt := range []struct {
		name   string
		damage func(lines []string)
		view   string
		faults []string
	}{
		{"nothing", func([]string) {}, "S c d e g", nil},
		{
			"a message of the view", func(l []string) { l[4] = strings.Replace(l[4], `"d"`, `"D"`, 1) }, "S c e g",
			[]string{"line 5: the line is damaged: it does not have its checksum; it is left out"},
		},
		{"a hidden message", func(l []string) { l[1] = strings.Replace(l[1], `"a"`, `"A"`, 1) }, "S c d e g", []string{
			"line 2: the line is damaged: it does not have its checksum; it is left out",
			`line 6: condensation "X": messages that it names are missing; it is kept for the others`,
		}},
		{"where a summary is", func(l []string) { l[2] = l[2][:20] + "\n" }, "S c d e g", []string{
			`line 3: the line is damaged: it has no checksum at its end; found "{\"message\":{\"id\":\"b\""; it is left out`,
			`line 6: condensation "X": messages that it names are missing; it is kept for the others`,
		}},
		{"a condensation", func(l []string) { l[5] = strings.ToUpper(l[5]) }, "a b c d e g", []string{
			`line 6: the line is damaged: it has no checksum at its end; found ` + quoted(strings.ToUpper(lines[5])) + `; it is left out`,
			`line 8: condensation "Y": messages that it names are missing; it is kept for the others`,
		}},
		{
			"a rewind", func(l []string) { l[9] = "\n" }, "T d e f g",
			[]string{`line 10: the line is damaged: it has no checksum at its end; found ""; it is left out`},
		},
		{
			"a newline", func(l []string) { l[3] = strings.Replace(l[3], "\n", "\v", 1) }, "S c d e g",
			[]string{"line 4: the line is damaged: it does not have its checksum; intact records kept: 2"},
		},
		{
			"the header", func(l []string) { l[0] = strings.Replace(l[0], "condense", "cOndense", 1) }, "S c d e g",
			[]string{"line 1: the line is damaged: it does not have its checksum; there is a new header, without the system prompt, the tools and the former format"},
		},
		{
			"the end", func(l []string) { l[10] = l[10][:30] }, "S c d e",
			[]string{"line 11: it was not completely written; it is left out"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			damaged := append([]string(nil), lines...)
			tt.damage(damaged)
			j, faults, err := history.Repair(strings.NewReader(strings.Join(damaged, "")))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range faults {
				got = append(got, f.Error())
			}
			if diff := cmp.Diff(tt.faults, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			again := decode(t, encode(t, j))
			if got := says(again.View()); got != tt.view {
				t.Errorf("got view %s, want %s", got, tt.view)
			}
		})
	}
}

// quoted is how an error quotes the beginning of a line.
func quoted(line string) string { return `"` + strings.ReplaceAll(line[:60], `"`, `\"`) + `"` }

// Two programs that wrote without a lock have left messages of the same ID.
func TestRepairKeepsMessagesOfTheSameID(t *testing.T) {
	one := encode(t, replay(t, "append a b"))
	_, two, _ := strings.Cut(encode(t, replay(t, "append b c")), "\n")
	j, faults, err := history.Repair(strings.NewReader(one + two))
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) != 1 || faults[0].Error() != `line 4: message "b": the ID was used before; the message is kept as "b-2"` {
		t.Errorf("got faults %v", faults)
	}
	if got := says(j.View()); got != "a b b c" { //nolint:dupword // two say the same
		t.Errorf("got view %s, want both of the same ID", got)
	}
}

func TestRepairTakesVersion1AndRefusesWhatIsNoJournal(t *testing.T) {
	const file = `{"condense":{"version":1,"id":"9b2f3a9e-1f1e-4a53-8c0d-0a6f1b3c5d7e"}}` + "\n" +
		`{"message":{"id":"a","parts":[]}}` + "\n" + `{"messag` + "\n" + `{"message":{"id":"b","parts":[]}}` + "\n"
	j, faults, err := history.Repair(strings.NewReader(file))
	if err != nil || j.Len() != 2 || len(faults) != 1 || faults[0].Line != 3 {
		t.Errorf("got %v, %v", faults, err)
	}
	for _, text := range []string{"", "# notes\nnone\n", `[{"role":"user","content":"hi"}]`} {
		if _, _, err := history.Repair(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "no line belongs to a journal: line 1: ") {
			t.Errorf("%q: got error %v", text, err)
		}
	}
	if _, _, err := history.Repair(&failingReader{strings.NewReader(file)}); !errors.Is(err, errDisk) {
		t.Errorf("got error %v, want that of the reader", err)
	}
}

// Whatever a file holds, repairing it gives a journal that can be written and read.
func FuzzRepair(f *testing.F) {
	t := &testing.T{}
	f.Add([]byte(encode(t, everything(t))), 40, byte(1))
	f.Add([]byte(encode(t, replay(t, "append a b c", "condense X hide a b; insert S after b", "undo X"))), 300, byte('\n'))
	f.Fuzz(func(t *testing.T, file []byte, at int, flip byte) {
		if at >= 0 && at < len(file) {
			file = bytes.Clone(file)
			file[at] ^= flip
		}
		j, faults, err := history.Repair(bytes.NewReader(file))
		if err != nil {
			return
		}
		if got, _, err := history.Decode(bytes.NewReader(file)); err == nil && says(got.View()) != says(j.View()) {
			t.Errorf("a file without damage was changed: %v", faults)
		}
		decode(t, encode(t, j))
	})
}
