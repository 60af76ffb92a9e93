package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/tokens"
)

// printReport tells a person what was done and why. Request is what the file itself says of
// the model, if that counted.
func printReport(w io.Writer, name, format, to, request string, r *condense.Report) {
	b := r.Budget
	printf(w, "%s (%s): %s messages, %s tokens\n", name, format, thousands(r.Messages.Before), thousands(r.Tokens.Before))
	printf(w, "profile %s: window %s, limit %s (%s kept free for the answer), threshold %s %%, target %s\n",
		profileAndMode(r), thousands(b.Window), thousands(b.Limit), thousands(b.Reserve), number(b.ThresholdPercent), thousands(b.Target))
	if request != "" {
		printf(w, "the request says: %s\n", request)
	}
	printf(w, "%v\n", r.Reason)
	if len(r.Attempts) > 0 {
		printf(w, "\n")
		for _, at := range r.Attempts {
			printf(w, "  %-16s %-12s", at.Provider, at.Outcome)
			if at.TokensAfter != at.TokensBefore {
				printf(w, " %s -> %s tokens", thousands(at.TokensBefore), thousands(at.TokensAfter))
			}
			if at.Reason != "" {
				printf(w, " %s", at.Reason)
			}
			if at.DurationMS > 0 {
				printf(w, " (%s ms)", number(at.DurationMS))
			}
			if at.Usage.Calls > 0 {
				printf(w, "; %s", usageText(at.Usage))
			}
			printf(w, "\n")
			printSteps(w, at.Steps)
		}
	}
	if r.Usage.Calls > 0 {
		printf(w, "spent on language models: %s\n", usageText(r.Usage))
	}
	for _, text := range r.Warnings {
		printf(w, "warning: %s\n", text)
	}
	if !r.Acted {
		printf(w, "unchanged\n")
		return
	}
	printf(w, "\n")
	printf(w, "  %-12s %12s %12s\n", "tokens", "before", "after")
	for _, k := range tokens.Kinds() {
		if c := r.Tokens.ByKind[k]; c.Before != 0 || c.After != 0 {
			printf(w, "  %-12s %12s %12s\n", k, thousands(c.Before), thousands(c.After))
		}
	}
	printf(w, "  %-12s %12s %12s   %s\n", "total", thousands(r.Tokens.Before), thousands(r.Tokens.After), saved(r.Tokens.Before, r.Tokens.After))
	m := r.Messages
	printf(w, "  %-12s %12s %12s   %s hidden, %s rewritten, %s inserted\n", "messages",
		thousands(m.Before), thousands(m.After), thousands(m.Hidden), thousands(m.Rewritten), thousands(m.Inserted))
	if recordCondensations[to] {
		printf(w, "condensation %s\n", r.CondensationID)
	} else {
		printf(w, "not recorded: the format %s holds what is sent; --to condense keeps the rest, to be undone\n", to)
	}
	if r.Originals != "" {
		printf(w, "originals %s\n", fromHere(r.Originals))
	}
}

// estimateText says what asking a provider would cost.
func estimateText(e condense.Estimate) string {
	if e.Problem != "" {
		return fmt.Sprintf("%s cannot say what it would cost: %s", e.Provider, e.Problem)
	}
	return fmt.Sprintf("%s would cost at most %s, if no answer is too long", e.Provider, usageText(e.Usage))
}

// usageText says what calls of language models took, or would.
func usageText(u core.Usage) string {
	s := fmt.Sprintf("%s, %s tokens read", plural(u.Calls, "model call"), thousands(u.InputTokens))
	if u.CachedTokens > 0 {
		s += fmt.Sprintf(" (%s of them cached)", thousands(u.CachedTokens))
	}
	s += fmt.Sprintf(", %s written, ", thousands(u.OutputTokens))
	switch {
	case u.Unpriced > 0 && u.Unpriced >= u.Calls:
		return s + "price unknown"
	case u.Unpriced > 0:
		return s + fmt.Sprintf("%.4f USD and %s at an unknown price", u.USD, plural(u.Unpriced, "call"))
	case u.USD == 0:
		return s + "free of charge"
	default:
		return s + fmt.Sprintf("%.4f USD", u.USD)
	}
}

func profileAndMode(r *condense.Report) string {
	if r.Mode == "" {
		return r.Profile
	}
	return r.Profile + ", mode " + r.Mode
}

func saved(before, after int) string {
	if before == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %% less", 100*float64(before-after)/float64(before))
}

// thousands writes n with separators: 1,234,567.
func thousands(n int) string { return size.Group(n) }

// number writes x with at most one decimal.
func number(x float64) string { return strconv.FormatFloat(float64(int(x*10+0.5))/10, 'f', -1, 64) }
