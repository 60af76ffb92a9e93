package live

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/condensehq/condense/config"
)

// A mode or profile that does not exist, a typing error perhaps, is the default and one line in the log, however many requests name it
// and however many names there are.
func TestUnknownModesAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	log, c := slog.New(slog.NewTextHandler(&out, nil)), config.Default()
	var p profiles
	for i := range 100 {
		for _, k := range []profileKey{{}, {mode: "plna\n"}, {profile: "nope"}, {mode: fmt.Sprint("m", i)}} {
			if r, err := p.resolve(c, k, log); err != nil || r.Profile != "default" || r.Mode != "" {
				t.Fatalf("%+v: got %+v, %v", k, r, err)
			}
		}
	}
	if text := out.String(); strings.Count(text, "plna") != 1 || strings.Count(text, "nope") != 1 || strings.Count(text, "\n") != mostOdd {
		t.Errorf("the log is\n%s", text)
	}
}
