package caller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// Options adjust a [Client]. A nil pointer and the zero value of every field mean the defaults.
type Options struct {
	Host     string                          // name and version of the host, for the plugin's logs
	Logger   *slog.Logger                    // for the plugin's log during a call; default: discard
	Progress func(context.Context, Progress) // receives the plugin's progress, in the goroutine of the call
	Limits   Limits
	// Model returns the language model of that name for a call with this request, or the host's choice if the name is
	// empty; nil if the host has none. Its usage is added to the usage of the plugin's results.
	Model func(req *core.Request, name string) (model.Generator, error)
	// Models lists the models that Model would return, as far as they are known; nil for none.
	Models func(req *core.Request) iter.Seq2[string, model.Info]
	// Run lets a built-in strategy shorten the messages of req that are not protected, with these models, and verifies its answer.
	// Embedder returns the model for vectors. Nil: the host has none.
	Run      func(ctx context.Context, req *core.Request, strategy string, settings json.RawMessage, models Lender) (*core.Result, error)
	Embedder func() (model.Embedder, error)
}

// A Lender returns the language model of a name; empty for the host's choice.
type Lender = func(name string) (model.Generator, error)

// A Progress is a plugin's report of its progress.
type Progress struct {
	Fraction float64 // 0 to 1; negative if unknown
	Text     string  // one line
}

// A Client is the host's end of the protocol: a provider that calls a plugin. It is safe for
// concurrent use. It neither starts nor closes anything.
type Client struct {
	rpc  condensepb.ProviderServiceClient
	opts Options

	abilities atomic.Uint32 // of the last description
	estimates atomic.Bool   // with the last settings
}

var _ core.CostEstimator = (*Client)(nil)

// Abilities implements [core.Declarer]: what the plugin declared when it was last described.
func (c *Client) Abilities() core.Abilities { return core.Abilities(c.abilities.Load()) }

// NewClient returns a client of the plugin at the other end of conn.
func NewClient(conn grpc.ClientConnInterface, opts *Options) *Client {
	c := &Client{rpc: condensepb.NewProviderServiceClient(conn)}
	if opts != nil {
		c.opts = *opts
	}
	c.opts.Limits = c.opts.Limits.withDefaults()
	c.opts.Logger = cmp.Or(c.opts.Logger, slog.New(slog.DiscardHandler))
	return c
}

// A Description is a plugin's description of itself. Its texts have no control characters.
type Description struct {
	Name     string
	Version  string
	Doc      string
	SDK      string // the library that implements the protocol
	Settings []registry.Setting
	// Abilities are those that it declares.
	Abilities core.Abilities
}

// Describe asks the plugin for its description. It need not be configured. Later calls of Condense may do only what the description
// declares.
func (c *Client) Describe(ctx context.Context) (*Description, error) {
	res, err := c.rpc.Describe(ctx, &condensepb.DescribeRequest{Host: c.opts.Host}, wire.CallOptions...)
	if err != nil {
		return nil, fmt.Errorf("describe: %w", fromStatus(ctx, err))
	}
	d := &Description{
		Name: printable(res.GetName()), Version: printable(res.GetVersion()),
		Doc: printable(res.GetDoc()), SDK: printable(res.GetSdk()), Abilities: core.ParseAbilities(res.GetAbilities()),
	}
	c.abilities.Store(uint32(d.Abilities))
	d.Settings = fromSettings(res.GetSettings(), nestedSettings)
	return d, nil
}

// nestedSettings is how deep settings may be nested. Deeper ones are not shown.
const nestedSettings = 4

func fromSettings(settings []*condensepb.Setting, levels int) []registry.Setting {
	if levels == 0 {
		return nil
	}
	var all []registry.Setting
	for _, s := range settings {
		def := json.RawMessage(s.GetDefault())
		if !json.Valid(def) {
			def = json.RawMessage("null")
		}
		all = append(all, registry.Setting{
			Name: printable(s.GetName()), Type: printable(s.GetType()), Default: def, Doc: printable(s.GetDoc()),
			Fields: fromSettings(s.GetFields(), levels-1), Enum: each(s.GetEnum(), printable), Was: each(s.GetWas(), printable),
		})
	}
	return all
}

// each returns f of every text.
func each(texts []string, f func(string) string) []string {
	texts = slices.Clone(texts)
	for i, s := range texts {
		texts[i] = f(s)
	}
	return texts
}

// A SettingsError lists the problems that a plugin reports about its settings.
type SettingsError struct {
	Problems []wire.Problem // at least one
	// About is the description that the plugin gave of itself before; nil if it was not asked.
	About *Description
}

// Error lists the problems, one a line, each with its key.
func (e *SettingsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Message
		if p.Key != "" {
			lines[i] = p.Key + ": " + p.Message
		}
	}
	return strings.Join(lines, "\n")
}

// Configure sends the plugin its settings, a JSON object; empty means the defaults. It may be
// repeated: running calls keep the settings that they began with. If the plugin refuses the
// settings, the previous ones stay in force and the error is a [*SettingsError].
func (c *Client) Configure(ctx context.Context, settings json.RawMessage) error {
	res, err := c.rpc.Configure(ctx, &condensepb.ConfigureRequest{Settings: settings}, wire.CallOptions...)
	if err != nil {
		return fmt.Errorf("configure: %w", fromStatus(ctx, err))
	}
	if len(res.GetProblems()) == 0 {
		c.estimates.Store(res.GetEstimates())
		return nil
	}
	return &SettingsError{Problems: wire.Problems(res, printable)}
}

// printable removes control characters from a plugin's text, which could act on a terminal or forge lines of a log.
func printable(s string) string { return plain.Strip(s, "\n\t") }

// DescribedSettings returns the settings of an encoded DescribeResponse.
func DescribedSettings(data []byte) ([]registry.Setting, error) {
	res, err := wire.Described(data)
	return fromSettings(res.GetSettings(), nestedSettings), err
}
