package condense

import (
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// keepAlways protects, for this condensation, what the configuration says that nothing removes.
func (p *plan) keepAlways() {
	if p.KeepFirst == 0 && p.KeepUsers == 0 && !p.KeepCalls && !p.KeepErrors {
		return
	}
	p.view = slices.Clone(p.view)
	keep := func(i int) {
		if m := &p.view[i]; !m.Protected {
			m.Protected = true
			p.kept += m.Tokens
		}
	}
	first, users := p.KeepFirst, p.KeepUsers
	for i := 0; i < len(p.view) && first > 0; i++ {
		if m := &p.view[i]; m.Role != core.RoleSystem && !dialog.AllInserted(m) {
			keep(i)
			first--
		}
	}
	by := core.Request{Typed: dialog.Typed}
	for i := len(p.view) - 1; i >= 0 && users > 0; i-- {
		if m := &p.view[i]; by.FromUser(m) && !dialog.AllInserted(m) {
			keep(i)
			users--
		}
	}
	if !p.KeepCalls && !p.KeepErrors {
		return
	}
	for i, parts := range dialog.Read(p.view).Messages {
		for _, part := range parts {
			for _, pass := range part.Passages {
				isCall := pass.Kind == dialog.KindToolCall
				if p.KeepCalls && isCall || p.KeepErrors && !isCall && pass.Use != nil && pass.Use.IsError {
					keep(i)
				}
			}
		}
	}
}

// floorErr returns why nothing can be done, and what to do if the configuration keeps too much.
func (p *plan) floorErr() error {
	err := p.decision.Err()
	if err == nil || p.kept == 0 {
		return err
	}
	return fmt.Errorf("%w; keep_first, keep_users, keep_calls and keep_errors of profile %s keep about %d tokens of messages: lower them, or use a model with a larger window", err, p.Profile, p.kept)
}
