package library

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/recall"
)

// A handle of what was only sent, with a +, leads to it and to the client's messages after those that it replaced: at the next epoch, and
// at the one after that, when it is sent no more.
func TestOnwardFromWhatWasSent(t *testing.T) {
	message := func(text string) []byte {
		return fmt.Appendf(nil, `{"role":"user","content":[{"type":"text","text":%q}]}`, text)
	}
	var own [][]byte
	for i := range 6 {
		own = append(own, message(fmt.Sprint("own ", i)))
	}
	own[4] = own[0] // some say the same twice
	sent := [][]byte{message("of the first"), own[1], message("short 2"), own[3], own[4], own[5]}
	first := originals(own, 4, sent, nil)
	second := originals(own, len(own), [][]byte{message("of both"), message("short 4"), own[5]}, first)
	for _, tt := range []struct{ from, want string }{
		{"short 2", "short 2; own 2; own 3; own 0; own 5"},
		{"short 4", "short 4; own 0; own 1; own 2; own 3; own 0; own 5"}, // too early, not too late: nothing says what it replaced
		{"own 3", "own 3; own 0; own 5"},
		{"own 5", "own 5"},
	} {
		k, err := remember(wire.Messages, second)
		if err != nil {
			t.Fatal(err)
		}
		r := recall.Ref{Handle: core.Handle(core.Text(tt.from)), Onward: true}
		if handles, fromSent, err := k.keeps(map[recall.Ref]bool{r: true}); err != nil || fromSent != strings.HasPrefix(tt.from, "short") || !slices.Contains(handles, r.String()) {
			t.Errorf("%s: kept as %v, %v, %v", tt.from, handles, fromSent, err)
		}
		pieces, err := k.named(r)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range pieces {
			got = append(got, p.Text())
		}
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("from %s on: %s; want %s", tt.from, text, tt.want)
		}
	}
	k, err := remember(wire.Messages, first)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.keeps(map[recall.Ref]bool{{Handle: core.Handle(core.Text("own 5"))}: true}); err == nil {
		t.Error("what is not kept is promised")
	}
}
