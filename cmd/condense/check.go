package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core/policy"
)

// A checkListing is the decision about one file as JSON.
type checkListing struct {
	File string `json:"file"`
	// Request is what the file, a request to a model's API, says of window and answer.
	Request string `json:"request,omitempty"`
	policy.Decision
	// Estimates are what the providers of the chain would cost at most.
	Estimates []condense.Estimate `json:"estimates,omitempty"`
}

func (a *app) checkCommand() *cobra.Command {
	var (
		sel    selection
		format string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "check FILE|-...",
		Short: "Say whether conversations are due, with every number",
		Long: `check says whether run would act on each file, and shows every number of the formula, and what the providers of
the chain would spend on language models at most. Nothing is changed and no model is asked.
It exits with 0 if run would act on any of the files, with 3 if on none.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "no file; name transcripts, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := sel.open(cmd.Context(), cmd, a)
			if err != nil {
				return err
			}
			defer h.Close()
			due := false
			list := []checkListing{}
			for _, path := range args {
				d, err := a.read(cmd.Context(), path, format)
				if err != nil {
					return err
				}
				c := condense.ResumeConversation(d.Journal)
				turn, request := sel.turn(d)
				decision, err := await(cmd.Context(), func() (policy.Decision, error) { return h.Check(c, turn) })
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				estimates, err := h.Estimate(cmd.Context(), c, turn)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				due = due || decision.Act
				list = append(list, checkListing{path, request, decision, estimates})
				if !asJSON {
					printDecision(a.stdout, path, request, decision, estimates)
				}
				if err := decision.Err(); err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
			}
			if asJSON {
				if err := printJSON(a.stdout, list); err != nil {
					return err
				}
			}
			if !due {
				return errNothing
			}
			return nil
		},
	}
	sel.flags(a, cmd)
	a.inputFlags(cmd, &format, nil)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printDecision(w io.Writer, path, request string, d policy.Decision, estimates []condense.Estimate) {
	b, s := d.Budget, d.Size
	printf(w, "%s: %v\n", path, d)
	t := term.NewTable("", "")
	t.Row("system prompt", s.System)
	t.Row("tools", s.Tools)
	t.Row("messages", s.Messages)
	t.Row("used", fmt.Sprintf("%s = %s %% of the window of %s", thousands(d.Used), number(d.Percent), thousands(b.Window)))
	t.Row("threshold", number(d.Threshold)+" %")
	t.Row("reserve", thousands(b.Reserve)+" for the answer")
	t.Row("limit", b.Limit)
	t.Row("target", b.Target)
	t.Row("fixed tokens", thousands(d.Floor)+" cannot be removed")
	if d.MaxContextTokens > 0 {
		t.Row("cap", d.MaxContextTokens)
	}
	if request != "" {
		t.Row("request", request)
	}
	for _, e := range estimates {
		t.Row("cost", estimateText(e))
	}
	_ = printText(w, t.Text("  "))
}
