package value

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
)

// workOn returns a request, reads of 20 files with an answer to each, and a question at the end.
func workOn() []core.Message {
	messages := []core.Message{coretest.User(core.Text("Mend parseHeader. Never touch the folder vendor."))}
	for i := range 20 {
		id := fmt.Sprint("r", i)
		var file strings.Builder
		for k := range 30 {
			fmt.Fprintf(&file, "%d\tzebra%d_%d := okapi%d(walrus%d)\n", k+1, i, k, k, i)
		}
		messages = append(messages,
			coretest.Assistant(core.Text(fmt.Sprintf("I read number%d, which heron%d needs.", i, i)), core.ToolCall{ID: id, Name: "Read", Args: fmt.Sprintf(`{"file_path":"/r/number%d.go"}`, i)}),
			coretest.User(coretest.Result(id, file.String())))
	}
	return coretest.Conversation(append(messages, coretest.Assistant(core.Text("It returns too early.")), coretest.User(core.Text("And why does it?")))...)
}

// optionsFor returns options with room for three tenths of messages.
func optionsFor(messages []core.Message) *Options {
	tokens := 0
	for i := range messages {
		tokens += messages[i].Tokens
	}
	o := &Options{Room: tokens * 3 / 10, Counter: coretest.Counter{}}
	if err := o.complete(); err != nil {
		panic(err)
	}
	return o
}

// chosenFrom returns the choice among the lines of messages before anything was chosen.
func chosenFrom(t *testing.T, messages []core.Message, o *Options) *choice {
	t.Helper()
	v, pre, err := prepare(t.Context(), readAll(messages, o))
	if err != nil {
		t.Fatal(err)
	}
	return newChoice(arrange(v, pre))
}

// lineOf returns the first line with a text.
func lineOf(t *testing.T, c *Conversation, text string) int {
	t.Helper()
	for l := range c.Lines {
		if strings.Contains(c.Lines[l].Text, text) {
			return l
		}
	}
	t.Fatalf("no line has %q", text)
	return 0
}

// TestReading: a reading says which messages the model has not answered yet and which have the newest results, and
// divides the text of files into blocks, but not what the user said.
func TestReading(t *testing.T) {
	messages := workOn()
	r := readAll(messages, optionsFor(messages))
	if want := len(messages) - 1; r.unread != want {
		t.Errorf("unread from message %d on, want %d", r.unread, want)
	}
	if want := len(messages) - 1 - 2*recentResults; r.recent != want {
		t.Errorf("the newest results begin in message %d, want %d", r.recent, want)
	}
	if r.talks {
		t.Error("reads of files count as talk")
	}
	if l := lineOf(t, r.c, "zebra3_0 "); r.blocks[l] == 0 || r.blocks[l+29] != r.blocks[l] {
		t.Errorf("the first and the last line of a definition are in blocks %d and %d, want one", r.blocks[l], r.blocks[l+29])
	}
	if l := lineOf(t, r.c, "Mend parseHeader"); r.blocks[l] != 0 {
		t.Error("what the user said is divided into blocks")
	}
}

// TestRating: a line costs its tokens and its end, its names are worth more if they are used again at the end, and
// what an account says again counts nothing.
func TestRating(t *testing.T) {
	messages := workOn()
	messages = coretest.Conversation(append(messages[:len(messages)-2], coretest.Assistant(core.Text("So zebra4_5 is what breaks, and zebra4_5 must change.")), messages[len(messages)-1])...)
	o := optionsFor(messages)
	said := "I read number7, which heron7 needs."
	o.Account = said
	w, err := rate(t.Context(), readAll(messages, o))
	if err != nil {
		t.Fatal(err)
	}
	l := lineOf(t, w.r.c, "zebra3_5 ")
	if got, want := int(w.lines[l].tokens), o.Counter.Count(core.Text(w.r.c.Lines[l].Text))+1; got != want {
		t.Errorf("%q costs %d tokens, want %d", w.r.c.Lines[l].Text, got, want)
	}
	used, unused := w.alone(lineOf(t, w.r.c, "zebra4_5 ")), w.alone(lineOf(t, w.r.c, "zebra4_6 "))
	if used <= unused {
		t.Errorf("a line is worth %v although its name is used again, and %v where it is not", used, unused)
	}
	if l := lineOf(t, w.r.c, said); !w.r.c.Lines[l].outdated {
		t.Errorf("%q is in the account and is kept", said)
	}
}

// TestLayout: protected messages and the newest stay in place, results of those may be shortened, and older ones are
// hidden.
func TestLayout(t *testing.T) {
	messages := workOn()
	messages[3].Protected, messages[4].Protected = true, true
	w := chosenFrom(t, messages, optionsFor(messages))
	hidden := w.lay.hidden()
	for i, want := range map[int]bool{1: true, 3: false, 4: false, len(messages) - 1: false} {
		if hidden[i] != want {
			t.Errorf("message %d is hidden: %v, want %v", i, hidden[i], want)
		}
	}
	for text, want := range map[string]mode{"zebra0_0 ": modeExtract, "zebra1_0 ": modeFixed, "zebra19_0 ": modeOpen} {
		if got := w.passages[w.lines[lineOf(t, w.r.c, text)].passage].mode; got != want {
			t.Errorf("%q: mode %d, want %d", text, got, want)
		}
	}
	if w.picks[0] <= 0 || w.picks[0] >= float64(w.r.o.Room) {
		t.Errorf("what stays has %v tokens of %d", w.picks[0], w.r.o.Room)
	}
}

