package smart_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/model"
)

var (
	aPath   = regexp.MustCompile(`[a-z_]+/[a-zA-Z_]+\.(?:go|ts|py|md|json)\b`)
	anItem  = regexp.MustCompile(`(?m)^(\d+)\. (.*?)(?: h:[0-9a-f]{10})?$`)
	anEntry = " was looked at in epoch "
)

// TestAccountOverFiveRounds: in recorded sessions, each account is the one before and what is new: the model is shown the old account
// and the
// new messages only; after five epochs each item that no epoch contradicted is there word for word, and none of those that one did.
func TestAccountOverFiveRounds(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const rounds = 5
	for name, all := range sessions(t) {
		if len(all) < 100 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stays, gone []string
			round, count := 0, coretest.Request(nil, 1000).Counter
			tokens := func(s string) int { return count.Count(core.Text(s)) }
			gen := &clerk{info: model.Info{Name: "clerk", Window: 1 << 20}}
			gen.answer = func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
				out := "## Done\n"
				var fresh []string
				for _, path := range aPath.FindAllString(textOf(p.Messages[0]), -1) {
					if item := path + anEntry + string(rune('a'+round)); !slices.Contains(fresh, item) && len(fresh) < 8 {
						fresh = append(fresh, item)
						out += "- " + item + "\n"
					}
				}
				old := anItem.FindAllStringSubmatch(textOf(p.Messages[1:]...), -1)
				for i, item := range old {
					k := slices.Index(stays, item[2])
					switch {
					case k < 0 || i > 1:
					case i == 0:
						out += fmt.Sprintf("GONE %s: it is no longer there\n", item[1])
						gone = append(gone, item[2])
						stays = slices.Delete(stays, k, k+1)
					default:
						now := strings.Replace(item[2], anEntry, " was deleted after epoch ", 1)
						out += fmt.Sprintf("CHANGED %s: %s\n", item[1], now)
						gone, stays[k] = append(gone, item[2]), now
					}
				}
				stays = append(stays, fresh...)
				return writes(out)(ctx, p)
			}
			p := openHandover(t, `{"tokens": 4000, "share": 0.8, "unknown": 1}`, gen)
			var m []core.Message
			said := ""
			for ; round < rounds; round++ {
				part := all[len(all)*round/rounds : len(all)*(round+1)/rounds]
				m = append(m, part...)
				req := coretest.Request(m, 9000)
				core.Measure(req.Counter, req.Messages)
				res := condense(t, p, req)
				m = res.Messages
				for i := range m {
					if m[i].ID == "" {
						m[i].ID = fmt.Sprintf("new%d-%d", round, i)
					}
				}
				before := said
				if i := slices.IndexFunc(m, func(x core.Message) bool { return strings.Contains(textOf(x), "# Account of the work so far") }); i >= 0 {
					said = textOf(m[i])
				}
				if len(gen.asks) != round+1 {
					t.Fatalf("epoch %d: %d questions", round, len(gen.asks))
				}
				ask := gen.asks[round]
				shown := textOf(ask.Messages[0])
				t.Logf("epoch %d: %d messages, %d tokens new, %d in the whole; asked with %d (%d the old account), account %d", round+1, len(part), core.TotalTokens(measured(count, part)),
					core.TotalTokens(measured(count, all[:len(all)*(round+1)/rounds])), tokens(textOf(ask.Messages...))+tokens(ask.System), tokens(before), tokens(said))
				if round > 0 && !strings.Contains(textOf(ask.Messages[1:]...), strings.TrimSpace(before)) {
					t.Errorf("epoch %d: the old account is not shown", round)
				}
				if most := 2*core.TotalTokens(measured(count, part)) + 2000; tokens(shown) > most {
					t.Errorf("epoch %d: %d tokens are shown, %d at most of the new messages", round, tokens(shown), most)
				}
			}
			for _, item := range stays {
				if !strings.Contains(said, item) {
					t.Errorf("%q is gone from %s", item, said)
				}
			}
			section, _, _ := strings.Cut(said, "## Changed")
			for _, item := range gone {
				if strings.Contains(section, ". "+item+"\n") {
					t.Errorf("%q is still there", item)
				}
			}
			if len(stays) < 10 || len(gone) < 4 {
				t.Errorf("%d items stay, %d are gone", len(stays), len(gone))
			}
		})
	}
}

// measured returns messages with their tokens.
func measured(count core.Counter, m []core.Message) []core.Message {
	m = slices.Clone(m)
	core.Measure(count, m)
	return m
}
