package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/term"
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
		t := term.NewTable("", "", "")
		for _, at := range r.Attempts {
			t.Row(at.Provider, at.Outcome, attemptText(&at))
			addSteps(t, at.Steps)
		}
		_ = printText(w, "\n"+t.Text("  "))
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
	t := term.NewTable("tokens", ">before", ">after", "")
	for _, k := range tokens.Kinds() {
		if c := r.Tokens.ByKind[k]; c.Before != 0 || c.After != 0 {
			t.Row(k, c.Before, c.After, "")
		}
	}
	t.Row("total", r.Tokens.Before, r.Tokens.After, saved(r.Tokens.Before, r.Tokens.After))
	m := r.Messages
	t.Row("messages", m.Before, m.After, fmt.Sprintf("%s hidden, %s rewritten, %s inserted", thousands(m.Hidden), thousands(m.Rewritten), thousands(m.Inserted)))
	_ = printText(w, "\n"+t.Text("  "))
	if recordCondensations[to] {
		printf(w, "condensation %s\n", r.CondensationID)
	} else {
		printf(w, "not recorded: the format %s holds what is sent; --to condense keeps the rest, to be undone\n", to)
	}
	if r.Originals != "" {
		printf(w, "originals %s\n", fromHere(r.Originals))
	}
}

func attemptText(at *condense.AttemptReport) string {
	var words []string
	if at.TokensAfter != at.TokensBefore {
		words = append(words, thousands(at.TokensBefore)+" -> "+thousands(at.TokensAfter)+" tokens")
	}
	if at.Reason != "" {
		words = append(words, at.Reason)
	}
	if at.DurationMS > 0 {
		words = append(words, "("+number(at.DurationMS)+" ms)")
	}
	s := strings.Join(words, " ")
	if at.Usage.Calls > 0 {
		s += "; " + usageText(at.Usage)
	}
	return s
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