// TestReservations: what the user forbids and a cause that the assistant gave are kept before lines compete, and leave them
// room.
func TestReservations(t *testing.T) {
	const cause = "The root cause is the flag early."
	messages := workOn()
	messages[1].Parts[0] = core.Text(cause)
	messages = coretest.Conversation(messages...)
	w := chosenFrom(t, messages, optionsFor(messages))
	if err := reserveAll(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"Never touch", cause} {
		if w.lines[lineOf(t, w.r.c, text)].at == 0 {
			t.Errorf("%q is not kept", text)
		}
	}
	if most := float64(w.r.o.Room); w.spent() >= most {
		t.Errorf("the reservations took %v tokens, the room is %v", w.spent(), most)
	}
}

// TestWorkReservations: a reservation of work is not made in talk, nor among results that alone may be shortened.
func TestWorkReservations(t *testing.T) {
	was := reservations
	defer func() { reservations = was }()
	made := 0
	reservations = []reservation{{keep: func(context.Context, *choice) error { made++; return nil }, work: true}}
	messages := workOn()
	for _, tt := range []struct {
		name string
		set  func(w *choice)
		want int
	}{
		{"work", func(*choice) {}, 1},
		{"talk", func(w *choice) { w.r.talks = true }, 0},
		{"results", func(w *choice) { w.r.o.Only = func(*core.Message, int) bool { return true } }, 0},
	} {
		w := chosenFrom(t, messages, optionsFor(messages))
		tt.set(w)
		made = 0
		if err := reserveAll(t.Context(), w); err != nil || made != tt.want {
			t.Errorf("%s: made %d times, %v, want %d", tt.name, made, err, tt.want)
		}
	}
}

// TestChoose: the lines that are chosen fill the room, and none that is left is worth more by the token.
func TestChoose(t *testing.T) {
	messages := workOn()
	w := chosenFrom(t, messages, optionsFor(messages))
	if err := w.choose(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.spent() < float64(w.r.o.Room) || w.spent() > w.most()+200 {
		t.Errorf("%v tokens are chosen, the room is %d", w.spent(), w.r.o.Room)
	}
	left := 0
	for l := range w.lines {
		if w.lines[l].at != 0 || w.gone(l) || !w.eligible(int(w.lines[l].passage)) {
			continue
		}
		left++
		if r := w.rate(w.unit(l)); r > w.threshold {
			t.Errorf("%q is not chosen and is worth %v a token, more than the last that was: %v", w.r.c.Lines[l].Text, r, w.threshold)
		}
	}
	if left == 0 {
		t.Error("all lines are chosen")
	}
}

// TestExtract: an extract has the lines that were picked, a mark between lines with others left out, and those of the
// room only.
func TestExtract(t *testing.T) {
	messages := workOn()
	w := chosenFrom(t, messages, optionsFor(messages))
	l := lineOf(t, w.r.c, "zebra2_3 ")
	for _, k := range []int{l, l + 1, l + 9} {
		w.take(core.Span{Start: k, End: k + 1}, 10)
	}
	w.take(core.Span{Start: l + 20, End: l + 21}, 2*float64(w.r.o.Room))
	res := extract(w)
	got := ""
	for i := range res.Messages {
		if res.Messages[i].Kind == core.KindSummary {
			text, _ := res.Messages[i].Parts[0].(core.Text)
			got = string(text)
		}
	}
	want := strings.Join([]string{w.r.c.Lines[l].Text, w.r.c.Lines[l+1].Text, GapMark, w.r.c.Lines[l+9].Text}, "\n")
	if !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant in it\n%s", got, want)
	}
	if strings.Contains(got, w.r.c.Lines[l+20].Text) {
		t.Error("a line is there for which there is no room")
	}
	if a := res.Kinds[dialog.KindToolResult.String()]; a.LinesKept < 3 || a.LinesKept >= a.Lines {
		t.Errorf("%d of %d lines of results are kept", a.LinesKept, a.Lines)
	}
}

// TestOutcomes: of a check that failed, a reader sees why and not only that it exited.
func TestOutcomes(t *testing.T) {
	messages := workOn()
	run := []core.Message{
		coretest.Assistant(core.ToolCall{ID: "c", Name: "Bash", Args: `{"command":"pnpm check"}`}),
		coretest.User(coretest.Result("c", "linting 41 heron files\nsrc/zebra.ts:4:1 error: walrus is not assignable\nsrc/okapi.ts:9:2 error: stork has no call signature\nCommand exited with code 2")),
	}
	messages = coretest.Conversation(append(append(append([]core.Message(nil), messages[:3]...), run...), messages[3:]...)...)
	w := chosenFrom(t, messages, optionsFor(messages))
	if err := keepOutcomes(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"exited with code 2": true, "walrus is not": true, "stork has": true, "linting 41": false} {
		if got := w.lines[lineOf(t, w.r.c, text)].at != 0; got != want {
			t.Errorf("%q is kept: %v, want %v", text, got, want)
		}
	}
}

// TestNumbersOfRooCodeCount: lines of a file with numbers, as Roo Code writes them, need no number of omitted lines.
func TestNumbersOfRooCodeCount(t *testing.T) {
	if got := gapOf(40, 0, "12 | foo", "60 | bar"); got != GapMark {
		t.Errorf("got %q between numbered lines", got)
	}
	if text, outer := content("12 | func f() {"); text != "func f() {" || !outer {
		t.Errorf("got %q, and it is indented", text)
	}
}
