// Package resolver turns the names in a configuration into the strategies and language
// models that they mean, and checks that they can be used.
package resolver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/remote/anthropic"
	"github.com/condensehq/condense/internal/remote/openai"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

// Strategies returns the built-in strategies and the program's own.
func Strategies(own ...registry.Strategy) (*registry.Registry, error) {
	return registry.New(slices.Concat(providers.Builtin(), own)...)
}

// Names returns opts with the known names of strategies, tokenizers and the default chain. Names that opts has
// already stay.
func Names(reg *registry.Registry, opts config.Options) config.Options {
	for _, known := range []struct {
		to    *[]string
		names func() []string
	}{{&opts.Builtin, reg.Names}, {&opts.Strategies, reg.Names}, {&opts.Tokenizers, tokens.Names}, {&opts.Chain, providers.Chain}} {
		if *known.to == nil {
			*known.to = known.names()
		}
	}
	return opts
}

// A lender returns the language model of a name.
type lender = func(name string) (model.Generator, error)

// RunnerOf returns a function that lets a strategy shorten the messages of req that are not protected, for a provider that uses the answer,
// which is verified, as a part of its own. The provider may be a module without files, so the strategy reads none. Errors of the
// provider's wrap [core.ErrInvalidRequest].
func RunnerOf(reg *registry.Registry) func(context.Context, *core.Request, string, json.RawMessage, lender) (*core.Result, error) {
	return func(ctx context.Context, req *core.Request, name string, settings json.RawMessage, models lender) (*core.Result, error) {
		s, err := reg.Get(name)
		var p core.CondensationProvider
		if err == nil {
			err = namesNoFile(settings)
		}
		if err == nil {
			p, err = s.Open(ctx, settings, registry.Env{Model: models})
		}
		switch {
		case errors.Is(err, core.ErrUnavailable):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %w", core.ErrInvalidRequest, err)
		}
		defer core.Close(p) //nolint:errcheck // nothing depends on it
		given := req.Clone()
		given.Dir, given.FilesRead, given.Abilities = "", nil, s.Abilities
		given.State, given.States, given.MayWait = nil, nil, false // are the provider's
		res, err := p.Condense(ctx, given)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		check := *req
		check.Abilities = s.Abilities
		return res, core.Verify(&check, res)
	}
}

// namesNoFile returns an error if a setting names a file of the user.
func namesNoFile(settings json.RawMessage) error {
	var all map[string]json.RawMessage
	if json.Unmarshal(settings, &all) != nil {
		return nil //nolint:nilerr // no object: a value, or reported when it is read
	}
	for name, value := range all {
		if strings.HasSuffix(strings.ToLower(name), "_file") {
			return fmt.Errorf("settings: %s: names a file, which only the user's configuration may", name)
		}
		if err := namesNoFile(value); err != nil {
			return err
		}
	}
	return nil
}

// Models resolves the names of language models. It looks for a name among the models of
// the program, then in the section models of the configuration, then in the built-in table
// as provider/model if there is a client for the provider's API; the last one is
// [extractive.Name]. It is safe for concurrent use.
type Models struct {
	config *config.Config
	opts   ModelOptions

	mu     sync.Mutex
	opened map[string]model.Generator // models of the configuration that were asked for
	names  func() []string
}

// ModelOptions are a program's additions to the models of its configuration.
type ModelOptions struct {
	Own     map[string]model.Generator // models of the program
	Default string                     // the model for providers whose settings name none
	Logger  *slog.Logger               // may be nil
}

// NewModels returns the resolver of a configuration.
func NewModels(c *config.Config, opts ModelOptions) *Models {
	r := &Models{config: c, opts: opts, opened: map[string]model.Generator{}}
	r.names = sync.OnceValue(func() []string {
		names := slices.AppendSeq(c.Models(), maps.Keys(opts.Own))
		slices.Sort(names)
		return slices.Compact(names)
	})
	return r
}

