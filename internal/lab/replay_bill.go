package lab

import (
	"slices"
	"time"

	"github.com/condensehq/condense/internal/promptcache"
)

// A bill is the cost of a play under one tariff.
type bill struct {
	tariff *Tariff
	cache  promptcache.Cache
	usd    float64
	read   int
	write  int
	cached []int
	last   time.Time
	debts  []debt
}

// A debt is an epoch that has not paid for itself.
type debt struct {
	epoch     int
	saved     int // tokens that every later prompt is shorter by
	predicted *float64
	owed      float64 // prices of tokens
	turns     int
	paid      bool
}

// send looks a prompt up and writes it.
func (b *bill) send(blocks []promptcache.Block, marks []int, as wanted, now time.Time) promptcache.Use {
	c := b.tariff.Caching
	p := promptcache.Prompt{Blocks: blocks, Scope: as.model}
	rules := promptcache.Rules{Minimum: c.MinPrefix}
	if c.Automatic {
		rules = promptcache.Rules{Automatic: true, Minimum: c.MinPrefix, Life: as.life, Step: 128, Writes: c.Write > 1}
	} else {
		slices.Sort(marks)
		for _, m := range slices.Compact(marks) {
			p.Marks = append(p.Marks, promptcache.Mark{Block: m, Life: as.life})
		}
	}
	u := b.cache.Lookup(&p, rules, now)
	b.cache.Learn(&u, now)
	b.read += u.Read
	b.write += u.Write
	b.cached = append(b.cached, u.Read)
	return u
}

// settle compares the last epoch's savings so far with its cost, in prices of a token of input.
func (b *bill) settle(x *play, u *promptcache.Use, now time.Time) {
	if len(b.debts) == 0 || b.debts[len(b.debts)-1].paid {
		return
	}
	last := &b.debts[len(b.debts)-1]
	w, r := b.tariff.Caching.Prices(b.tariff.life())
	rate := w // of a token that would have been sent without the epoch
	if !b.last.IsZero() && now.Sub(b.last) < b.tariff.Life {
		rate = r
	}
	if e := &x.epochs[last.epoch]; e.Request == x.requests {
		last.owed = float64(u.Prompt-u.Read-u.Write) + r*float64(u.Read) + w*float64(u.Write) - rate*float64(e.Before)
	} else {
		last.turns++
		last.owed -= rate * float64(last.saved)
	}
	last.paid = last.owed <= 0
}

func (x *play) results() []Played {
	had := value(x.memory.Had())
	var end PlayedEpoch
	x.judge(len(x.game.session.Messages), &end)
	var out []Played
	for i := range x.bills {
		b := &x.bills[i]
		epochs := slices.Clone(x.epochs)
		for _, debt := range b.debts {
			epochs[debt.epoch].Predicted = debt.predicted
			if debt.paid {
				epochs[debt.epoch].Paid = &debt.turns
			}
		}
		out = append(out, Played{
			Session: x.game.name, Source: x.game.session.Source, Mode: x.game.session.Mode, Policy: x.policy.Name, Tariff: b.tariff.Name,
			USD: b.usd, Requests: x.requests, Sent: x.sum.sent, Read: b.read, Write: b.write, Peak: x.sum.peak, Epochs: some(epochs), Cut: x.sum.cut,
			Had: had, User: end.User, Repeats: x.sum.repeats, Gone: x.sum.gone, Error: x.fault, Size: x.size, Cached: b.cached,
		})
	}
	return out
}
