package agents_test

import (
	"regexp"
	"testing"
)

var savedTokens = regexp.MustCompile(`(?m)^saved [1-9]\d*$`)

// TestCompress runs a loop that asks for the messages to send with the npm client of headroom, and sends them to the vendor itself.
func TestCompress(t *testing.T) {
	t.Parallel()
	d := newDesk(t, scenario())
	d.place(t, "compress.mjs")
	g := d.serve(t, "127.0.0.1:0")
	got := d.run(t, []string{"OPENAI_API_KEY=dummy", "OPENAI_BASE_URL=" + d.url + "/v1", "HEADROOM_BASE_URL=" + g.url}, "node", "compress.mjs", task)
	d.condensed(t, got, g.epochs(t))
	if !savedTokens.MatchString(got.out) {
		t.Errorf("nothing was saved\n%s", tail(got.out))
	}
}
