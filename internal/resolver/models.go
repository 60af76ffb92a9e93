package resolver

import (
	"context"
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
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/remote/anthropic"
	"github.com/condensehq/condense/internal/remote/openai"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/model/extractive"
)

// Models resolves the names of language models. It looks for a name among the models of
// the program, then in the section models of the configuration, then in the built-in table
// as provider/model if there is a client for the provider's API; the last one is
// [extractive.Name]. It is safe for concurrent use.
type Models struct {
	config *config.Config
	opts   ModelOptions

	mu     sync.Mutex
	opened map[string]model.Generator // models of the configuration that were asked for
}

// ModelOptions are a program's additions to the models of its configuration.
type ModelOptions struct {
	Own     map[string]model.Generator // models of the program
	Default string                     // the model for providers whose settings name none
	Logger  *slog.Logger               // may be nil
}

// NewModels returns the resolver of a configuration.
func NewModels(c *config.Config, opts ModelOptions) *Models {
	return &Models{config: c, opts: opts, opened: map[string]model.Generator{}}
}

// Model returns the language model of that name for a provider in the chain of a profile whose agent uses the model
// called agent; either may be empty. An empty name means ModelOptions.Default, else the agent's model if there is a
// client for it, else the only model that the program has or the configuration declares. The error tells the user
// which setting is missing. A model without its key is not an error here; its Generate returns one.
func (r *Models) Model(agent, name string) (model.Generator, error) {
	name, err := r.name(agent, name)
	if err != nil {
		return nil, err
	}
	if g, ok := r.opts.Own[name]; ok {
		return g, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if g, ok := r.opened[name]; ok {
		return g, nil
	}
	g, err := r.open(name)
	if err != nil {
		return nil, err
	}
	r.opened[name] = g
	return g, nil
}

// Check returns an error if [Models.Model] would return one, or if the key of the model is
// missing. It sends nothing.
func (r *Models) Check(agent, name string) error {
	g, err := r.Model(agent, name)
	if err != nil {
		return err
	}
	if c, ok := g.(model.Checker); ok {
		return c.CheckKey()
	}
	return nil
}

// name returns the name of the model that a possibly empty name means.
func (r *Models) name(agent, name string) (string, error) {
	if name == "" {
		name = r.opts.Default
	}
	if name != "" {
		return name, nil
	}
	if agent != "" {
		if _, ok := r.opts.Own[agent]; ok {
			return agent, nil
		}
		if _, err := r.find(agent); err == nil {
			return agent, nil
		}
	}
	names := r.declared()
	switch len(names) {
	case 0:
		return "", errors.New("no language model is named, the profile has none that can be asked, and none is declared: declare one in the section models, " +
			"for example {cheap: {api: anthropic, model: claude-haiku-4-5, api_key_env: ANTHROPIC_API_KEY}}, " +
			"or name one of the built-in table such as anthropic/claude-haiku-4-5, or " + extractive.Name + ", which needs no key and no network")
	case 1:
		return names[0], nil
	default:
		return "", fmt.Errorf("no language model is named, the profile has none that can be asked, and several are declared: name one of %s", strings.Join(names, ", "))
	}
}

// declared returns the names that the program and the configuration define, sorted.
func (r *Models) declared() []string {
	names := r.config.Models()
	names = slices.AppendSeq(names, maps.Keys(r.opts.Own))
	slices.Sort(names)
	return slices.Compact(names)
}

// Agent returns the name of the model that the agent of a request uses.
func (r *Models) Agent(req *core.Request) string {
	resolved, err := r.config.Resolve(req.Profile, req.Mode)
	if err != nil {
		return ""
	}
	return resolved.Model.Name
}

// Available calls yield with every model that a provider can name, and with the default, whose name is empty.
func (r *Models) Available(agent string, yield func(name string, info model.Info)) {
	for _, name := range append(r.declared(), extractive.Name, "") {
		if g, err := r.Model(agent, name); err == nil {
			yield(name, g.Info())
		}
	}
}

// find returns the model of the configuration or the table; nil for the extractive one.
func (r *Models) find(name string) (*config.Model, error) {
	m, err := r.config.Model(name)
	switch {
	case err != nil && name == extractive.Name:
		return nil, nil //nolint:nilnil // it is in neither
	case err != nil:
		return nil, r.unknown(name)
	case m.API == "" && m.Withheld == "":
		return nil, fmt.Errorf("language model %q: how to reach it is not known: declare it in the section models with api, and with base_url if it is not at its vendor's", name)
	}
	return m, nil
}

func (r *Models) unknown(name string) error {
	names := append(r.declared(), extractive.Name)
	list := strings.Join(names, ", ")
	for m := range catalog.All() {
		if _, ok := clients[m.Provider]; ok {
			names = append(names, m.Name())
		}
	}
	return fmt.Errorf("there is no language model %q%s; there are %s, and the models of the built-in table as anthropic/… and openai/…; declare others in the section models",
		name, suggest.DidYouMean(name, names), list)
}

// Signature identifies the result of Model: it differs if the model does.
func (r *Models) Signature(agent, name string) string {
	name, err := r.name(agent, name)
	if err != nil {
		return err.Error()
	}
	if _, ok := r.opts.Own[name]; ok {
		return name
	}
	m, err := r.find(name)
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// clients open models, by the name of their API in the configuration.
var clients = map[string]func(remote.Options) (*remote.Client, error){
	"anthropic": anthropic.New,
	"openai":    openai.New,
}

func (r *Models) open(name string) (model.Generator, error) {
	m, err := r.find(name)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return extractive.New(), nil
	case m.Withheld != "":
		return untrusted{model.Info{Name: m.Name, Window: m.Window, MaxOutput: m.MaxOutput}, m.Withheld}, nil
	}
	output := m.MaxOutput
	if output == 0 {
		output = m.Output
	}
	g, err := clients[m.API](remote.Options{
		Name: m.Name, ID: m.ID, BaseURL: m.BaseURL, KeyEnv: m.APIKeyEnv, KeyFile: m.APIKeyFile,
		Window: m.Window, MaxOutput: output, Images: m.Images, Price: m.Price, Tiers: m.Tiers, Free: m.Free,
		Logger: r.opts.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("language model %s: %w", name, err)
	}
	return g, nil
}

// An untrusted model is declared by a file that the user has not trusted. It sends nothing.
type untrusted struct {
	info model.Info
	why  string
}

// Info implements [model.Generator].
func (u untrusted) Info() model.Info { return u.info }

// Generate implements [model.Generator].
func (u untrusted) Generate(context.Context, *model.Prompt) (*model.Answer, error) {
	return nil, u.CheckKey()
}

// CheckKey implements [model.Checker].
func (u untrusted) CheckKey() error {
	return &UntrustedError{fmt.Sprintf("language model %s: %s", u.info.Name, u.why)}
}

// An UntrustedError names a setting that is ignored because the user has not trusted its file. It wraps
// [core.ErrUnavailable].
type UntrustedError struct{ Text string }

// Error gives the ignored setting, the reason and the remedy.
func (e *UntrustedError) Error() string { return e.Text }

// Unwrap returns [core.ErrUnavailable].
func (e *UntrustedError) Unwrap() error { return core.ErrUnavailable }
