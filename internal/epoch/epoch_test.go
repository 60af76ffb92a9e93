package epoch_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/epoch"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// warm are the facts of a conversation of 80,000 tokens whose cache is alive, and a policy under which nothing is due.
func warm() (epoch.Facts, epoch.Policy) {
	f := epoch.Facts{
		Now: noon.Add(time.Minute), Tokens: 100_000, Fixed: 20_000, Grown: 80_000, Answers: 40, Turns: 40, Spent: 1e5,
		Cache: epoch.Cache{Write: 1.25, Read: 0.1, Began: true, Used: noon, Asked: 5 * time.Minute},
	}
	return f, epoch.Policy{Window: 200_000, Limit: 170_000, Threshold: 160_000, MinSize: 50_000, MinGain: 10, MinNew: 5_000}
}

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(f *epoch.Facts, p *epoch.Policy)
		want   epoch.Reason
	}{
		{"nothing is due", func(*epoch.Facts, *epoch.Policy) {}, epoch.None},
		{"above the limit", func(_ *epoch.Facts, p *epoch.Policy) { p.Limit = 99_999 }, epoch.Forced},
		{"above the limit, although an attempt has failed", func(f *epoch.Facts, p *epoch.Policy) { p.Limit, f.Retry = 99_999, 200_000 }, epoch.Forced},
		{"at the threshold", func(_ *epoch.Facts, p *epoch.Policy) { p.Threshold = 100_000 }, epoch.Threshold},
		{"at the threshold, but an attempt has failed", func(f *epoch.Facts, p *epoch.Policy) { p.Threshold, f.Retry = 100_000, 100_001 }, epoch.None},
		{"the failed attempt was long ago", func(f *epoch.Facts, p *epoch.Policy) { p.Threshold, f.Retry = 100_000, 100_000 }, epoch.Threshold},
		{"cold", func(f *epoch.Facts, _ *epoch.Policy) { f.Now = noon.Add(6 * time.Minute) }, epoch.Cold},
		{"cold, but the profile wants nothing below a size", func(f *epoch.Facts, p *epoch.Policy) {
			f.Now, p.Smallest = noon.Add(6*time.Minute), 100_001
		}, epoch.None},
		{"another cache", func(f *epoch.Facts, _ *epoch.Policy) { f.Cache.Used = time.Time{} }, epoch.Changed},
		{"the first request of a conversation", func(f *epoch.Facts, _ *epoch.Policy) { f.Cache.Used, f.Cache.Began = time.Time{}, false }, epoch.None},
		{"it pays in twelve turns", func(f *epoch.Facts, _ *epoch.Policy) { f.Spent = 2e6 }, epoch.Payback},
		{"it pays in twelve turns, but the conversation doubles in two", func(f *epoch.Facts, _ *epoch.Policy) { f.Spent, f.Answers = 2e6, 4 }, epoch.None},
		{"it pays, but little is new", func(f *epoch.Facts, _ *epoch.Policy) {
			f.Spent, f.Last = 2e6, epoch.Last{Before: 150_000, After: 50_001}
		}, epoch.None},
		{"it pays, but the conversation may end", func(f *epoch.Facts, _ *epoch.Policy) { f.Spent = 1e4 }, epoch.None},
	} {
		f, p := warm()
		tt.change(&f, &p)
		if d := epoch.Decide(f, p); d.Reason != tt.want {
			t.Errorf("%s: %+v, want %q", tt.name, d, tt.want)
		}
	}
}

// In a turn that began with thinking the vendor wants it back: only the limit does not wait for the end of the turn.
func TestDecideWaitsForTheTurn(t *testing.T) {
	f, p := warm()
	f.Thinking, p.Threshold = true, 100_000
	if d := epoch.Decide(f, p); d.Reason != epoch.None || d.Wait != epoch.ForTurn {
		t.Errorf("at the threshold: %+v", d)
	}
	f.Overflow = true
	if d := epoch.Decide(f, p); d.Reason != epoch.Forced || d.Wait != epoch.NoWait {
		t.Errorf("refused: %+v", d)
	}
}

