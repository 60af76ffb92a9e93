package value_test

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/value"
)

// TestOpaqueRunsCostNothing: of base64 in a text nothing is kept, whatever its form, but the words beside it are.
func TestOpaqueRunsCostNothing(t *testing.T) {
	data := make([]byte, 30_000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	blob := base64.StdEncoding.EncodeToString(data)
	object, err := json.Marshal(map[string]any{"title": "Checkout of the checkoutCanary", "data": blob, "url": "https://example.com/canary"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ result, want string }{
		"one line": {"checkoutCanary begins at shelf_17\n" + blob + "\ncheckoutCanary ends at shelf_93", "checkoutCanary begins at shelf_17\n[base64, 40 kB]\ncheckoutCanary ends at shelf_93"},
		"wrapped":  {"checkoutCanary begins at shelf_17\n" + strings.Join(slices.Collect(wrapped(blob)), "\n") + "\ncheckoutCanary ends at shelf_93", "checkoutCanary begins at shelf_17"},
		"a URL":    {"body { background: url(data:image/png;base64," + blob + "); color: checkoutCanary }", "color: checkoutCanary"},
		"JSON":     {string(object), "Checkout of the checkoutCanary"},
	} {
		old := reading(30)
		shot := did("x", "mcp__browser__shot", `{"page":"canary"}`, c.result, false)
		ask := coretest.User(core.Text("Where is checkoutCanary, shelf_17 or shelf_93?"))
		hidden := measured(slices.Concat(old[:1], shot, old[1:], []core.Message{ask}))
		newest := measured(slices.Concat(old, []core.Message{ask}, shot))
		got := viewText(shortenWith(t, hidden, tokensOf(old)/4, value.Options{}))
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: without %q:\n%.3000s", name, c.want, got)
		}
		got += viewText(shortenWith(t, newest, tokensOf(old)/4, value.Options{}))
		if run := regexp.MustCompile(`[A-Za-z0-9+/=]{70,}`).FindString(got); run != "" {
			t.Errorf("%s: with %q", name, run)
		}
	}
}

// wrapped yields s in lines of 76 characters.
func wrapped(s string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(s) > 76 && yield(s[:76]) {
			s = s[76:]
		}
		yield(s)
	}
}

// TestNoEmptyShells: what a tool writes around a file is not shown without the file, or with it.
func TestNoEmptyShells(t *testing.T) {
	old := reading(30)
	messages := old[:1:1]
	for _, name := range []string{"footer", "header", "layout"} {
		messages = append(messages, did(name, "read", `{"filePath":"/src/`+name+`.tsx"}`, "<path>/src/"+name+".tsx</path>\n<type>file</type>\n<content>\n1: import React from 'react'\n2: export const "+name+" = 1\n\n(End of file)\n</content>", false)...)
	}
	messages = measured(slices.Concat(messages, old[1:]))
	for _, share := range []int{4, 8, 16} {
		if got := viewText(shortenWith(t, messages, tokensOf(messages)/share, value.Options{})); strings.Contains(got, "<type>file") || strings.Contains(got, "<content>") {
			t.Errorf("1/%d: %.2000s", share, got)
		}
	}
}
