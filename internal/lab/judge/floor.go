package judge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

// File is read if it is there and the user names no other.
const File = "judge.yaml"

// A Floor is a demand on a card, and whether it is met.
type Floor struct {
	Met  bool   `json:"met"`
	Text string `json:"text"` // the demand, and the value
}

// Floors are the demands of a file.
type Floors struct {
	file  string
	tests []floorTest
}

// A floorTest is one demand. The error of test means that the demand makes no sense for the card.
type floorTest struct {
	at   tree.Position
	test func(*Card) (Floor, error)
}

// Apply adds the floors to a card. The error names the places of demands that make no sense for it.
func (f *Floors) Apply(c *Card) error {
	var errs []error
	c.Floors = []Floor{}
	for _, t := range f.tests {
		got, err := t.test(c)
		if err != nil {
			errs = append(errs, f.fault(t.at, "%w", err))
			continue
		}
		c.Floors = append(c.Floors, got)
		c.Passed = c.Passed && got.Met
	}
	return errors.Join(errs...)
}

func (f *Floors) fault(at tree.Position, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: "+format, append([]any{disk.FromHere(f.file), at.Line, at.Column}, args...)...)
}

// ReadFloors reads a file of floors; without a name, the usual one if it is there.
func ReadFloors(name string) (*Floors, error) {
	f := &Floors{file: name}
	if name == "" {
		f.file = File
	}
	text, err := os.ReadFile(f.file)
	switch {
	case name == "" && errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return nil, err
	case len(text) > tree.MaxFile:
		return nil, fmt.Errorf("%s: larger than %d bytes", f.file, tree.MaxFile)
	}
	root, wrong := tree.ParseYAML(text)
	if wrong != nil {
		return nil, f.fault(wrong.At, "%s", wrong.Problem)
	}
	if root.Shape != tree.Mapping {
		return nil, f.fault(root.At, "want a mapping of floors; got %s", root.Describe())
	}
	var errs []error
	for _, p := range root.Pairs {
		if err := f.add(p); err != nil {
			errs = append(errs, err)
		}
	}
	return f, errors.Join(errs...)
}

// A limit is a floor that is one number. Most says that it is the most, not the least.
type limit struct {
	most  bool
	text  string
	value func(*Card) (value float64, known bool)
}

// share is a limit of a share. Where nothing was measured, there is nothing above the most.
func share(most bool, text string, of func(*Mode) *lab.Estimate) limit {
	return limit{most, text, func(c *Card) (float64, bool) { e := of(c.all()); return mean(e), most || e != nil }}
}

var limits = map[string]limit{
	"retention":    share(false, "of what was needed later is kept", func(m *Mode) *lab.Estimate { return m.Kept }),
	"own":          share(false, "of the saving is its own", func(m *Mode) *lab.Estimate { return m.Own }),
	"words":        share(false, "of the user's words stay", func(m *Mode) *lab.Estimate { return m.Words }),
	"wrong_author": share(true, "of the lines given as the user's are not", func(m *Mode) *lab.Estimate { return m.WrongAuthor }),
	"superseded":   share(true, "of the lines of files were replaced since", func(m *Mode) *lab.Estimate { return m.Superseded }),
	"outcomes":     share(false, "of the identifiers of started or created things stay", func(m *Mode) *lab.Estimate { return m.Outcomes }),

	"acted":     {false, "conformance cases in which it acted", func(c *Card) (float64, bool) { return float64(c.Conformance.Acted), true }},
	"ms_per_mb": {true, "ms per MB at the 95th percentile", func(c *Card) (float64, bool) { return c.Recorded.MSPerMB95, c.Recorded.MSPerMB95 > 0 }},
	"memory_mb": {true, "MB of memory", func(c *Card) (float64, bool) {
		return float64(c.Recorded.PeakMemory) / (1 << 20), c.Recorded.PeakMemory > 0
	}},
}

// mean is 0 where nothing was measured.
func mean(e *lab.Estimate) float64 {
	if e == nil {
		return 0
	}
	return e.Mean
}

const notWorse = "not_worse"

// floorKeys are the keys of a file, in the order of the documentation.
var floorKeys = []string{notWorse, "retention", "own", "words", "wrong_author", "superseded", "outcomes", "acted", "ms_per_mb", "memory_mb"}

