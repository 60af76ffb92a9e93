package host

import (
	"fmt"
	"os"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/model/anthropic"
	"github.com/condensehq/condense/model/extractive"
	"github.com/condensehq/condense/model/openai"
	"github.com/condensehq/condense/model/remote"
)

// Extractive is the name of a model that is none: see package [extractive].
const Extractive = extractive.Name

// An api is a way to reach models.
type api struct {
	keyEnv string // the environment variable that holds the key by convention
	dial   func(remote.Options) (*remote.Client, error)
}

// apis is the table of those that there are, by their name in the configuration.
var apis = map[string]api{
	"anthropic": {"ANTHROPIC_API_KEY", anthropic.New},
	"openai":    {"OPENAI_API_KEY", openai.New},
}

// open returns a client of the model of that name.
func (l *Lender) open(name string) (model.Generator, error) {
	m, err := l.find(name)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return extractive.New(), nil
	}
	output := m.MaxOutput
	if output == 0 {
		output = m.Output
	}
	g, err := apis[m.API].dial(remote.Options{
		Name: m.Name, ID: m.ID, BaseURL: m.BaseURL, KeyEnv: m.APIKeyEnv, KeyFile: m.APIKeyFile,
		Window: m.Window, MaxOutput: output, Images: m.Images, Price: m.Price, Tiers: m.Tiers, Free: m.Free,
		Logger: l.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("language model %s: %w", name, err)
	}
	return g, nil
}

// checkKey says why m has no key; nil if it has one, or needs none. No error holds a part
// of one. The client of the model looks for the key itself, whenever it is asked.
func checkKey(m *config.Model) error {
	variable := m.APIKeyEnv
	switch {
	case m.APIKeyFile != "":
		text, err := os.ReadFile(m.APIKeyFile)
		if err != nil {
			return fmt.Errorf("api_key_file: %w", err)
		}
		if strings.TrimSpace(string(text)) == "" {
			return fmt.Errorf("api_key_file: %s is empty", m.APIKeyFile)
		}
		return nil
	case variable == "" && m.BaseURL != "":
		return nil // a server of one's own may ask for none
	case variable == "":
		variable = apis[m.API].keyEnv
	}
	if variable != "" && strings.TrimSpace(os.Getenv(variable)) == "" {
		return fmt.Errorf("the environment variable %s is not set; it should hold the API key", variable)
	}
	return nil
}
