package filecmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/lab/truth"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/tokens"
)

// A checkListing is the decision about one file as JSON.
type checkListing struct {
	File string `json:"file"`
	// Request describes the window and the longest answer that the file, an API request, sets.
	Request string `json:"request,omitempty"`
	// Vendor is the size by the vendor's count, if that is known to be another one. The window of Decision is then in our tokens.
	Vendor *vendorCount `json:"vendor,omitempty"`
	policy.Decision
	// Estimates are the highest costs of the providers of the chain.
	Estimates []condense.Estimate `json:"estimates,omitempty"`
	// Reads are the language models that would read the conversation, and the providers that would be skipped.
	Reads []string `json:"reads,omitempty"`
}

func checkCommand(a *cli.App) *cobra.Command {
	var (
		sel    selection
		format string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use: "check FILE|-...", Short: "Report whether conversations are due, with every number",
		Args: cli.Arguments(1, -1, "no file; name transcripts, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := sel.open(cmd.Context(), cmd, a)
			if err != nil {
				return err
			}
			defer h.Close()
			due := false
			list := []checkListing{}
			for _, path := range args {
				d, err := a.Read(cmd.Context(), path, format)
				if err != nil {
					return err
				}
				c := condense.ResumeConversation(d.Journal)
				turn, request, vendor := sel.turn(d)
				l := checkListing{File: path, Request: request, Vendor: vendor, Reads: sel.readers}
				if err := l.check(cmd.Context(), h, c, turn); err != nil {
					return err
				}
				due = due || l.Act
				list = append(list, l)
				if !asJSON {
					printDecision(a.Stdout, &l)
				}
				if err := l.Err(); err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
			}
			if asJSON {
				if err := term.PrintJSON(a.Stdout, list); err != nil {
					return err
				}
			}
			if !due {
				return cli.ErrNothing
			}
			return nil
		},
	}
	sel.flags(a, cmd)
	a.InputFlags(cmd, &format, nil)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// check adds the decision, and what the turn could cost.
func (l *checkListing) check(ctx context.Context, h *condense.Host, c *condense.Conversation, turn condense.Turn) (err error) {
	if l.Decision, err = cli.Await(ctx, func() (policy.Decision, error) { return h.Check(c, turn) }); err == nil {
		l.Estimates, err = h.Estimate(ctx, c, turn)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.File, err)
	}
	return nil
}

func printDecision(w io.Writer, l *checkListing) {
	d := &l.Decision
	b, s := d.Budget, d.Size
	term.Printf(w, "%s: %v\n", l.File, l.Decision)
	t := term.NewTable("", "")
	t.Row("system prompt", s.System)
	t.Row("tools", s.Tools)
	t.Row("messages", s.Messages)
	t.Row("used", fmt.Sprintf("%s = %s %% of the window of %s", size.Group(d.Used), size.Number(d.Percent), size.Group(b.Window)))
	t.Row("threshold", size.Number(d.Threshold)+" %")
	t.Row("reserve", size.Group(b.Reserve)+" for the answer")
	t.Row("limit", b.Limit)
	t.Row("target", b.Target)
	t.Row("fixed tokens", size.Group(d.Floor)+" cannot be removed")
	if d.MaxContextTokens > 0 {
		t.Row("cap", d.MaxContextTokens)
	}
	if l.Request != "" {
		t.Row("request", l.Request)
	}
	if l.Vendor != nil {
		t.Row("vendor", l.Vendor)
	}
	for _, reader := range l.Reads {
		t.Row("reads", reader)
	}
	for _, e := range l.Estimates {
		t.Row("cost", estimateText(e))
	}
	_ = term.PrintText(w, t.Text("  "))
}

// A managed is a report with the vendor's count and the measure of truth.
type managed struct {
	*condense.Report
	Vendor *vendorCount  `json:"vendor,omitempty"`
	Truth  *truth.Report `json:"truth,omitempty"` // nil if nothing changed, or nobody reads the report
	steps  bool          // print the steps of each provider, too
}

// manage manages the conversation for its next turn. If the report has a reader, it holds the view against the original messages.
func manage(ctx context.Context, h *condense.Host, c *condense.Conversation, turn condense.Turn, v *vendorCount, read bool) (*managed, error) {
	r, err := h.Manage(ctx, c, turn)
	if r == nil {
		return nil, err
	}
	m := &managed{Report: r, Vendor: v}
	if r.Acted && read {
		t := truth.Read(c.Journal().Messages(), nil).Measure(c.View())
		m.Truth = &t
	}
	return m, err
}