// A target in percent of the window counts more than a share of the conversation, and both more than the default.
func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*epoch.Policy)
		want int
	}{
		{"default", func(*epoch.Policy) {}, 60_000},
		{"small window", func(p *epoch.Policy) { p.Window = 128_000 }, 40_000},
		{"share", func(p *epoch.Policy) { p.Share = 0.1 }, 28_000},
		{"target", func(p *epoch.Policy) { p.Share, p.Target = 0.1, 25 }, 50_000},
		{"target below what cannot be removed", func(p *epoch.Policy) { p.Target = 5 }, 20_001},
	} {
		f, p := warm()
		tt.set(&p)
		if got := epoch.Target(f, p); got < tt.want-1 || got > tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestOf(t *testing.T) {
	r := policy.Default(200_000)
	r.MaxOutput, r.MinSize = 20_000, 30_000
	if p := epoch.Of(r); p.Limit != 160_000 || p.Threshold != 160_000 || p.Smallest != 30_000 || p.MinNew != 10_000 || p.IgnoreCold || p.IgnorePayback {
		t.Errorf("%+v", p)
	}
	r.MaxContextTokens = 50_000
	if p := epoch.Of(r); p.Threshold != 50_000 {
		t.Errorf("with a maximum: %+v", p)
	}
	r.Auto = false
	if p := epoch.Of(r); p.Threshold != 0 || !p.IgnoreCold || !p.IgnorePayback {
		t.Errorf("only when the window forces it: %+v", p)
	}
}

func TestTrigger(t *testing.T) {
	for r, want := range map[epoch.Reason]core.Trigger{
		epoch.Forced: core.TriggerAutomatic, epoch.Threshold: core.TriggerAutomatic, epoch.Cold: core.TriggerManual, epoch.Payback: core.TriggerManual, epoch.Asked: core.TriggerManual,
	} {
		if got := r.Trigger(); got != want {
			t.Errorf("%s: %v, want %v", r, got, want)
		}
	}
}

func drawFacts(t *rapid.T) epoch.Facts {
	tokens := rapid.SampledFrom([]int{0, 30_000, 100_000, 150_000, 300_000}).Draw(t, "at least") + rapid.IntRange(0, 100_000).Draw(t, "tokens")
	return epoch.Facts{
		Now: noon.Add(rapid.SampledFrom([]time.Duration{0, time.Minute, 6 * time.Minute, 3 * time.Hour}).Draw(t, "idle")), Tokens: tokens,
		Fixed: min(tokens, rapid.IntRange(0, 40_000).Draw(t, "fixed")), Overflow: rapid.IntRange(0, 9).Draw(t, "overflow") == 7, Thinking: rapid.IntRange(0, 9).Draw(t, "thinking") == 7,
		Retry: rapid.SampledFrom([]int{0, 0, 50_000, 500_000}).Draw(t, "retry"), Grown: rapid.IntRange(0, tokens).Draw(t, "grown"),
		Answers: rapid.IntRange(0, 200).Draw(t, "answers"), Turns: rapid.IntRange(0, 200).Draw(t, "turns"),
		Last:  rapid.SampledFrom([]epoch.Last{{}, {}, {Before: 150_000, After: 60_000}, {Before: 40_000, After: 30_000}}).Draw(t, "last"),
		Spent: float64(rapid.SampledFrom([]int{0, 500_000, 20_000_000}).Draw(t, "spent")), Saved: float64(rapid.IntRange(-500_000, 2_000_000).Draw(t, "saved")), Wrong: rapid.IntRange(0, 1).Draw(t, "wrong"),
		Cache: epoch.Cache{
			Write: rapid.SampledFrom([]float64{0, 1, 1.25, 2}).Draw(t, "write"), Read: rapid.SampledFrom([]float64{0, 0.05, 0.1, 0.25}).Draw(t, "read"),
			Began: rapid.Bool().Draw(t, "began"), Used: rapid.SampledFrom([]time.Time{{}, noon, noon}).Draw(t, "used"),
			Asked: rapid.SampledFrom([]time.Duration{0, 5 * time.Minute, time.Hour}).Draw(t, "asked"), Usual: rapid.SampledFrom([]time.Duration{0, 30 * time.Minute}).Draw(t, "usual"),
		},
	}
}

func drawPolicy(t *rapid.T) epoch.Policy {
	window := rapid.SampledFrom([]int{0, 32_000, 200_000, 1_000_000}).Draw(t, "window")
	return epoch.Policy{
		Window: window, Limit: window * 85 / 100, Threshold: window * rapid.SampledFrom([]int{0, 50, 80}).Draw(t, "threshold") / 100,
		Smallest: rapid.SampledFrom([]int{0, 30_000}).Draw(t, "smallest"), MinSize: rapid.SampledFrom([]int{0, 0, 20_000}).Draw(t, "min size"),
		Target: rapid.SampledFrom([]float64{0, 0, 30}).Draw(t, "target"), Share: rapid.SampledFrom([]float64{0, 0, 0.25}).Draw(t, "share"),
		MinGain: rapid.SampledFrom([]float64{0, 10}).Draw(t, "gain"), MinNew: rapid.IntRange(0, 50_000).Draw(t, "new"), Turns: rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "turns left"),
		Risk: rapid.SampledFrom([]float64{-1, 0, 0.5}).Draw(t, "risk"), IgnoreCold: rapid.IntRange(0, 3).Draw(t, "no cold") == 2, IgnorePayback: rapid.IntRange(0, 3).Draw(t, "no payback") == 2,
	}
}

