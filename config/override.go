package config

import (
	"slices"

	"github.com/condensehq/condense/core/policy"
)

// An Override replaces values in whatever a configuration resolves to, for every profile
// and mode. The flags of a command line are one. The zero value of a field replaces
// nothing.
type Override struct {
	Window    int // tokens
	MaxOutput int // tokens
	Tokenizer string
	Originals string     // [OriginalsNone] or [OriginalsParts]
	Chain     []Provider // an empty one that is not nil leaves truncation alone
}

// Override returns a configuration that resolves to what c does, except for the values of
// o. They are not checked again.
func (c *Config) Override(o Override) *Config {
	d := *c
	d.override = o
	return &d
}

func (o *Override) apply(r *Resolved) {
	r.Window = either(o.Window, r.Window)
	r.MaxOutput = either(o.MaxOutput, r.MaxOutput)
	r.Tokenizer = either(o.Tokenizer, r.Tokenizer)
	r.Originals = either(o.Originals, r.Originals)
	if o.Chain != nil {
		r.Chain = slices.Clone(o.Chain)
	}
}

// Rule returns the policy that r asks for.
func (r *Resolved) Rule() policy.Rule {
	return policy.Rule{
		Window: r.Window, MaxOutput: r.MaxOutput, Buffer: r.Buffer, Auto: r.Auto,
		Threshold: r.Threshold, MaxContextTokens: r.MaxContextTokens, MinSize: r.MinSize,
		Target: r.Target, MinGain: r.MinGain, MinNewTokens: r.MinNewTokens, Roo: r.RooRule,
	}
}
