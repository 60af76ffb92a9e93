package lab

import (
	"context"
	"time"
)

// A CacheCheck compares the simulated cache with the vendors' records: for every request but the first of a session,
// the share of the prompt that was read from the cache.
type CacheCheck struct {
	Requests int `json:"requests"`
	Within   int `json:"within"`   // requests whose shares differ by 0.05 at most
	Agree    int `json:"agree"`    // requests for which both say that most was read, or both that it was not
	Cold     int `json:"cold"`     // requests for which the vendor says that most was not
	Foretold int `json:"foretold"` // requests of Cold for which the simulation agrees
	// Recorded and Simulated are the shares of all tokens together.
	Recorded  float64 `json:"recorded"`
	Simulated float64 `json:"simulated"`

	// Tokens of all prompts, and the tokens read from the cache, recorded and simulated.
	Input  float64 `json:"input"`
	Read   float64 `json:"read"`
	Size   float64 `json:"size"`
	Cached float64 `json:"cached"`
}

const closeShare = 0.05

func (c *CacheCheck) add(o *CacheCheck) {
	c.Requests += o.Requests
	c.Within += o.Within
	c.Agree += o.Agree
	c.Cold += o.Cold
	c.Foretold += o.Foretold
	c.Input, c.Read, c.Size, c.Cached = c.Input+o.Input, c.Read+o.Read, c.Size+o.Size, c.Cached+o.Cached
	c.Recorded, c.Simulated = c.Read/max(1, c.Input), c.Cached/max(1, c.Size)
}

// check plays the session unchanged, with its own models, times and lifetimes, and compares. It returns nil if the
// numbers are not recorded, or the model is unknown.
func (g *game) check(ctx context.Context) *CacheCheck {
	t, requests, ok := g.recorded()
	if !ok {
		return nil
	}
	x := newPlay(g, &Policy{Recorded: true}, []Tariff{t})
	x.wanted = requests
	if x.play(ctx) != nil {
		return nil
	}
	var c CacheCheck
	for k, at := range g.turns {
		u, ok := g.session.Usage[at]
		if !ok || k == 0 || u.Input == 0 {
			continue
		}
		size, cached := float64(x.size[k]), float64(x.bills[0].cached[k])
		was, is := float64(u.Read)/float64(u.Input), cached/max(1, size)
		one := CacheCheck{Requests: 1, Input: float64(u.Input), Read: float64(u.Read), Size: size, Cached: cached}
		if was-is <= closeShare && is-was <= closeShare {
			one.Within = 1
		}
		if (was >= 0.5) == (is >= 0.5) {
			one.Agree = 1
		}
		if was < 0.5 {
			one.Cold, one.Foretold = 1, one.Agree
		}
		c.add(&one)
	}
	if c.Requests == 0 {
		return nil
	}
	return &c
}

// recorded returns the tariff of the first model that the session names, and the model and lifetime of each of its
// requests: an agent may change its model, and request an hour in one and five minutes in the next.
func (g *game) recorded() (Tariff, []wanted, bool) {
	var t Tariff
	all := make([]wanted, len(g.turns))
	was := wanted{}
	for k := len(g.turns) - 1; k >= 0; k-- { // requests without a record get the next one's
		u := g.session.Usage[g.turns[k]]
		if u.Model != "" {
			was.model = u.Model
		}
		if u.Hour > 0 {
			was.life = time.Hour
		} else if u.Write > 0 {
			was.life = 5 * time.Minute
		}
		all[k] = was
	}
	if len(all) == 0 {
		return t, nil, false
	}
	t, err := ParseTariff(all[0].model)
	for k := range all {
		if t.Caching.Automatic || all[k].life == 0 {
			all[k].life = t.Life
		}
	}
	return t, all, err == nil
}