// Whatever the facts are, a decision keeps the promises of the package.
func TestDecisionsKeepTheirPromises(t *testing.T) {
	seen := map[epoch.Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			f, p := drawFacts(t), drawPolicy(t)
			d := epoch.Decide(f, p)
			seen[d.Reason]++
			keepsPromises(t, f, p, d)
		}
	})
	for _, r := range []epoch.Reason{epoch.None, epoch.Forced, epoch.Threshold, epoch.Cold, epoch.Changed, epoch.Payback} {
		if !t.Failed() && !testing.Short() && seen[r] == 0 {
			t.Errorf("no decision %q: the runs test too little: %v", r, seen)
		}
	}
}

func keepsPromises(t *rapid.T, f epoch.Facts, p epoch.Policy, d epoch.Decision) {
	t.Helper()
	forced := f.Overflow || p.Limit > 0 && f.Tokens > p.Limit
	if (d.Reason == epoch.Forced) != forced {
		t.Fatalf("%+v; must it be forced: %t", d, forced)
	}
	if d.Before != f.Tokens || d.After < f.Fixed || d.After > d.Before || d.Target < f.Fixed || d.Target > d.Before || math.IsNaN(d.Turns) || math.IsInf(d.Turns, 0) || d.Turns < 0 {
		t.Fatalf("sizes out of bounds: %+v", d)
	}
	if forced || d.Reason == epoch.None {
		return
	}
	money := d.Reason != epoch.Threshold
	for what, broken := range map[string]bool{
		"an attempt of that size has failed":     f.Tokens < f.Retry,
		"little is new":                          f.Last.After > 0 && f.Tokens-f.Last.After < p.MinNew,
		"nothing is gained":                      d.Before-d.After < 1,
		"the turn needs its thinking":            f.Thinking,
		"below the threshold":                    !money && f.Tokens < p.Threshold,
		"below the profile's smallest size":      money && f.Tokens < p.Smallest,
		"money is no reason at this size":        money && p.MinSize > 0 && f.Tokens-f.Fixed < p.MinSize,
		"the cache is no reason":                 (d.Reason == epoch.Cold || d.Reason == epoch.Changed) && (p.IgnoreCold || !f.Cache.Began),
		"payback is no reason":                   d.Reason == epoch.Payback && p.IgnorePayback,
		"a prediction was wrong":                 d.Reason == epoch.Cold && f.Wrong > 0,
		"it costs more than may be risked":       d.Reason == epoch.Payback && risks(&f, &p, &d),
		"it leaves less than money is worth":     money && p.Target == 0 && p.Share == 0 && d.Target-f.Fixed < min(20_000, f.Tokens-f.Fixed)-1,
		"the unknown lifetime of a cache is out": d.Reason == epoch.Cold && f.Cache.Asked == 0 && f.Cache.Usual == 0,
	} {
		if broken {
			t.Fatalf("%s, and yet %+v", what, d)
		}
	}
}

// risks reports whether an epoch costs more, if the conversation ends with it, than the policy allows.
func risks(f *epoch.Facts, p *epoch.Policy, d *epoch.Decision) bool {
	risk := p.Risk
	if risk == 0 {
		risk = epoch.Risk
	}
	cost := f.Cache.Write*float64(d.After-f.Fixed) - f.Cache.Read*float64(d.Before-f.Fixed)
	return risk > 0 && cost > risk*f.Spent+max(0, f.Saved)+1e-6
}

// A cache that has expired stays expired: a longer pause never takes the reason away.
func TestLongerPausesAreCold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, p := drawFacts(t), drawPolicy(t)
		if epoch.Decide(f, p).Reason != epoch.Cold {
			return
		}
		f.Now = f.Now.Add(time.Duration(rapid.IntRange(1, 100_000).Draw(t, "longer")) * time.Second)
		if d := epoch.Decide(f, p); d.Reason != epoch.Cold {
			t.Fatalf("after a longer pause: %+v", d)
		}
	})
}
