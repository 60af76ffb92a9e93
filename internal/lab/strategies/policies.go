package strategies

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/ingest"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/suggest"
)

// BareWindow is the policy of a program that only truncates, when the window is full.
const BareWindow = lab.Window + "=slidingwindow/budget@threshold=100"

// usualPolicies are compared by default.
var usualPolicies = []string{
	"untouched", "recorded", "roo",
	"masking=smart/observation_masking", "clearing=smart/clear_tool_uses@max=100000", "truncation=slidingwindow/budget", BareWindow,
	"library=smart/balanced", "gateway=smart/balanced@money",
}

// Policies opens the policies of lists, each with commas between several; without lists, the usual ones. See the help
// of condense compare for their form.
func (b *Opener) Policies(ctx context.Context, lists []string) ([]lab.Policy, error) {
	var words []string
	for _, list := range lists {
		words = append(words, splitOutside(list, ',')...)
	}
	if len(words) == 0 {
		words = usualPolicies
	}
	own := program()
	plain := lab.Untouched()
	plain.Key = own
	out := []lab.Policy{plain} // every replay has it
	for _, w := range words {
		if w == plain.Name {
			continue
		}
		p, err := b.policy(ctx, w)
		if err != nil {
			return nil, err
		}
		if s := p.Strategy; own != "" && (s == nil || s.Key != "") && (p.Ingest == nil || p.Ingest.Key != "") {
			p.Key = own + " " + strings.TrimPrefix(w, p.Name+"=")
			for _, s := range []*lab.Strategy{p.Strategy, p.Ingest} {
				if s != nil {
					p.Key += " " + s.Key
				}
			}
		}
		out = append(out, p)
	}
	return out, nil
}

func (b *Opener) policy(ctx context.Context, word string) (lab.Policy, error) {
	switch word {
	case lab.Recorded:
		return lab.Policy{Name: word, Recorded: true, About: "condensed where the session was, with the recorded summary: what Claude Code, Codex or pi did"}, nil
	case "roo":
		s, _, err := b.strategy(ctx, "slidingwindow/half")
		return lab.Policy{Name: word, Strategy: &s, About: "Roo Code: half of the conversation is truncated when it is over nine tenths of the window less the longest answer", Rule: func(window int) policy.Rule {
			return policy.Rule{Window: window, Buffer: 10, Auto: true, Threshold: 100, Exceptions: policy.Exceptions{UnknownReserve: 8192, StopAtLimit: true, IgnoreFixed: true, Eager: true, Unchecked: true}}
		}}, err
	}
	label, rest, labelled := strings.Cut(word, "=")
	if !labelled || strings.ContainsAny(label, "{:@/") {
		label, rest = word, word
	}
	parts := splitOutside(rest, '@')
	s, _, err := b.strategy(ctx, parts[0])
	if err != nil {
		return lab.Policy{}, err
	}
	p := lab.Policy{Name: label, Strategy: &s, About: strings.Join(append([]string{s.About}, parts[1:]...), "; ")}
	var changes []func(*policy.Rule)
	for _, set := range parts[1:] {
		key, value, has := strings.Cut(set, "=")
		switch key {
		case "money", "cold", "payback":
			p.Money = true
			p.Cold = p.Cold || key != "payback"
			p.Payback = p.Payback || key != "cold"
			if has {
				return p, fmt.Errorf("policy %s: %s has no value", word, key)
			}
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || n < 0 {
			return p, fmt.Errorf("policy %s: %s: %q is not a number", word, key, value)
		}
		switch key {
		case "threshold":
			changes = append(changes, func(r *policy.Rule) { r.Threshold = n })
		case "target":
			changes = append(changes, func(r *policy.Rule) { r.Target = n })
		case "gain":
			changes = append(changes, func(r *policy.Rule) { r.MinGain = n })
		case "max":
			changes = append(changes, func(r *policy.Rule) { r.MaxContextTokens = int(n) })
		case "new":
			changes = append(changes, func(r *policy.Rule) { r.MinNewTokens = int(n) })
		case "leave":
			p.Leave = n / 100
		case "risk":
			if p.Risk = n / 100; n == 0 {
				p.Risk = -1
			}
		case "floor":
			p.Floor = int(n)
		case "ingest":
			i, err := b.ingest(ctx, int(n))
			if err != nil {
				return p, err
			}
			p.Ingest = &i
		default:
			return p, fmt.Errorf("policy %s: no setting %q%s; there are %s", word, key, suggest.DidYouMean(key, policySettings), strings.Join(policySettings, ", "))
		}
	}
	p.Rule = changed(changes)
	return p, nil
}

// changed is the default rule with changes.
func changed(changes []func(*policy.Rule)) func(window int) policy.Rule {
	return func(window int) policy.Rule {
		r := policy.Default(window)
		for _, change := range changes {
			change(&r)
		}
		return r
	}
}

var policySettings = []string{
	"threshold", "target", "max", "gain", "new", "money", "cold", "payback", "leave", "floor", "risk", "ingest",
}

// ingest opens the gateway's shortening of new tool results: without loss, and with loss above a size; 0 means no
// such size.
func (b *Opener) ingest(ctx context.Context, most int) (lab.Strategy, error) {
	settings, err := ingest.Settings(ingest.Options{Lossless: true, MaxResult: most})
	if err != nil {
		return lab.Strategy{}, err
	}
	s, _, err := b.strategy(ctx, "bare:smart"+string(settings))
	return s, err
}
