package wasm

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/byhand"
)

// TestRefusesLater: a module that refuses settings which it has accepted, as one with a clock can, fails the call and not the process.
func TestRefusesLater(t *testing.T) {
	for _, file := range []string{"testdata/tidy-rust.wasm", "testdata/tidy-assemblyscript.wasm"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := compile(t.Context(), data, "")
		if err != nil {
			t.Fatal(err)
		}
		g := &guest{module: m, out: io.Discard}
		g.settings = &settings{values: byhand.AppendBytes(nil, 3, byhand.AppendStrings(nil, "recent", "-1"))}
		_, err = g.Condense(t.Context(), &wire.GuestCall{})
		if err == nil || !strings.Contains(err.Error(), "it refuses settings that it has accepted: recent: ") {
			t.Errorf("%s: got %v", file, err)
		}
		if err := m.runtime.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
