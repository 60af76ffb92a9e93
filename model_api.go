package condense

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/remote/anthropic"
	"github.com/condensehq/condense/internal/remote/openai"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/model/extractive"
)

// Extractive is the name of a model that is none: see package [extractive].
const Extractive = extractive.Name

// apis are the ways to reach models that there are, by their name in the configuration.
var apis = map[string]func(remote.Options) (*remote.Client, error){
	"anthropic": anthropic.New,
	"openai":    openai.New,
}

// open returns a client of the model of that name.
func (l *Lender) open(name string) (model.Generator, error) {
	m, err := l.find(name)
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
	g, err := apis[m.API](remote.Options{
		Name: m.Name, ID: m.ID, BaseURL: m.BaseURL, KeyEnv: m.APIKeyEnv, KeyFile: m.APIKeyFile,
		Window: m.Window, MaxOutput: output, Images: m.Images, Price: m.Price, Tiers: m.Tiers, Free: m.Free,
		Logger: l.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("language model %s: %w", name, err)
	}
	return g, nil
}

// An untrusted is a model that a file declares which the user has not trusted. Nothing is
// sent anywhere.
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
	return &untrustedError{fmt.Sprintf("language model %s: %s", u.info.Name, u.why)}
}