func (f *Floors) add(p tree.Pair) error {
	if p.Key == notWorse {
		return f.addNotWorse(p.Value)
	}
	l, ok := limits[p.Key]
	if !ok {
		return f.fault(p.At, "unknown floor %q%s; there are %s", p.Key, suggest.DidYouMean(p.Key, floorKeys), strings.Join(floorKeys, ", "))
	}
	limit, ok := number(p.Value)
	if !ok || limit < 0 {
		return f.fault(p.Value.At, "%s: got %s; want a number that is not negative", p.Key, p.Value.Describe())
	}
	f.tests = append(f.tests, floorTest{p.At, func(c *Card) (Floor, error) {
		value, known := l.value(c)
		least := map[bool]string{true: "at most", false: "at least"}[l.most]
		text := fmt.Sprintf("%s: %s %s %s", p.Key, least, short(limit), l.text)
		switch {
		case !known:
			return Floor{false, text + ": not measured"}, nil
		case l.most:
			return Floor{value <= limit, text + ": " + short(value)}, nil
		}
		return Floor{value >= limit, text + ": " + short(value)}, nil
	}})
	return nil
}

func short(x float64) string {
	if x >= 10 {
		return size.Number(x)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}

func number(n *tree.Node) (float64, bool) {
	switch v := n.Value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// A distance is an entry of not_worse.
type distance struct {
	than, mode string
	by         float64
	own        bool
}

var distanceKeys = []string{"than", "by", "mode", "own"}

func (f *Floors) addNotWorse(n *tree.Node) error {
	if n.Shape != tree.Sequence {
		return f.fault(n.At, "%s: got %s; want a list such as [{than: smart/balanced, by: 0.03}]", notWorse, n.Describe())
	}
	var errs []error
	for _, item := range n.Items {
		d, err := f.distance(item)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f.tests = append(f.tests, floorTest{item.At, d.test})
	}
	return errors.Join(errs...)
}

func (f *Floors) distance(n *tree.Node) (*distance, error) {
	if n.Shape != tree.Mapping {
		return nil, f.fault(n.At, "%s: got %s; want than, by and, if you like, mode and own", notWorse, n.Describe())
	}
	builtins := plain.Each(rivals, func(b rival) string { return b.name })
	d := &distance{by: -1}
	var errs []error
	for _, p := range n.Pairs {
		text, isText := p.Value.Value.(string)
		switch p.Key {
		case "than":
			if d.than = text; !slices.Contains(builtins, text) {
				errs = append(errs, f.fault(p.Value.At, "than: got %s%s; want one of %s", p.Value.Describe(), suggest.DidYouMean(text, builtins), strings.Join(builtins, ", ")))
			}
		case "mode":
			if d.mode = text; !isText || text == "" {
				errs = append(errs, f.fault(p.Value.At, "mode: got %s; want the name of a mode", p.Value.Describe()))
			}
		case "by":
			by, ok := number(p.Value)
			if d.by = by; !ok || by < 0 || by > 1 {
				errs = append(errs, f.fault(p.Value.At, "by: got %s; want a share from 0 to 1", p.Value.Describe()))
			}
		case "own":
			own, ok := p.Value.Value.(bool)
			if d.own = own; !ok {
				errs = append(errs, f.fault(p.Value.At, "own: got %s; want true or false", p.Value.Describe()))
			}
		default:
			errs = append(errs, f.fault(p.At, "unknown key %q%s; there are %s", p.Key, suggest.DidYouMean(p.Key, distanceKeys), strings.Join(distanceKeys, ", ")))
		}
	}
	if len(errs) == 0 && (d.than == "" || d.by < 0) {
		errs = append(errs, f.fault(n.At, "%s: than and by are needed", notWorse))
	}
	return d, errors.Join(errs...)
}

// test compares means: intervals over a few sessions are wide, and are shown.
func (d *distance) test(c *Card) (Floor, error) {
	var modes []string
	for i := range c.Modes {
		m := &c.Modes[i]
		if m.Mode != "" {
			modes = append(modes, m.Mode)
		}
		if m.Mode != d.mode {
			continue
		}
		text := fmt.Sprintf("not worse than %s by %s", d.than, short(d.by))
		if d.own {
			text += " at the size that it leaves by itself"
		}
		if d.mode != "" {
			text += " in mode " + d.mode
		}
		for _, a := range m.Against {
			if a.Than == d.than && a.Own == d.own {
				return Floor{a.Difference.Mean >= -d.by, text + ": " + interval(a.Difference)}, nil
			}
		}
		return Floor{false, text + ": not measured"}, nil
	}
	if d.mode == "" {
		return Floor{false, "not worse than " + d.than + ": no session was measured"}, nil
	}
	return Floor{}, fmt.Errorf("no recorded session has the mode %q%s; there are %s", d.mode, suggest.DidYouMean(d.mode, modes), strings.Join(modes, ", "))
}
