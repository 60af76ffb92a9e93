package benchdata_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/benchdata"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// The sizes in bench/results/appendix-benchmarks.md and in the peers' measurements.
const (
	messages = 10_000
	bytesOf  = 5_200_000
	tokensOf = 1_175_534 // of o200k_base, in the conversation that the peers were measured on
	calls    = messages / 4
	repeated = calls * 3 / 10
)

func TestShape(t *testing.T) {
	t.Parallel()
	ms := benchdata.Messages(messages)
	if len(ms) != messages {
		t.Fatalf("got %d messages, want %d", len(ms), messages)
	}
	enc, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	size, count, reads := 0, 0, map[[2]string]int{}
	var args string
	text := func(s string) {
		size += len(s)
		count += enc.CountText(s)
	}
	for i, m := range ms {
		want := core.RoleUser
		if i%2 == 1 {
			want = core.RoleAssistant
		}
		if m.Role != want {
			t.Fatalf("message %s is from %s, want %s", m.ID, m.Role, want)
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.Text:
				text(string(p))
			case core.ToolCall:
				text(p.Name)
				text(p.Args)
				args = p.Args
			case core.ToolResult:
				content := string(p.Content[0].(core.Text))
				text(content)
				reads[[2]string{args, content}]++
			case core.Image, core.Reasoning, core.Opaque:
				t.Errorf("message %s has a %T", m.ID, p)
			}
		}
	}
	near(t, "bytes of text", size, bytesOf)
	near(t, "tokens", count, tokensOf)
	total := 0
	for _, n := range reads {
		total += n
	}
	if total != calls || total-len(reads) != repeated {
		t.Errorf("got %d reads of which %d repeat an earlier one, want %d and %d", total, total-len(reads), calls, repeated)
	}
}

// near requires a value within 3 percent.
func near(t *testing.T, what string, got, want int) {
	t.Helper()
	t.Logf("%s: %d", what, got)
	if d := got - want; 100*max(d, -d) > 3*want {
		t.Errorf("%s: got %d, want %d within 3 percent", what, got, want)
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	long := benchdata.Messages(101)
	for _, n := range []int{0, 1, 2, 3, 50} {
		if diff := cmp.Diff(benchdata.Messages(n), long[:n]); diff != "" {
			t.Errorf("the first %d messages differ (-alone +of 101):\n%s", n, diff)
		}
	}
}

// The file and the messages are one conversation.
func TestWriteAnthropic(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := benchdata.WriteAnthropic(&b, 200); err != nil {
		t.Fatal(err)
	}
	d, err := transcript.Read(&b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.Format != "anthropic" || len(d.Warnings) > 0 {
		t.Errorf("read as %s with warnings %v, want anthropic without any", d.Format, d.Warnings)
	}
	got, want := d.Journal.View(), benchdata.Messages(200)
	if len(got) != len(want) {
		t.Fatalf("got %d messages, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Role != want[i].Role || !core.EqualParts(got[i].Parts, want[i].Parts) {
			t.Errorf("message %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}
