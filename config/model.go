package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/tree"
	"github.com/condensehq/condense/model"
)

// A Model is a language model, as the configuration and the built-in table describe it.
type Model struct {
	Name       string      `json:"name,omitempty"` // as written; empty if the profile names none
	API        string      `json:"api,omitempty"`  // anthropic or openai; empty if unknown
	ID         string      `json:"id,omitempty"`   // as the API knows it
	BaseURL    string      `json:"base_url,omitempty"`
	APIKeyEnv  string      `json:"api_key_env,omitempty"`
	APIKeyFile string      `json:"api_key_file,omitempty"` // absolute
	Window     int         `json:"window,omitempty"`       // tokens, 0 if unknown
	MaxOutput  int         `json:"max_output,omitempty"`   // tokens, as configured for this model; 0 if not
	Output     int         `json:"output,omitempty"`       // tokens of its longest answer, 0 if unknown
	Price      model.Price `json:"price"`                  // zero if unknown
	// Tiers are the higher prices of long requests, if the built-in table has any and the
	// configuration sets no price.
	Tiers []model.Tier `json:"tiers,omitempty"`
	// Free reports that the configuration sets the price to zero, as for a local model.
	Free bool `json:"free,omitempty"`
	// Images reports that it reads images: as configured, or as all models of its vendor do.
	Images bool `json:"images,omitempty"`
	// Embeddings reports that it is the model for vectors.
	Embeddings bool `json:"embeddings,omitempty"`
	// Withheld, if not empty, says that the model must not be used because the file that
	// declares it is not trusted, or because a policy forbids it. API, BaseURL and the key are empty then. See [Claims].
	Withheld string `json:"withheld,omitempty"`
}

// Model returns a model of the section models, completed from the built-in table, or else one
// of the table, by "provider/id" or id.
func (c *Config) Model(name string) (*Model, error) {
	m, err := modelOf(c, name)
	if err != nil {
		return nil, err
	}
	m.Withheld = cmp.Or(c.withheld[tree.Path{"models", name}.ID()], c.opts.enforced.forbids(m))
	if m.Withheld != "" {
		m.API, m.BaseURL, m.APIKeyEnv, m.APIKeyFile = "", "", "", ""
	}
	return m, nil
}

// modelOf is Model, whether it may be asked or not.
func modelOf(c *Config, name string) (*Model, error) {
	declared, ok := c.values.Models[name]
	if !ok {
		known, err := catalog.Lookup(name)
		if err != nil {
			return nil, fmt.Errorf("%w; or declare it in the section models", err)
		}
		return fromTable(name, known), nil
	}
	m := &Model{Name: name, ID: declared.Model}
	m.ID = cmp.Or(m.ID, name)
	known, err := catalog.Lookup(m.ID)
	if declared.API != "" {
		if k, errAPI := catalog.Lookup(declared.API + "/" + m.ID); errAPI == nil {
			known, err = k, nil
		}
	}
	if err != nil {
		known = &catalog.Model{} // the declaration is all there is
	}
	id := m.ID
	*m = *fromTable(name, known)
	m.ID = id
	m.API = cmp.Or(declared.API, m.API)
	m.BaseURL, m.APIKeyEnv, m.APIKeyFile = declared.BaseURL, declared.APIKeyEnv, declared.APIKeyFile
	m.Window, m.MaxOutput = cmp.Or(declared.Window, m.Window), declared.MaxOutput
	m.Images, m.Embeddings = readsImages(m), declared.Embeddings
	if declared.Images != nil {
		m.Images = *declared.Images
	}
	if declared.Price != nil {
		m.Price, m.Tiers = *declared.Price, nil
		m.Free = m.Price == model.Price{}
	}
	return m, nil
}

func fromTable(name string, known *catalog.Model) *Model {
	m := &Model{Name: name, ID: known.ID, Window: known.Window, Output: known.Output, Price: known.Price, Tiers: slices.Clone(known.Tiers)}
	if f, _ := fieldAt(inModel, "api"); slices.Contains(f.enum, known.Provider) {
		m.API = known.Provider
	}
	m.Images = readsImages(m)
	return m
}

// readsImages reports whether all models with the API and address of m read images. The table
// does not know it of others, and a model that reads none refuses the whole request.
func readsImages(m *Model) bool { return m.API == "anthropic" && m.BaseURL == "" }

// modelNames returns the names of models to suggest for a wrong one.
func (c *Config) modelNames(like string) []string {
	names := c.Models()
	full := strings.Contains(like, "/")
	for m := range catalog.All() {
		if full {
			names = append(names, m.Name())
		} else {
			names = append(names, m.ID)
		}
	}
	return names
}
