package transcript_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/testkit/apilint"
	"github.com/condensehq/condense/transcript"
)

func faults(format, file string) []apilint.Fault {
	switch format {
	case "openai":
		return apilint.OpenAI([]byte(file))
	case "responses":
		return apilint.Responses([]byte(file))
	}
	all := apilint.Anthropic([]byte(file))
	if format == "trace" { // which has an origin in addition to the content
		all = slices.DeleteFunc(all, func(f apilint.Fault) bool { return f.Rule == "field" && strings.HasSuffix(f.Detail, `"origin"`) })
	}
	return all
}

// content is what must not get lost: the words, and which result answers which call.
type content struct{ words, pairs []string }

func contentOf(system string, messages []core.Message) content {
	c := content{words: strings.Fields(system)}
	open := map[string][]string{}
	var texts func(parts []core.Part) []string
	texts = func(parts []core.Part) (words []string) {
		for _, p := range parts {
			switch p := p.(type) {
			case core.Text:
				words = append(words, strings.Fields(string([]rune(string(p))))...)
			case core.ToolResult:
				words = append(words, texts(p.Content)...)
			case core.ToolCall, core.Image, core.Reasoning, core.Opaque:
			}
		}
		return words
	}
	for _, m := range messages {
		c.words = append(c.words, texts(m.Parts)...)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.ToolCall:
				if m.Role == core.RoleAssistant {
					open[p.ID] = append(open[p.ID], p.Name)
				}
			case core.ToolResult:
				if names := open[p.CallID]; len(names) > 0 {
					open[p.CallID] = names[1:]
					if words := texts(p.Content); len(words) > 0 {
						c.pairs = append(c.pairs, strings.Join(words, " "))
					}
				}
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	return c
}

// missing returns what want has and got has not, counting.
func missing(want, got []string) []string {
	have := map[string]int{}
	for _, s := range got {
		have[s]++
	}
	var lost []string
	for _, s := range want {
		if have[s]--; have[s] < 0 {
			lost = append(lost, s)
		}
	}
	return lost
}

func count(messages []core.Message, is func(core.Part) bool) int {
	n := 0
	var in func(parts []core.Part)
	in = func(parts []core.Part) {
		for _, p := range parts {
			if is(p) {
				n++
			}
			if r, ok := p.(core.ToolResult); ok {
				in(r.Content)
			}
		}
	}
	for _, m := range messages {
		in(m.Parts)
	}
	return n
}

// Whatever a conversation looks like, its conversion is valid, has the same content, and what
// it lacks is in a warning.
func TestPropertyConversionIsValidAndNamesItsLosses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := wildMessages(t)
		d := &transcript.Document{Journal: history.New(), System: rapid.SampledFrom([]string{"", "be kind"}).Draw(t, "system")}
		if err := d.Journal.Append(messages...); err != nil {
			t.Fatal(err)
		}
		to := rapid.SampledFrom([]string{"anthropic", "openai", "responses", "trace"}).Draw(t, "to")
		var out strings.Builder
		warnings, err := d.Write(&out, to)
		if err != nil {
			t.Fatal(err)
		}
		if all := faults(to, out.String()); len(all) > 0 && len(messages) > 0 {
			t.Fatalf("%s is invalid: %v\n%s", to, all, out.String())
		}
		back, err := transcript.Read(strings.NewReader(out.String()), &transcript.ReadOptions{Format: to})
		if err != nil {
			t.Fatal(err)
		}
		view := back.Journal.View()
		want, got := contentOf(d.System, messages), contentOf(back.System, view)
		if lost := missing(want.words, got.words); lost != nil {
			t.Errorf("words lost: %q\n%s", lost, out.String())
		}
		pairs := got.pairs
		for i := range pairs { // notes replace what is not text
			pairs[i] = withoutNotes(pairs[i])
		}
		for _, p := range missing(want.pairs, pairs) {
			t.Errorf("result %q lost its call\n%s", p, out.String())
		}
		for word, is := range map[string]func(core.Part) bool{
			"reasoning":    func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok },
			"of kind":      func(p core.Part) bool { _, ok := p.(core.Opaque); return ok },
			"kind \"image": func(p core.Part) bool { _, ok := p.(core.Image); return ok },
		} {
			lost := count(messages, is) - count(view, is)
			said := 0
			for _, w := range warnings {
				if strings.Contains(w.Text, word) || word != "reasoning" && strings.Contains(w.Text, "result without a call") {
					said++
				}
			}
			if lost > said {
				t.Errorf("%d parts lost (%s), %d warnings: %v", lost, word, said, warnings)
			}
		}
	})
}

