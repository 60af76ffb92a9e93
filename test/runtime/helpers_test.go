package runtime_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/plugin-sdk/host"
	"github.com/condensehq/condense/transcript"
)

// start opens a host that is closed when the test ends.
func start(tb testing.TB, opts *condense.Options) *condense.Host {
	tb.Helper()
	h, err := condense.Open(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := h.Close(); err != nil {
			tb.Error(err)
		}
	})
	return h
}

// open starts a host with values over the defaults, which truncates unless they or the override name a
// chain.
func open(tb testing.TB, v config.Values, o config.Override) *condense.Host {
	tb.Helper()
	c, err := config.New(v, config.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return start(tb, &condense.Options{Config: c.Override(o)})
}

// follow starts a host that watches the files of a configuration, and returns a function
// that waits for the next change to be loaded.
func follow(t *testing.T, load config.Options) (h *condense.Host, reloaded func()) {
	t.Helper()
	reloads := make(chan error, 100)
	h = start(t, &condense.Options{
		Load: &load, Watch: &config.WatchOptions{Interval: time.Millisecond}, Plugins: host.Plugins(""),
		Observe: func(e condense.Event) {
			if e.Kind == condense.EventReloaded {
				reloads <- e.Err
			}
		},
	})
	return h, func() {
		t.Helper()
		select {
		case err := <-reloads:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(testkit.Patience(t)):
			t.Fatal("the change was not noticed")
		}
	}
}

// replace writes a file at once, as editors do: a host that watches it never sees half of
// it.
func replace(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path+".tmp", []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

// loadText returns what a configuration file with this text is loaded as, by a user who
// trusts it.
func loadText(t *testing.T, text string) *config.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "condense.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &config.Options{Path: file, Env: []string{}, Trust: trusted, Chain: []string{}}
}

// trusted trusts every file, for tests of something else.
func trusted(config.Claims) bool { return true }

// plain returns the content of a gzip file.
func plain(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func read(tb testing.TB, data []byte) *transcript.Document {
	tb.Helper()
	d, err := transcript.Read(bytes.NewReader(data), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func write(tb testing.TB, d *transcript.Document, format string) []byte {
	tb.Helper()
	var b bytes.Buffer
	if _, err := d.Write(&b, format); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// talk returns a conversation of n messages of about 100 tokens each.
func talk(n int) *condense.Conversation {
	var messages []core.Message
	for i := range n {
		m := core.Message{ID: strconv.Itoa(i + 1), Role: core.RoleUser, Parts: []core.Part{core.Text(strings.Repeat("word ", 96))}}
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		messages = append(messages, m)
	}
	c := condense.NewConversation()
	if err := c.Append(messages...); err != nil {
		panic(err) // they have IDs
	}
	return c
}