// Model returns the language model of that name for a provider in the chain of a profile whose agent uses the model
// called agent; either may be empty. An empty name means ModelOptions.Default, else the agent's model if there is a
// client for it, else the only model that the program has. It never means a model of the configuration that nobody named:
// another vendor would read the conversation. Without any, and without its key, a model is no error here: its Generate
// returns one.
func (r *Models) Model(agent, name string) (model.Generator, error) {
	name = r.name(agent, name)
	if name == "" {
		return skipped{err: r.unnamed(agent)}, nil
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

// Embedder returns the model that turns texts into vectors: the only one of the program that can, or of the configuration that says so.
func (r *Models) Embedder() (model.Embedder, error) {
	var names []string
	for name, g := range r.opts.Own {
		if _, can := g.(model.Embedder); can {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = slices.DeleteFunc(r.config.Models(), func(name string) bool {
			m, err := r.config.Model(name)
			return err != nil || !m.Embeddings
		})
	}
	if slices.Sort(names); len(names) > 1 {
		return nil, &UnavailableError{"embeddings: true is for one model; it is set for " + strings.Join(names, ", ")}
	} else if len(names) == 0 {
		return nil, fmt.Errorf("no model of the configuration has embeddings: true: %w", errors.ErrUnsupported)
	}
	g, err := r.Model("", names[0])
	if e, can := g.(model.Embedder); can {
		return e, err
	}
	return nil, cmp.Or(err, r.Check("", names[0]), fmt.Errorf("model %s: %w", names[0], errors.ErrUnsupported))
}

// Check returns an error if [Models.Model] would return one, or if the key of the model is
// missing. It sends nothing.
func (r *Models) Check(agent, name string) error {
	g, err := r.Model(agent, name)
	if err != nil {
		return err
	}
	return model.CheckKey(g)
}

// name returns the name of the model that a possibly empty name means; empty if it means none.
func (r *Models) name(agent, name string) string {
	name = cmp.Or(name, r.opts.Default)
	if _, own := r.opts.Own[agent]; name == "" && agent != "" {
		if _, err := r.find(agent); own || err == nil {
			name = agent
		}
	}
	if own := slices.Collect(maps.Keys(r.opts.Own)); name == "" && len(own) == 1 {
		name = own[0]
	}
	return name
}

// unnamed is why a provider without a model is skipped.
func (r *Models) unnamed(agent string) error {
	problem := "it names no model, and its profile has none"
	if agent != "" {
		problem = fmt.Sprintf("it names no model, and there is no client for the model of its profile, %s", agent)
	}
	example := "anthropic/claude-haiku-4-5"
	if names := r.declared(); len(names) > 0 {
		example = names[0]
	}
	return &UnavailableError{fmt.Sprintf("%s: name the model that may read these conversations in its settings, as in {model: %s}", problem, example)}
}

// A Reader is a language model that conversations are sent to.
type Reader struct {
	Model   string `json:"model,omitempty"`   // as its vendor knows it; empty if there is none
	At      string `json:"at,omitempty"`      // its vendor, or the host of its address
	Skipped string `json:"skipped,omitempty"` // why it would not be asked now; empty if it would
}

// String returns the reader as a part of a sentence.
func (r Reader) String() string {
	asks := ""
	if r.Model != "" {
		asks = "asks " + r.Model + " at " + r.At
	}
	switch {
	case r.Skipped == "":
		return asks
	case asks == "":
		return "skipped: " + r.Skipped
	}
	return asks + "; skipped now: " + r.Skipped
}

// vendors are the names of the vendors whose APIs there are clients for.
var vendors = map[string]string{"anthropic": "Anthropic", "openai": "OpenAI"}

// Reader returns who Model would send conversations to. It sends nothing.
func (r *Models) Reader(agent, name string) Reader {
	var reader Reader
	if err := r.Check(agent, name); err != nil {
		reader.Skipped = err.Error()
	}
	name = r.name(agent, name)
	if _, own := r.opts.Own[name]; own {
		reader.Model, reader.At = name, "this program"
	} else if m, err := r.find(name); name != "" && err == nil {
		switch {
		case m == nil:
			reader.Model, reader.At = name, "this machine"
		case m.Withheld != "":
		case m.BaseURL != "":
			u, err := url.Parse(m.BaseURL)
			if reader.Model, reader.At = m.ID, m.BaseURL; err == nil {
				reader.At = u.Host
			}
		default:
			reader.Model, reader.At = m.ID, vendors[m.API]
		}
	}
	return reader
}

// declared returns the names that the program and the configuration define, sorted.
func (r *Models) declared() []string { return slices.Clone(r.names()) }

// Agent returns the name of the model that the agent of a request uses.
func (r *Models) Agent(req *core.Request) string {
	resolved, err := r.config.Resolve(req.Profile, req.Mode)
	if err != nil {
		return ""
	}
	return resolved.Model.Name
}

// Available returns every model that a provider can name, and the default, whose name is empty.
func (r *Models) Available(agent string) iter.Seq2[string, model.Info] {
	return func(yield func(string, model.Info) bool) {
		names := append(r.declared(), extractive.Name)
		if r.name(agent, "") != "" {
			names = append(names, "")
		}
		for _, name := range names {
			if g, err := r.Model(agent, name); err == nil && !yield(name, g.Info()) {
				return
			}
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
	if name = r.name(agent, name); name == "" {
		return r.unnamed(agent).Error()
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
var clients = map[string]func(remote.Options) (*remote.Client, error){"anthropic": anthropic.New, "openai": openai.New}

func (r *Models) open(name string) (model.Generator, error) {
	m, err := r.find(name)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return extractive.New(), nil
	case m.Withheld != "":
		return skipped{
			model.Info{Name: m.Name, Window: m.Window, MaxOutput: m.MaxOutput},
			&UnavailableError{fmt.Sprintf("language model %s: %s", m.Name, m.Withheld)},
		}, nil
	}
	g, err := clients[m.API](remote.Options{
		Name: m.Name, ID: m.ID, BaseURL: m.BaseURL, KeyEnv: m.APIKeyEnv, KeyFile: m.APIKeyFile,
		Window: m.Window, MaxOutput: cmp.Or(m.MaxOutput, m.Output), Images: m.Images, Price: m.Price, Tiers: m.Tiers, Free: m.Free,
		Logger: r.opts.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("language model %s: %w", name, err)
	}
	return g, nil
}

// A skipped model is one that must not be asked, or does not exist. It sends nothing.
type skipped struct {
	info model.Info
	err  error // wraps [core.ErrUnavailable]
}

// Info implements [model.Generator].
func (s skipped) Info() model.Info { return s.info }

// Generate implements [model.Generator].
func (s skipped) Generate(context.Context, *model.Prompt) (*model.Answer, error) { return nil, s.err }

// Compacts implements [model.Compactor].
func (skipped) Compacts() string { return "" }

// Compact implements [model.Compactor].
func (s skipped) Compact(context.Context, *model.Prompt) (*model.Answer, error) { return nil, s.err }

// CheckKey implements [model.Checker].
func (s skipped) CheckKey() error { return s.err }

// An UnavailableError says why a model or provider is not asked: its file is not trusted, or it is not there. It wraps
// [core.ErrUnavailable].
type UnavailableError struct{ Text string }

// Error gives the reason and the remedy.
func (e *UnavailableError) Error() string { return e.Text }

// Unwrap returns [core.ErrUnavailable].
func (e *UnavailableError) Unwrap() error { return core.ErrUnavailable }