func withoutNotes(s string) string {
	for _, note := range []string{"[content of kind", "(The image follows in the next user message.)", "(no output)"} {
		for {
			i := strings.Index(s, note)
			if i < 0 {
				break
			}
			end := len(s)
			if j := strings.IndexAny(s[i:], ")]"); j >= 0 {
				end = i + j + 1
			}
			s = s[:i] + s[end:]
		}
	}
	return strings.Join(strings.Fields(s), " ")
}

func TestPropertyValidConversationsRoundTrip(t *testing.T) {
	for _, format := range []string{"anthropic", "openai", "trace", "condense"} {
		t.Run(format, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				messages := tame(t, format)
				if format == "condense" {
					messages = wildMessages(t)
				}
				d := &transcript.Document{Journal: history.New()}
				if err := d.Journal.Append(messages...); err != nil {
					t.Fatal(err)
				}
				var out strings.Builder
				warnings, err := d.Write(&out, format)
				if err != nil || len(warnings) > 0 {
					t.Fatalf("got %v, warnings %v", err, warnings)
				}
				back, err := transcript.Read(strings.NewReader(out.String()), &transcript.ReadOptions{Format: format})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(messages, without(back.Journal.View())); diff != "" {
					t.Fatalf("(-want +got):\n%s\n%s", diff, out.String())
				}
			})
		})
	}
}

// Condensing a file in its own format adds no fault to those that it had (but for rows of
// the assistant's messages), leaves every other message as it was, and says what the view
// says; of the user's messages, those that make a row only now are one.
func TestPropertyCondensedFileSaysTheView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]string{"anthropic", "openai", "trace"}).Draw(t, "format")
		d := &transcript.Document{Journal: history.New()}
		if err := d.Journal.Append(tame(t, format)...); err != nil {
			t.Fatal(err)
		}
		var first, second strings.Builder
		if _, err := d.Write(&first, format); err != nil {
			t.Fatal(err)
		}
		d, err := transcript.Read(strings.NewReader(first.String()), &transcript.ReadOptions{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		view := d.Journal.View()
		var edit core.Edit
		for _, g := range core.Groups(view) {
			if rapid.Bool().Draw(t, "hide") {
				for i := g.Start; i < g.End; i++ {
					edit.Hide = append(edit.Hide, view[i].ID)
				}
				continue
			}
			for i := g.Start; i < g.End; i++ {
				if rapid.Bool().Draw(t, "rewrite") {
					edit.Rewrite = append(edit.Rewrite, core.Rewrite{ID: view[i].ID, Parts: shorter(view[i].Parts)})
				}
			}
		}
		edit.Insert = []core.Insert{{Message: core.Message{ID: "s", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("sum")}}}}
		if err := d.Journal.Condense(history.Condensation{ID: "c", Edit: edit}); err != nil {
			t.Fatal(err)
		}
		apart := rapid.Bool().Draw(t, "apart") || format == "trace"
		if warnings, err := d.WriteWith(&second, &transcript.WriteOptions{Apart: apart}); err != nil || len(warnings) > 0 {
			t.Fatal(warnings, err)
		}
		allowed := slices.DeleteFunc(faults(format, second.String()), func(f apilint.Fault) bool {
			return f.Rule == "alternation" && (apart || !strings.Contains(f.Detail, `"user"`))
		})
		if added := apilint.Added(faults(format, first.String()), allowed); len(added) > 0 {
			t.Fatalf("added %v\n%s", added, second.String())
		}
		back, err := transcript.Read(strings.NewReader(second.String()), &transcript.ReadOptions{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		want, got := d.Journal.View(), back.Journal.View()
		if !apart {
			want = withoutNewRows(want, view)
		}
		if len(want) != len(got) {
			t.Fatalf("got %d messages, want %d", len(got), len(want))
		}
		for i := range want {
			if !core.EqualParts(want[i].Parts, got[i].Parts) || want[i].Role != got[i].Role {
				t.Fatalf("message %s\ngot  %v\nwant %v\n%s", want[i].ID, got[i].Parts, want[i].Parts, second.String())
			}
			if want[i].Source != nil && string(want[i].Source) != string(got[i].Source) {
				t.Fatalf("message %s\ngot  %s\nwant %s", want[i].ID, got[i].Source, want[i].Source)
			}
		}
	})
}

