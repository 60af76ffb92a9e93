package online

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

// A Point is a turn of a conversation on its curve. Sizes are tokens, by the vendor's count as estimated.
type Point struct {
	Time    time.Time `json:"t"`
	History int       `json:"history"`         // of the client
	Sent    int       `json:"sent"`            // in its place
	Saved   float64   `json:"saved,omitempty"` // US dollars by the conversation so far
	Epoch   bool      `json:"epoch,omitempty"` // the first turn with a new condensation
}

// maxPoints is the number of points kept of a conversation. A longer conversation loses every second point that is no epoch.
const maxPoints = 240

// point adds a turn to the curve.
func (c *Evidence) point(t *live.Turn) {
	c.Window, c.DueAt = t.Window, t.DueAt
	c.Curve = append(c.Curve, Point{Time: t.Time, History: t.History, Sent: t.Tokens, Saved: c.Saved, Epoch: t.Epoch != nil})
	if len(c.Curve) > maxPoints {
		last, n := len(c.Curve)-1, -1
		c.Curve = slices.DeleteFunc(slices.Clone(c.Curve), func(p Point) bool {
			n++
			return n%2 == 1 && n != last && !p.Epoch
		})
	}
}

// The drawing of a curve, in units of its view box. Numbers are written left of it and below it.
const (
	curveWidth, curveHeight = 720, 240
	curveLeft, curveRight   = 56, 12
	curveTop, curveBottom   = 14, 24
	curveTicks              = 4
	markRadius              = 5
)

// curve draws the sizes of the client's history and of the sent view, turn by turn, with the window, the size at which it is condensed, and
// a mark for every epoch that leads to its details at page. Everything in it is made from numbers. It is empty for fewer than two turns.
func (c *Evidence) curve(page string) template.HTML {
	if len(c.Curve) < 2 { //nolint:mnd // no line
		return ""
	}
	highest := 1
	for _, p := range c.Curve {
		highest = max(highest, p.History, p.Sent)
	}
	top := highest
	if near := highest + highest/2; c.Window > 0 && c.Window <= near { // a window far above would press the curve flat
		top = max(top, c.Window)
	}
	x := func(i int) float64 {
		return curveLeft + float64(i)*float64(curveWidth-curveLeft-curveRight)/float64(len(c.Curve)-1)
	}
	y := func(tokens int) float64 {
		return curveHeight - curveBottom - float64(tokens)*float64(curveHeight-curveTop-curveBottom)/float64(top)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="curve" viewBox="0 0 %d %d" role="group" aria-label="%s">`, curveWidth, curveHeight, template.HTMLEscapeString(c.told()))
	for i := range curveTicks + 1 {
		tokens := top * i / curveTicks
		fmt.Fprintf(&b, `<line class="tick" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>`,
			curveLeft, curveWidth-curveRight, y(tokens), y(tokens), curveLeft-6, y(tokens)+4, size.Short(tokens)) //nolint:mnd // left of the line
	}
	fmt.Fprintf(&b, `<text class="tick" x="%d" y="%d">first request</text><text class="tick" x="%d" y="%d" text-anchor="end">request %s</text>`,
		curveLeft, curveHeight-6, curveWidth-curveRight, curveHeight-6, size.Group(c.Turns)) //nolint:mnd // below the curve
	level := func(class string, tokens int) {
		if tokens > 0 && tokens <= top {
			fmt.Fprintf(&b, `<line class="%s" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, class, curveLeft, curveWidth-curveRight, y(tokens), y(tokens))
		}
	}
	level("window", c.Window)
	level("due", c.DueAt)
	trace := func(class string, of func(Point) int) {
		fmt.Fprintf(&b, `<polyline class="%s" points="`, class)
		for i, p := range c.Curve {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(i), y(of(p)))
		}
		b.WriteString(`"/>`)
	}
	trace("history", func(p Point) int { return p.History })
	trace("sent", func(p Point) int { return p.Sent })
	for i, p := range c.Curve {
		n := slices.IndexFunc(c.Epochs, func(e *Epoch) bool { return p.Epoch && e.Time.Equal(p.Time) })
		if n < 0 {
			continue
		}
		told := fmt.Sprintf("Epoch %d: %s to %s tokens", n+1, size.Group(c.Epochs[n].Before), size.Group(c.Epochs[n].After))
		fmt.Fprintf(&b, `<a href="%s#epoch-%d" aria-label="%s"><title>%s</title><circle cx="%.1f" cy="%.1f" r="%d"/></a>`,
			template.HTMLEscapeString(page), n+1, told, told, x(i), y(p.Sent), markRadius)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // numbers, and an escaped path
}

// told is the curve in a sentence.
func (c *Evidence) told() string {
	last := c.Curve[len(c.Curve)-1]
	text := fmt.Sprintf("After %s requests the client has %s tokens and %s are sent", size.Group(c.Turns), size.Group(last.History), size.Group(last.Sent))
	switch n := len(c.Epochs); n {
	case 0:
		return text + ", without an epoch."
	case 1:
		return text + ", after one epoch."
	default:
		return fmt.Sprintf("%s, after %d epochs.", text, n)
	}
}

// The drawing of the money.
const moneyHeight, moneyBottom = 90, 8

// money draws the US dollars that were saved so far, turn by turn. It is empty if nothing was saved or lost.
func (c *Evidence) money() template.HTML {
	low, high := 0.0, 0.0
	for _, p := range c.Curve {
		low, high = min(low, p.Saved), max(high, p.Saved)
	}
	if len(c.Curve) < 2 || high == low { //nolint:mnd // no line
		return ""
	}
	x := func(i int) float64 {
		return curveLeft + float64(i)*float64(curveWidth-curveLeft-curveRight)/float64(len(c.Curve)-1)
	}
	y := func(saved float64) float64 {
		return curveTop + (high-saved)*float64(moneyHeight-curveTop-moneyBottom)/(high-low)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="curve" viewBox="0 0 %d %d" role="img" aria-label="Saved so far: %s">`, curveWidth, moneyHeight, usd(c.Saved))
	levels := []float64{high, 0}
	if low < 0 {
		levels = append(levels, low)
	}
	for _, saved := range levels {
		fmt.Fprintf(&b, `<line class="tick" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>`,
			curveLeft, curveWidth-curveRight, y(saved), y(saved), curveLeft-6, y(saved)+4, usd(saved)) //nolint:mnd // left of the line
	}
	b.WriteString(`<polyline class="money" points="`)
	for i, p := range c.Curve {
		fmt.Fprintf(&b, "%.1f,%.1f ", x(i), y(p.Saved))
	}
	b.WriteString(`"/></svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers
}
