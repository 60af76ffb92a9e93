package transcript_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/condensehq/condense/transcript"
)

// Read never panics; what it reads it writes back byte for byte; what it converts is valid and
// can be read.
func FuzzRead(f *testing.F) {
	for _, test := range odd {
		f.Add([]byte(test.data))
	}
	f.Add([]byte(`{"condense":{"version":1,"id":"00000000-0000-4000-8000-000000000000","meta":{"format":"anthropic","envelope":{"head":"[","tail":"]","sep":",","gaps":{"b":" , "}}}}}
{"message":{"id":"a","role":"user","parts":[{"type":"text","text":"x"}],"source":{"role":"user","content":"x"}}}
{"message":{"id":"b","role":"assistant","parts":[]}}
{"condensation":{"id":"c","edit":{"hide":["a"]}}}
`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := transcript.Read(bytes.NewReader(data), nil)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("an error that says nothing")
			}
			return
		}
		own := func() string {
			var out strings.Builder
			if _, err := d.Write(&out, ""); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		switch first := own(); {
		case d.Format != "condense" && first != string(data) && !bytes.HasPrefix(data, []byte("\x1f\x8b")):
			t.Fatalf("written back as %q", first)
		case d.Format == "condense" && first != own():
			t.Fatal("a journal is written in two ways")
		}
		for _, format := range transcript.Formats() {
			if format.ReadOnly {
				continue
			}
			var out strings.Builder
			if _, err := d.Write(&out, format.Name); err != nil {
				t.Fatalf("write %s: %v", format.Name, err)
			}
			back, err := transcript.Read(strings.NewReader(out.String()), &transcript.ReadOptions{Format: format.Name})
			if err != nil && format.Name != d.Origin { // a journal may hold any envelope
				t.Fatalf("what was written as %s cannot be read: %v\n%s", format.Name, err, out.String())
			}
			if format.Name == d.Origin || len(d.Journal.View()) == 0 || back == nil {
				continue
			}
			switch format.Name {
			case "anthropic", "openai", "responses", "trace":
				if all := faults(format.Name, out.String()); len(all) > 0 {
					t.Fatalf("%s would refuse it: %v\n%s", format.Name, all, out.String())
				}
			}
		}
	})
}

// Detection never panics, on whatever bytes.
func FuzzDetect(f *testing.F) {
	for _, s := range []string{"", "{", "[", `{"`, `{"a":`, `[{"role":"user","content":[{"type":`, "\"", `{"messages":[{"`, "\x1f\x8b", `["\"`, `{"a\"":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if format, err := transcript.Detect(data); (format == "") == (err == nil) {
			t.Fatalf("got %q and %v", format, err)
		}
	})
}
