package lab

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/transcript"
)

// usualFormat is the format of rounds if the session's own format is only read: a vendor's API, which records nothing
// about a condensation but its text.
const usualFormat = "anthropic"

// writable returns the names of the formats in which conversations can be written.
func writable() []string {
	return plain.Each(plain.Only(transcript.Formats(), func(f transcript.Format) bool { return !f.ReadOnly }),
		func(f transcript.Format) string { return f.Name })
}

// checkRoundsFormat returns an error if conversations cannot be written in the format; empty is valid.
func checkRoundsFormat(name string) error {
	names := writable()
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("rounds: no format %q to write in%s; there are %s", name, suggest.DidYouMean(name, names), strings.Join(names, ", "))
}

// fileFormat returns the format in which the view is written between rounds.
func (w *sessionWork) fileFormat() string {
	switch {
	case w.run.opts.RoundsFormat != "":
		return w.run.opts.RoundsFormat
	case slices.Contains(writable(), w.session.Format):
		return w.session.Format
	}
	return usualFormat
}

// reread returns a view after it was written in a format and read again. Facts that the format does not record are
// lost, such as which message a condensation inserted. New IDs name the round, and the messages are measured.
func reread(view []core.Message, format string, round int, counter core.Counter) ([]core.Message, error) {
	fail := func(err error) ([]core.Message, error) {
		return nil, fmt.Errorf("round %d as %s: %w", round, format, err)
	}
	j := history.New()
	if err := j.Append(slices.Clone(view)...); err != nil {
		return fail(err)
	}
	var file bytes.Buffer
	if _, err := (&transcript.Document{Journal: j}).Write(&file, format); err != nil {
		return fail(err)
	}
	d, err := transcript.Read(&file, &transcript.ReadOptions{Format: format})
	if err != nil {
		return fail(err)
	}
	out := d.Journal.View()
	for i := range out {
		out[i].ID, out[i].Source = fmt.Sprintf("round-%d-%d", round, i), nil
	}
	core.Measure(counter, out)
	return out, nil
}
