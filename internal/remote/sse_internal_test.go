package remote

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// read returns the events of a stream as "name:data", and the error that ended it.
func read(r io.Reader) ([]string, error) {
	var all []string
	for events := newEventReader(r); ; {
		e, err := events.next()
		if err != nil {
			return all, err
		}
		all = append(all, e.name+":"+string(e.data))
	}
}

func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		want         []string
	}{
		{"nothing", "", nil},
		{"one", "data: a\n\n", []string{":a"}},
		{"a name", "event: ping\ndata: {}\n\n", []string{"ping:{}"}},
		{"the name first or last", "data: a\nevent: x\n\n", []string{"x:a"}},
		{"a name does not last", "event: x\ndata: a\n\ndata: b\n\n", []string{"x:a", ":b"}},
		{"a name alone", "event: x\n\ndata: b\n\n", []string{":b"}},
		{"several lines", "data: a\ndata: b\ndata\n\n", []string{":a\nb\n"}},
		{"comments and unknown fields", ": keep-alive\nid: 7\nretry: 10\nfoo: bar\n\n: again\n\ndata: a\n\n", []string{":a"}},
		{"no space, two spaces", "data:a\n\ndata:  b\n\n", []string{":a", ": b"}},
		{"a colon in the data", "data: a: b\n\n", []string{":a: b"}},
		{"CR LF", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"x:a", ":b"}},
		{"CR", "data: a\r\rdata: b\r\r", []string{":a", ":b"}},
		{"mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", []string{":a", ":b", ":c"}},
		{"a byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{":a"}},
		{"empty data", "data\n\ndata:\n\n", []string{":", ":"}},
		{"cut in an event", "data: a\n\ndata: {\"x\":", []string{":a"}},
		{"cut before the blank line", "data: a\n\ndata: b\n", []string{":a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole":       strings.NewReader(tt.stream),
				"by the byte": iotest.OneByteReader(strings.NewReader(tt.stream)),
				"with EOF":    iotest.DataErrReader(strings.NewReader(tt.stream)),
			} {
				if got, err := read(r); !slices.Equal(got, tt.want) || !errors.Is(err, io.EOF) {
					t.Errorf("%s: got %q, %v; want %q", name, got, err, tt.want)
				}
			}
		})
	}
}

// endless is a line that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestEventsAreBounded(t *testing.T) {
	line := &endless{}
	if _, err := read(line); !errors.Is(err, errLongEvent) || line.read > 2*longestLine {
		t.Errorf("a line without end: got %v after %d bytes", err, line.read)
	}
	lines := strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 20))
	if _, err := read(lines); !errors.Is(err, errLongEvent) {
		t.Errorf("an event without end: got %v", err)
	}
}

// However a stream arrives, it says the same, and no line end is ever part of a name.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "event: x\r\ndata: a\r\n\r\n", "\xef\xbb\xbf: c\rdata:a\r\r", "data", "\xef\xbb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		want, err := read(strings.NewReader(stream))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		got, _ := read(iotest.HalfReader(strings.NewReader(stream)))
		if !slices.Equal(got, want) {
			t.Errorf("got %q by halves, %q at once", got, want)
		}
		for _, e := range want {
			if name, _, _ := strings.Cut(e, ":"); strings.ContainsAny(name, "\r\n") {
				t.Errorf("got the name %q", name)
			}
		}
	})
}

func TestStreamsAreBounded(t *testing.T) {
	w := &watched{in: &endless{}, watch: time.NewTimer(time.Hour), silence: time.Hour}
	defer w.watch.Stop()
	buf := make([]byte, 1<<20)
	for range 2 * longestStream / len(buf) {
		if _, err := w.Read(buf); err != nil {
			if !errors.Is(err, errManyBytes) {
				t.Fatal(err)
			}
			return
		}
	}
	t.Errorf("got %d bytes of a stream without end", w.n)
}
