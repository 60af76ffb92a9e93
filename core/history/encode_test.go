package history_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/testkit"
)

func encode(t *testing.T, j *history.Journal) string {
	t.Helper()
	var b bytes.Buffer
	if err := history.Encode(&b, j); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func decode(t *testing.T, lines string) *history.Journal {
	t.Helper()
	j, recovery, err := history.Decode(strings.NewReader(lines))
	if err != nil || recovery != nil {
		t.Fatalf("decode: %v, %v", recovery, err)
	}
	return j
}

// everything is a journal with every kind of record and part.
func everything(t *testing.T) *history.Journal {
	t.Helper()
	j := history.New()
	if err := j.SetMeta(json.RawMessage(`{"format": "test", "system": "<be brief>"}`)); err != nil {
		t.Fatal(err)
	}
	when := time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC)
	if err := j.Append(
		core.Message{ID: "m1", Role: core.RoleUser, Parts: []core.Part{core.Text("<b>\u2028"), core.Image{MediaType: "image/png", Data: "AA=="}}, Time: when, Protected: true, Tokens: 9, Source: json.RawMessage(`{"a":"<>"}`)},
		core.Message{ID: "m2", Role: core.RoleAssistant, Parts: []core.Part{core.Reasoning{Text: "hm", Signature: "sig"}, core.ToolCall{ID: "c", Name: "read", Args: `{"path":"a.go"}`}}, Source: json.RawMessage("{\n}")},
		core.Message{ID: "m3", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "c", Content: []core.Part{core.Text("caf\xe9")}, IsError: true}}},
		core.Message{ID: "m4", Role: core.RoleAssistant, Parts: []core.Part{core.Opaque{Kind: "video", JSON: `{"type":"video"}`}}},
	); err != nil {
		t.Fatal(err)
	}
	if err := j.Condense(history.Condensation{
		ID: "X", Provider: "half", Trigger: core.TriggerManual, Time: when, TokensBefore: 20, TokensAfter: 10,
		Attempts: []core.Attempt{{Provider: "half", Outcome: core.OutcomeApplied, TokensBefore: 20, TokensAfter: 10}},
		Edit: core.Edit{
			Hide:    []string{"m2", "m3"},
			Rewrite: []core.Rewrite{{ID: "m4", Parts: []core.Part{core.Text("<video>")}}},
			Insert:  []core.Insert{{After: "m3", Message: summary("s1")}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	run(t, j, "append m5 m6", "rewind m5", "condense Y hide m5", "undo Y", "rewind m5", "undo-rewind", "protect m5", "unprotect m5")
	return j
}

// The file is also what version 2 of the format is: it must be readable for ever.
func TestEncodeWritesTheFormatOfTheGoldenFile(t *testing.T) {
	path := filepath.Join("testdata", "journal.jsonl")
	now := everything(t)
	if *update {
		if err := os.WriteFile(path, []byte(encode(t, now)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden := content(t, path)
	stored := decode(t, golden)
	if diff := cmp.Diff(golden, encode(t, stored)); diff != "" {
		t.Errorf("the format changed; if a program that knows the former one would misunderstand it, so must the version:\n%s", diff)
	}
	// But for the ID, and the checksum that follows from it, today's journal is that one.
	_, wantRecords, _ := strings.Cut(golden, "\n")
	_, gotRecords, _ := strings.Cut(encode(t, now), "\n")
	if diff := cmp.Diff(wantRecords, gotRecords); diff != "" {
		t.Errorf("the format changed:\n%s", diff)
	}
	if diff := cmp.Diff(now.Timeline(), stored.Timeline(), exactly); diff != "" {
		t.Errorf("what the file says changed:\n%s", diff)
	}
}

var update = flag.Bool("update", false, "write the golden file")

// Version 1 had no checksums. Such a file is read as it always was, and what is appended to
// it is of version 1 too, so that one file is of one version.
func TestVersion1IsReadAndContinued(t *testing.T) {
	golden := content(t, filepath.Join("testdata", "journal-1.jsonl"))
	now, stored := everything(t), decode(t, golden)
	if diff := cmp.Diff(now.Timeline(), stored.Timeline(), exactly); diff != "" {
		t.Errorf("what the file says changed:\n%s", diff)
	}
	if got := encode(t, stored); !strings.HasPrefix(got, `{"condense":{"version":2,`) || strings.Count(got, `,"crc":"`) != strings.Count(golden, "\n") {
		t.Errorf("written anew it is not of version 2:\n%s", got)
	}
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	if err := os.WriteFile(path, []byte(golden), 0o600); err != nil {
		t.Fatal(err)
	}
	f, _ := open(t, path)
	run(t, f.Journal, "append x y", "condense Z hide x", "undo Z", "rewind x")
	got := content(t, path)
	if !strings.HasPrefix(got, golden) || strings.Contains(got, `"crc"`) {
		t.Errorf("the file is not one of version 1 any more:\n%s", got)
	}
	if diff := cmp.Diff(f.Timeline(), decode(t, got).Timeline(), exactly); diff != "" {
		t.Errorf("read again it says something else:\n%s", diff)
	}
}

func TestMeta(t *testing.T) {
	j := history.New()
	if got := decode(t, encode(t, j)).Meta(); got != nil {
		t.Errorf("got meta %s, want none", got)
	}
	for _, tt := range []struct{ set, want string }{
		{`{ "a": "<&>\u2028", "b": 1.0e2 }`, `{"a":"<&>\u2028","b":1.0e2}`},
		{`null`, `null`},
		{"\"\xff\"", "\"\xff\""},
	} {
		if err := j.SetMeta(json.RawMessage(tt.set)); err != nil {
			t.Fatal(err)
		}
		again := decode(t, encode(t, j))
		if string(j.Meta()) != tt.want || string(again.Meta()) != tt.want || again.ID() != j.ID() {
			t.Errorf("got meta %q, %q after decoding, want %q", j.Meta(), again.Meta(), tt.want)
		}
	}
	for _, bad := range []string{"", "{", "{} {}", strings.Repeat("[", 9999) + strings.Repeat("]", 9999)} {
		if err := j.SetMeta(json.RawMessage(bad)); err == nil || !strings.HasPrefix(err.Error(), "meta: ") {
			t.Errorf("%.10s: got error %v, want one about the meta", bad, err)
		}
	}
	if string(j.Meta()) != "\"\xff\"" {
		t.Errorf("got meta %q after errors", j.Meta())
	}
}

func TestDecodeSaysWhatIsWrongAndWhere(t *testing.T) {
	const head = `{"condense":{"version":1,"id":"9b2f3a9e-1f1e-4a53-8c0d-0a6f1b3c5d7e"}}` + "\n"
	const a, b = `{"message":{"id":"a","role":"user","parts":[]}}` + "\n", `{"message":{"id":"b","role":"user","parts":[]}}` + "\n"
	const noHeader = `want {"condense":{"version":2,"id":…}}, the header of a journal`
	for _, tt := range []struct{ name, file, want string }{
		{"empty", "", "line 1: found nothing; " + noHeader},
		{"header cut off", head[:20], "line 1: the header is cut off after 20 bytes, before anything was recorded; remove the file and begin again"},
		{"header broken", head[:20] + "\n" + a, `line 1: found "{\"condense\":{\"versio"; ` + noHeader},
		{"no header", a, `line 1: found "{\"message\":{\"id\":\"a\",\"role\":\"user\",\"parts\":[]}}"; ` + noHeader},
		{"a transcript", `[{"role":"user"`, `line 1: found "[{\"role\":\"user\""; ` + noHeader},
		{"not text", "\x1f\x8b\xff", "line 1: found \"\\x1f\uFFFD\"; " + noHeader},
		{"newer version", `{"condense":{"version":3,"id":7}}`, "line 1: the journal is of version 3 of the format; this program knows versions 1 to 2"},
		{"version 2 without checksum", `{"condense":{"version":2,"id":"9b2f3a9e-1f1e-4a53-8c0d-0a6f1b3c5d7e"}}`, "line 1: the line is damaged: it does not have its checksum"},
		{"no version", `{"condense":{}}`, "line 1: the journal is of version 0 of the format; this program knows versions 1 to 2"},
		{"no ID", `{"condense":{"version":1}}`, `line 1: header: id "": want a UUID`},
		{"header of another shape", `{"condense":[]}`, "line 1: header: found a JSON array, want a JSON object"},
		{"second header", head + a + head, "line 3: found a second header; a file holds one journal"},
		{"unknown record", head + `{"branch":{}}` + "\n", `line 2: found a record of kind "branch"; version 2 of the format has message, condensation, undo, rewind, protect and unprotect`},
		{"two records in a line", head + `{"undo":{},"rewind":{}}` + "\n", "line 2: found an object with 2 members [rewind undo]; want one, the record"},
		{"no record in a line", head + "{}\n", "line 2: found an object with 0 members []; want one, the record"},
		{"not an object", head + "7\n", "line 2: found \"7\" (found a JSON number, want a JSON object); want a record such as {\"message\":…}"},
		{"broken in the middle", head + a[:30] + "\n" + b, `line 2: found "{\"message\":{\"id\":\"a\",\"role\":\"u" (unexpected end of JSON input); want a record such as {"message":…}`},
		{"blank line", head + "\n" + a, `line 2: found "" (unexpected end of JSON input); want a record such as {"message":…}`},
		{"message without ID", head + `{"message":{}}` + "\n", "line 2: a message has no ID"},
		{"null message", head + `{"message":null}` + "\n", "line 2: a message has no ID"},
		{"message of another shape", head + `{"message":{"id":7}}` + "\n", "line 2: message: found a JSON number, want a JSON string in id"},
		{"unknown part", head + `{"message":{"id":"a","parts":[{"type":"x"}]}}` + "\n", `line 2: message: part 0: unknown type "x"; want text, tool_call, tool_result, image, reasoning or opaque`},
		{"ID used twice", head + a + b + a, `line 4: message "a": the ID was used before in this journal`},
		{"condensation of nobody", head + a + `{"condensation":{"id":"X","edit":{"hide":["b"]}}}` + "\n", `line 3: condensation "X" hides message "b", which does not exist`},
		{"condensation of what was dropped", head + a + b + `{"rewind":{"to":"a"}}` + "\n" + `{"condensation":{"id":"X","edit":{"hide":["b"]}}}` + "\n", `line 5: condensation "X" hides message "b", which was dropped by a rewind`},
		{"condensation of another shape", head + `{"condensation":[]}` + "\n", "line 2: condensation: found a JSON array, want a JSON object"},
		{"condensation with an edit of another shape", head + `{"condensation":{"id":"X","edit":{"insert":[{"after":["a"]}]}}}` + "\n", "line 2: condensation: found a JSON array, want a JSON string in edit.insert.after"},
		{"undo of nothing", head + `{"undo":{"id":"X"}}` + "\n", `line 2: undo: there is no condensation "X"`},
		{"undo of no rewind", head + a + `{"undo":{"rewind":"a"}}` + "\n", "line 3: undo: there is no rewind"},
		{"undo of an older rewind", head + a + b + `{"rewind":{"to":"b"}}` + "\n" + `{"rewind":{"to":"a"}}` + "\n" + `{"undo":{"rewind":"b"}}` + "\n", `line 6: undo: the latest rewind is to message "a", not "b"`},
		{"undo of another shape", head + `{"undo":7}` + "\n", "line 2: undo: found a JSON number, want a JSON object"},
		{"rewind to nobody", head + a + `{"rewind":{"to":"b"}}` + "\n", `line 3: rewind: there is no message "b"`},
		{"protection of no message", head + a + `{"protect":{"id":"b"}}` + "\n", `line 3: protect: there is no message "b"`},
		{"protection of another shape", head + `{"unprotect":7}` + "\n", "line 2: unprotect: found a JSON number, want a JSON object"},
		{"rewind of another shape", head + `{"rewind":7}` + "\n", "line 2: rewind: found a JSON number, want a JSON object"},
		{"valid JSON at the end is no crash", head + a + a, `line 3: message "a": the ID was used before in this journal`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, recovery, err := history.Decode(strings.NewReader(tt.file))
			want := tt.want
			if !strings.HasPrefix(want, "line 1:") {
				want += "; 'condense repair' saves the rest"
			}
			if err == nil || err.Error() != want {
				t.Errorf("got error %v\nwant %s", err, want)
			}
			if j != nil || recovery != nil {
				t.Errorf("got a journal with an error: %v, %v", j, recovery)
			}
		})
	}
	_, _, err := history.Decode(&failingReader{strings.NewReader(head + a)})
	if !errors.Is(err, errDisk) || !strings.HasPrefix(err.Error(), "line 3: ") {
		t.Errorf("got error %v, want that of the reader", err)
	}
}

var errDisk = errors.New("disk on fire")

type failingReader struct{ r *strings.Reader }

func (f *failingReader) Read(b []byte) (int, error) {
	if f.r.Len() == 0 {
		return 0, errDisk
	}
	return f.r.Read(b)
}

// What other programs may do to a file does not hurt: other spacing, other line ends,
// members that a later version adds.
func TestDecodeIsLenientAboutForm(t *testing.T) {
	j := decode(t, `{ "condense" : { "version": 1, "id": "9b2f3a9e-1f1e-4a53-8c0d-0a6f1b3c5d7e", "host": "x" } }`+"\r\n"+
		` { "message" : { "id" : "a" , "parts" : [ { "type" : "text" , "text" : "hello" } ] , "mood" : 1 } }`+"\r\n"+
		`{"message":{"id":"b","parts":[{"type":"text","text":"there"}]} }`+"\r\n"+
		`{"condensation":{"id":"X","edit":{"hide":["a"]},"why":"because"}}`+"\r\n"+
		`{"undo":{"id":"X","by":"me"}}`)
	if got, want := says(j.View()), "hello there"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A crash may end the file at any byte. Then the journal is what it was before the record
// that was being written, and what is missing is reported.
func TestDecodeOfAFileCutAnywhere(t *testing.T) {
	t.Parallel()
	whole := encode(t, everything(t))
	header := strings.Index(whole, "\n")
	for cut := range len(whole) {
		file := whole[:cut]
		j, recovery, err := history.Decode(strings.NewReader(file))
		if cut < header {
			if err == nil {
				t.Fatalf("cut at %d, in the header: got no error", cut)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		rest := file[strings.LastIndex(file, "\n")+1:]
		if strings.HasPrefix(whole[cut:], "\n") {
			rest = "" // only the newline is missing
		}
		kept := strings.TrimSuffix(file, rest)
		if !strings.HasSuffix(kept, "\n") {
			kept += "\n"
		}
		if got := encode(t, j); got != kept {
			t.Fatalf("cut at %d: got\n%swant\n%s", cut, got, kept)
		}
		switch {
		case rest == "" && recovery != nil:
			t.Fatalf("cut at %d: got %s, want no recovery", cut, recovery)
		case rest != "" && (recovery == nil || recovery.Bytes != len(rest) || recovery.Line != strings.Count(kept, "\n")+1 || !strings.HasPrefix(rest, recovery.Text)):
			t.Fatalf("cut at %d: got recovery %+v of %q", cut, recovery, rest)
		}
	}
}

// A line that has its newline was written whole: what is wrong with it is no crash, and it
// must not be cut off without a word.
func TestABrokenLastLineWithItsNewlineIsDamage(t *testing.T) {
	for name, file := range map[string]string{
		"version 2": encode(t, replay(t, "append a b")),
		"version 1": `{"condense":{"version":1,"id":"9b2f3a9e-1f1e-4a53-8c0d-0a6f1b3c5d7e"}}` + "\n" + `{"message":{"id":"a"}}` + "\n",
	} {
		broken := `{"message":{"id":"c` + strings.Repeat("\x00", 100) + "\n" // blocks that were never written
		_, _, err := history.Decode(strings.NewReader(file + broken))
		line := strings.Count(file, "\n") + 1
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("line %d: ", line)) || !strings.HasSuffix(err.Error(), "'condense repair' saves the rest") {
			t.Errorf("%s: got error %v, want one about line %d and the remedy", name, err, line)
		}
		path := filepath.Join(t.TempDir(), "journal.jsonl")
		if err := os.WriteFile(path, []byte(file+broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := history.Open(path); err == nil {
			t.Errorf("%s: Open takes the file", name)
		}
		if got := content(t, path); got != file+broken {
			t.Errorf("%s: the file changed", name)
		}
	}
}

// No bit of a journal can change without an error that names a line near it and the remedy.
func TestEveryFlippedBitIsAnError(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	whole := []byte(encode(t, everything(t)))
	line := 1
	for i := range whole {
		for bit := range 8 {
			damaged := bytes.Clone(whole)
			damaged[i] ^= 1 << bit
			j, recovery, err := history.Decode(bytes.NewReader(damaged))
			if err == nil {
				t.Fatalf("byte %d of line %d, bit %d: no error; recovery %v, view %s", i, line, bit, recovery, says(j.View()))
			}
			if want := fmt.Sprintf("line %d: ", line); !strings.HasPrefix(err.Error(), want) {
				t.Fatalf("byte %d, bit %d: got error %v, want %s", i, bit, err, want)
			}
		}
		if whole[i] == '\n' {
			line++
		}
	}
}

func TestLinesOfAnyLength(t *testing.T) {
	t.Parallel()
	m := message("m")
	m.Parts = []core.Part{core.Text(strings.Repeat("0123456789abcdef", 1<<18))} // 4 MiB
	j := history.New()
	if err := j.Append(m, message("n")); err != nil {
		t.Fatal(err)
	}
	got := decode(t, encode(t, j)).View()
	if len(got) != 2 || !core.EqualParts(got[0].Parts, m.Parts) {
		t.Errorf("got %d messages, or the long one changed", len(got))
	}
}

func TestEncodeReportsWhatCannotBeWritten(t *testing.T) {
	j := history.New()
	m := message("m")
	m.Parts = []core.Part{nil}
	if err := j.Append(m); err != nil {
		t.Fatal(err)
	}
	if err := history.Encode(&bytes.Buffer{}, j); err == nil || err.Error() != `message "m": part 0: <nil> is not a part` {
		t.Errorf("got error %v", err)
	}
	if err := history.Encode(failingWriter{}, replay(t, "append a")); !errors.Is(err, errDisk) {
		t.Errorf("got error %v, want that of the writer", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errDisk }

func FuzzDecode(f *testing.F) {
	whole, err := os.ReadFile(filepath.Join("testdata", "journal.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	f.Add(string(whole))
	f.Add(string(whole[:len(whole)-5]))
	f.Add(lines[0])
	f.Add(lines[0] + lines[1] + lines[1])
	f.Add(lines[0] + `{"message":{"id":"a","parts":[{"type":"text","base64":true,"text":"/w=="}],"source_base64":"/w=="}}` + "\n" +
		`{"condensation":{"id":"X","edit":{"insert":[{"message":{"id":"s"}},{"after":"a","message":{"id":"u"}}],"hide":["a"]}}}` + "\n" +
		`{"condensation":{"id":"Y","edit":{"hide":["a","s"]}}}` + "\n" + `{"undo":{"id":"X"}}` + "\n" + `{"rewind":{"to":"a"}}`)
	f.Fuzz(func(t *testing.T, file string) {
		j, recovery, err := history.Decode(strings.NewReader(file))
		if err != nil {
			return
		}
		if recovery != nil && (recovery.Line < 2 || recovery.Bytes > len(file)) {
			t.Fatalf("recovery %+v of %d bytes", recovery, len(file))
		}
		var once bytes.Buffer
		if err := history.Encode(&once, j); err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		again := decode(t, once.String())
		if twice := encode(t, again); twice != once.String() {
			t.Fatalf("got %s\nwant %s", twice, once.String())
		}
		if diff := cmp.Diff(j.View(), again.View(), exactly); diff != "" {
			t.Fatalf("views differ:\n%s", diff)
		}
		if diff := cmp.Diff(j.Timeline(), again.Timeline(), exactly); diff != "" {
			t.Fatalf("timelines differ:\n%s", diff)
		}
	})
}