// withoutNewRows returns messages with those of the user that follow each other, and did
// not in the file that was read, made one. None of those here begins with results then.
func withoutNewRows(messages, read []core.Message) []core.Message {
	place := map[string]int{}
	for i := range read {
		place[read[i].ID] = i + 1
	}
	var out []core.Message
	last := 0
	for _, m := range messages {
		n := len(out)
		if n > 0 && m.Role == core.RoleUser && out[n-1].Role == core.RoleUser && (last == 0 || place[m.ID] != last+1) {
			out[n-1].Parts = slices.Concat(out[n-1].Parts, m.Parts)
			out[n-1].Source = nil
		} else {
			out = append(out, m)
		}
		last = place[m.ID]
	}
	return out
}

// shorter returns parts as a provider would cut them.
func shorter(parts []core.Part) []core.Part {
	var out []core.Part
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			out = append(out, core.Text("cut"))
		case core.ToolResult:
			p.Content = []core.Part{core.Text("cut")}
			out = append(out, p)
		case core.ToolCall:
			p.Args = `{}`
			out = append(out, p)
		case core.Image:
			out = append(out, core.Text("an image"))
		case core.Opaque:
			out = append(out, p)
		case core.Reasoning: // goes
		}
	}
	return out
}

// unmarked are the formats that cannot mark a failure.
var unmarked = map[string]bool{"openai": true, "codex": true, "responses": true}

// Through any two formats in a row a conversation keeps who says what in which order, which
// result answers which call, and which results are failures where both formats can say so.
func TestPropertyEveryFormatKeepsRolesPairsAndFailures(t *testing.T) {
	t.Parallel()
	var formats []string
	for _, f := range transcript.Formats() {
		if !f.ReadOnly {
			formats = append(formats, f.Name)
		}
	}
	said := func(messages []core.Message, failures bool) []string {
		var all []string
		calls := map[string]int{} // IDs may change; the number of the call does not
		for _, m := range messages {
			for _, p := range m.Parts {
				switch p := p.(type) {
				case core.Text:
					all = append(all, string(m.Role)+": "+strings.Join(strings.Fields(string(p)), " "))
				case core.ToolCall:
					calls[p.ID] = len(calls) + 1
					all = append(all, fmt.Sprintf("call %d: %s", calls[p.ID], p.Name))
				case core.ToolResult:
					var words []string
					for _, q := range p.Content {
						if s, ok := q.(core.Text); ok && !strings.HasPrefix(string(s), "(") && !strings.HasPrefix(string(s), "[") {
							words = append(words, strings.Fields(withoutNotes(string(s)))...) // notes that a format writes into the text
						}
					}
					all = append(all, fmt.Sprintf("result %d: %v %s", calls[p.CallID], failures && p.IsError, strings.Join(words, " ")))
				case core.Image, core.Reasoning, core.Opaque:
				}
			}
		}
		// A format may put images of results, and the note about them, after the results.
		return slices.DeleteFunc(all, func(s string) bool { return strings.HasPrefix(s, "user: From the result of tool call") })
	}
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom(formats).Draw(t, "first")
		second := rapid.SampledFrom(formats).Draw(t, "second")
		messages := tame(t, "anthropic")
		d := &transcript.Document{Journal: history.New()}
		if err := d.Journal.Append(messages...); err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{first, second} {
			out := encode(t, d, format)
			var err error
			if d, err = transcript.Read(strings.NewReader(out), &transcript.ReadOptions{Format: format}); err != nil {
				t.Fatalf("%s: %v\n%s", format, err, out)
			}
		}
		failures := !unmarked[first] && !unmarked[second]
		if diff := cmp.Diff(said(messages, failures), said(d.Journal.View(), failures)); diff != "" {
			t.Errorf("%s, then %s (-want +got):\n%s", first, second, diff)
		}
	})
}