// printReport prints the changes and their reasons, and the language models that could read the conversation. Request describes the
// settings in the file itself; it may be empty.
func printReport(w io.Writer, name, format, to, request string, readers []string, r *managed) {
	b := r.Budget
	term.Printf(w, "%s (%s): %s messages, %s tokens\n", name, format, size.Group(r.Messages.Before), size.Group(r.Tokens.Before))
	term.Printf(w, "profile %s: window %s, limit %s (%s reserved for the answer), threshold %s %%, target %s\n",
		profileAndMode(r.Report), size.Group(b.Window), size.Group(b.Limit), size.Group(b.Reserve), size.Number(b.ThresholdPercent), size.Group(b.Target))
	if request != "" {
		term.Printf(w, "set by the request: %s\n", request)
	}
	if r.Vendor != nil {
		term.Printf(w, "vendor: %v\n", r.Vendor)
	}
	term.Printf(w, "%v\n", r.Reason)
	if len(r.Attempts) > 0 {
		for _, reader := range readers {
			term.Printf(w, "%s\n", reader)
		}
		t := term.NewTable("", "", "")
		for _, at := range r.Attempts {
			t.Row(at.Provider, at.Outcome, attemptText(&at))
			if r.steps {
				addSteps(t, at.Steps)
			}
		}
		_ = term.PrintText(w, "\n"+t.Text("  "))
	}
	if r.Usage.Calls > 0 {
		term.Printf(w, "language models: %s\n", cli.UsageText(r.Usage))
	}
	for _, text := range r.Warnings {
		term.Printf(w, "warning: %s\n", text)
	}
	if !r.Acted {
		term.Printf(w, "unchanged\n")
		return
	}
	t := term.NewTable("tokens", ">before", ">after", "")
	for _, k := range tokens.Kinds() {
		if c := r.Tokens.ByKind[k]; c.Before != 0 || c.After != 0 {
			t.Row(k, c.Before, c.After, "")
		}
	}
	t.Row("total", r.Tokens.Before, r.Tokens.After, saved(r.Tokens.Before, r.Tokens.After))
	if r.Words.Before > 0 {
		left := ""
		if r.Words.After < r.Words.Before {
			left = size.Group(r.Words.Before-r.Words.After) + " of the user's tokens left out"
		}
		t.Row("user's words", r.Words.Before, r.Words.After, left)
	}
	for _, fault := range r.Truth.Faults() {
		t.Row("untrue", "", "", fault)
	}
	m := r.Messages
	changes := fmt.Sprintf("%s hidden, %s rewritten, %s inserted", size.Group(m.Hidden), size.Group(m.Rewritten), size.Group(m.Inserted))
	t.Row("messages", m.Before, m.After, changes)
	_ = term.PrintText(w, "\n"+t.Text("  "))
	if cli.RecordCondensations[to] {
		term.Printf(w, "condensation %s\n", r.CondensationID)
	} else {
		term.Printf(w, "not recorded: the format %s holds what would be sent; with --to condense the rest is kept and can be undone\n", to)
	}
	if r.Originals != "" {
		term.Printf(w, "originals %s\n", cli.FromHere(r.Originals))
	}
}

func attemptText(at *condense.AttemptReport) string {
	var words []string
	if at.TokensAfter != at.TokensBefore {
		words = append(words, size.Group(at.TokensBefore)+" -> "+size.Group(at.TokensAfter)+" tokens")
	}
	if at.Reason != "" {
		words = append(words, at.Reason)
	}
	if at.DurationMS > 0 {
		words = append(words, "("+size.Number(at.DurationMS)+" ms)")
	}
	s := strings.Join(words, " ")
	if at.Usage.Calls > 0 {
		s += "; " + cli.UsageText(at.Usage)
	}
	return s
}

// estimateText describes the cost of a provider.
func estimateText(e condense.Estimate) string {
	if e.Problem != "" {
		return fmt.Sprintf("%s cannot estimate its cost: %s", e.Provider, e.Problem)
	}
	return fmt.Sprintf("%s: at most %s, unless an answer is too long", e.Provider, cli.UsageText(e.Usage))
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

// addSteps adds a row for each step with something to report.
func addSteps(t *term.Table, steps []core.Step) {
	for i := range steps {
		if text := stepText(&steps[i]); text != "" {
			t.Row("  "+steps[i].Name, "", text)
		}
	}
}

// stepText describes the result of a step; empty if there is nothing to report.
func stepText(s *core.Step) string {
	n, kinds := savings(s)
	if s.Looked == 0 && s.Changed == 0 && s.Note == "" && n == 0 {
		return ""
	}
	var done []string
	switch { // a plugin need not report how many it looked at, or how much it saved
	case s.Name == "value" && s.Looked > 0:
		done = append(done, "dropped "+size.Group(s.Changed)+" of "+size.Group(s.Looked)+" lines")
	case s.Looked > 0:
		done = append(done, "changed "+size.Group(s.Changed)+" of "+size.Group(s.Looked))
	case s.Changed > 0:
		done = append(done, "changed "+size.Group(s.Changed))
	}
	if n != 0 || len(done) > 0 && (len(s.Saved) > 0 || s.TokensBefore != 0 || s.TokensAfter != 0) {
		saving := "saving " + size.Group(n) + " tokens"
		if n != 0 && len(kinds) > 0 {
			saving += " (" + strings.Join(kinds, ", ") + ")"
		}
		done = append(done, saving)
	}
	var words []string
	if len(done) > 0 {
		words = append(words, strings.Join(done, ", "))
	}
	if s.Note != "" {
		words = append(words, s.Note)
	}
	if ms := float64(s.Duration.Microseconds()) / 1000; ms > 0 {
		words = append(words, "("+size.Number(ms)+" ms)")
	}
	return strings.Join(words, " ")
}

// kindsInWords are the names of kinds of content in reports.
var kindsInWords = map[string]string{"assistant": "assistant text", "error": "errors", "injected": "injected text", "project_rules": "project rules", "tool_call": "calls", "tool_result": "results"}

// savings returns the tokens that a step saved, and the kinds of content.
func savings(s *core.Step) (tokens int, kinds []string) {
	sum := 0
	for _, k := range slices.Sorted(maps.Keys(s.Saved)) {
		if s.Saved[k] != 0 {
			kinds = append(kinds, cmp.Or(kindsInWords[k], strings.ReplaceAll(k, "_", " ")))
			sum += s.Saved[k]
		}
	}
	if s.TokensBefore == 0 && s.TokensAfter == 0 { // a plugin need not count them
		return sum, kinds
	}
	return s.TokensBefore - s.TokensAfter, kinds
}
