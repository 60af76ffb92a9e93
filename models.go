package condense

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/model"
)

// A Lender lends language models to providers, by the names that their settings use. A
// name is looked for among the models of the program ([Options.Models]), then in the
// section models of the configuration, then in the built-in table as provider/model if
// the API of the provider is known, and at last it may be that of the model without a
// model, "extractive". It is safe for concurrent use.
type Lender struct {
	config *config.Config
	own    map[string]model.Generator
	choice string
	logger *slog.Logger // may be nil

	mu   sync.Mutex
	lent map[string]model.Generator // those of the configuration that were asked for
}

// NewLender returns what a host with these options would lend under the configuration;
// opts may be nil.
func NewLender(c *config.Config, opts *Options) *Lender {
	l := &Lender{config: c, lent: map[string]model.Generator{}}
	if opts != nil {
		l.own, l.choice, l.logger = opts.Models, opts.Model, opts.Logger
	}
	return l
}

// Model returns the language model of that name to a provider in the chain of a profile
// whose agent talks to the model called agent; either may be empty. Without a name it is
// [Options.Model], else that of the agent if there is a client for it, else the only
// model that the program has or the configuration declares. The error says what to set. A
// model without its key is no error here: it says so when it is asked.
func (l *Lender) Model(agent, name string) (model.Generator, error) {
	name, err := l.name(agent, name)
	if err != nil {
		return nil, err
	}
	if g, ok := l.own[name]; ok {
		return g, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, ok := l.lent[name]; ok {
		return g, nil
	}
	g, err := l.open(name)
	if err != nil {
		return nil, err
	}
	l.lent[name] = g
	return g, nil
}

// Check says why [Lender.Model] would give none, or one that could not be asked as things
// are, for want of its key; nil if nothing is known to stand in the way.
func (l *Lender) Check(agent, name string) error {
	g, err := l.Model(agent, name)
	if err != nil {
		return err
	}
	if c, ok := g.(model.Checker); ok {
		return c.CheckKey()
	}
	return nil
}

// name returns the name of the model that is meant by one that may be empty.
func (l *Lender) name(agent, name string) (string, error) {
	if name == "" {
		name = l.choice
	}
	if name != "" {
		return name, nil
	}
	if agent != "" {
		if _, ok := l.own[agent]; ok {
			return agent, nil
		}
		if _, err := l.find(agent); err == nil {
			return agent, nil
		}
	}
	names := l.declared()
	switch len(names) {
	case 0:
		return "", errors.New("no language model is named, the profile has none that can be asked, and none is declared: declare one in the section models, " +
			"for example {cheap: {api: anthropic, model: claude-haiku-4-5, api_key_env: ANTHROPIC_API_KEY}}, " +
			"or name one of the built-in table such as anthropic/claude-haiku-4-5, or " + Extractive + ", which needs no key and no network")
	case 1:
		return names[0], nil
	default:
		return "", fmt.Errorf("no language model is named, the profile has none that can be asked, and several are declared: name one of %s", strings.Join(names, ", "))
	}
}

// declared returns the names that the program and the configuration gave, sorted.
func (l *Lender) declared() []string {
	names := l.config.Models()
	names = slices.AppendSeq(names, maps.Keys(l.own))
	slices.Sort(names)
	return slices.Compact(names)
}

// agent returns the name of the model that the agent of a request talks to.
func (l *Lender) agent(req *core.Request) string {
	r, err := l.config.Resolve(req.Profile, req.Mode)
	if err != nil {
		return ""
	}
	return r.Model.Name
}

// list returns the models that have a name, and the one that is meant without a name.
func (l *Lender) list(agent string) []wire.LentModel {
	var list []wire.LentModel
	for _, name := range append(l.declared(), Extractive, "") {
		if g, err := l.Model(agent, name); err == nil {
			list = append(list, wire.LentModel{Name: name, Info: g.Info()})
		}
	}
	return list
}

// find returns the model of the configuration or the table; nil for the extractive one.
func (l *Lender) find(name string) (*config.Model, error) {
	m, err := l.config.Model(name)
	switch {
	case err != nil && name == Extractive:
		return nil, nil //nolint:nilnil // it is none of those
	case err != nil:
		return nil, l.unknown(name)
	case m.API == "" && m.Withheld == "":
		return nil, fmt.Errorf("language model %q: how to reach it is not known: declare it in the section models with api, and with base_url if it is not at its vendor's", name)
	}
	return m, nil
}

func (l *Lender) unknown(name string) error {
	names := append(l.declared(), Extractive)
	there := strings.Join(names, ", ")
	for m := range catalog.All() {
		if _, ok := apis[m.Provider]; ok {
			names = append(names, m.Name())
		}
	}
	return fmt.Errorf("there is no language model %q%s; there are %s, and those of the built-in table as anthropic/… and openai/…; declare others in the section models",
		name, suggest.DidYouMean(name, names), there)
}

// signature tells models apart: as long as it is the same, so is what Model returns.
func (l *Lender) signature(agent, name string) string {
	name, err := l.name(agent, name)
	if err != nil {
		return err.Error()
	}
	if _, ok := l.own[name]; ok {
		return name
	}
	m, err := l.find(name)
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
