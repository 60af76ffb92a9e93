package comparecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/strategies"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/size"
)

// conclude writes the report and compares it with an older one.
func conclude(ctx context.Context, a *cli.App, c *comparison, r, old *lab.Report, conditions []lab.Condition, e *evidence) error {
	if err := c.saved(r); err != nil {
		return err
	}
	if c.writeModes != "" {
		if err := cli.WriteFile(c.writeModes, []byte(strategies.Modes(r, e.set.Chains)), cli.NewMode); err != nil {
			return err
		}
	}
	if err := printComparison(ctx, a, c, r, e); err != nil {
		return err
	}
	return against(a, c, r, old, conditions)
}

// saved writes a report to the file in --save, if there is one.
func (c *comparison) saved(r interface{ WriteJSON(w io.Writer) error }) error {
	if c.save == "" {
		return nil
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		return err
	}
	return cli.WriteFile(c.save, b.Bytes(), cli.PrivateMode)
}

// printed prints a report that is in the format of --output.
func (c *comparison) printed(a *cli.App, text string) error {
	switch c.output {
	case "json":
		text = rawjson.Visible(text)
	case "csv":
		return term.PrintData(a.Stdout, []byte(text))
	}
	_, err := io.WriteString(a.Stdout, text)
	return err
}

func readComparison(path string) (*lab.Report, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // the flag was not given
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	r, err := lab.ReadReport(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// An evidence is the input of a report, for showing single rows.
type evidence struct {
	items []lab.Item
	set   *strategies.Set
	opts  *lab.Options
}

// printComparison writes the report in the chosen format.
func printComparison(ctx context.Context, a *cli.App, c *comparison, r *lab.Report, e *evidence) error {
	var b strings.Builder
	var err error
	switch c.output {
	case "json":
		err = r.WriteJSON(&b)
	case "csv":
		err = writeCSV(&b, r)
	case "html":
		err = writeHTML(ctx, a, &b, c, r, e)
	default:
		writeTables(&b, r, c.output == "md", c.perMode, term.Width(a.Stdout))
	}
	if err != nil {
		return err
	}
	return c.printed(a, b.String())
}

var reportFormats = []string{"table", "md", "csv", "json", "html"}

// stopped returns the error of a run that stopped early, with a hint about the next run.
func stopped(err error, sessions int, opts *lab.Options) error {
	again := "there is no cache: the next run starts again"
	if opts.Cache != "" {
		again = "the next run continues from there"
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	return fmt.Errorf("%w after %s; %s", err, size.Plural(sessions, "session"), again)
}

// nothingCompared returns the reasons why no session of r could be compared.
func nothingCompared(r *lab.Report) error {
	errs := []error{errors.New("no session could be compared:")} //nolint:revive,staticcheck // a list follows
	errs = append(errs, plain.Each(skippedBy(r, shownReasons), func(reason string) error { return errors.New("  " + reason) })...)
	return errors.Join(errs...)
}

// skippedBy returns at most limit reasons why sessions of r could not be compared, each with the first session that it
// applies to, and the number of other reasons.
func skippedBy(r *lab.Report, limit int) []string {
	var reasons, out []string
	names := map[string][]string{}
	for _, s := range r.Skipped {
		if names[s.Reason] == nil {
			reasons = append(reasons, s.Reason)
		}
		names[s.Reason] = append(names[s.Reason], s.Name)
	}
	for i, reason := range reasons {
		if i == limit {
			return append(out, "and "+size.Plural(len(reasons)-i, "other reason"))
		}
		more := ""
		if n := len(names[reason]) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		out = append(out, fmt.Sprintf("%s: %s%s", names[reason][0], reason, more))
	}
	return out
}

// modeMissing returns an error that shows how to set the mode of sessions that were skipped because they have
// none, or nil.
func modeMissing(r *lab.Report, modes []string) error {
	without := plain.Each(plain.Only(r.Skipped, func(s lab.Skipped) bool { return s.Reason == lab.NoMode }),
		func(s lab.Skipped) string { return s.Name })
	if len(without) == 0 {
		return nil
	}
	folder := filepath.Base(filepath.Dir(without[0]))
	if abs, err := filepath.Abs(without[0]); err == nil {
		folder = filepath.Base(filepath.Dir(abs))
	}
	return fmt.Errorf("%s without a mode: --mode-of '%s=%s' gives those in the folder %s the mode %s; a pattern of file names ('plan-*=plan') or a phrase ('text:PHRASE=plan') does too",
		size.Plural(len(without), "session"), folder, modes[0], folder, modes[0])
}

// shownReasons is the maximum number of reasons to print.
const shownReasons = 10
