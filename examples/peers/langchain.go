package peers

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// LangChainConfig has the settings of [LangChain].
type LangChainConfig struct {
	KeepMessages int    `json:"keep_messages" doc:"Newest messages that stay; 0 to keep by tokens."`
	KeepTokens   int    `json:"keep_tokens"   doc:"If keep_messages is 0: tokens of the newest messages that stay; 0 for half of the target."`
	Trim         int    `json:"trim"          doc:"Newest tokens of the others that the model is shown; 0 for all."`
	Model        string `json:"model"         doc:"Writes the summary; empty for the host's choice."`
}

// Validate reports invalid settings.
func (c *LangChainConfig) Validate() error {
	if c.KeepMessages < 0 || c.KeepTokens < 0 || c.Trim < 0 {
		return fmt.Errorf("keep_messages, keep_tokens and trim: must not be negative")
	}
	return nil
}

// LangChain is the SummarizationMiddleware of LangChain. All but the newest messages become one summary; the cut moves back to the
// call whose results it would divide. The model is shown the newest of the others only.
func LangChain() registry.Strategy {
	return registry.Define("langchain", "LangChain's summarization middleware: a model's summary, and the newest messages.",
		func() LangChainConfig { return LangChainConfig{KeepMessages: 20, Trim: 4000} },
		func(_ context.Context, c LangChainConfig, env registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				return c.condense(ctx, req, &writer{env: env, name: c.Model})
			}), nil
		})
}

const langChainOrder = `The conversation below is about to be replaced by what you write. Extract the context that matters most for the user's goal: what was
asked, decided and done, which files matter, what comes next. Repeat nothing. Write only the extracted context.`

func (c LangChainConfig) condense(ctx context.Context, req *core.Request, w *writer) (*core.Result, error) {
	cut := len(req.Messages) - c.KeepMessages
	if c.KeepMessages == 0 {
		keep := c.KeepTokens
		if keep == 0 {
			keep = req.Budget.Room() / 2
		}
		cut = tail(req.Messages, keep)
	}
	for _, g := range core.Groups(req.Messages) {
		if g.Start < cut && cut < g.End {
			cut = g.Start
		}
	}
	if cut <= 0 {
		return answer(ctx, req, req.Messages, w.usage)
	}
	keep := func(i int) bool { return i >= cut }
	old := hidden(req.Messages, kept(req.Messages, keep, ""))
	if len(old) == 0 {
		return answer(ctx, req, req.Messages, w.usage)
	}
	if c.Trim > 0 {
		if shown := old[tail(old, c.Trim):]; len(shown) > 0 {
			old = shown
		} else {
			old = old[len(old)-1:] // it alone is longer
		}
	}
	summary, err := w.ask(ctx, langChainOrder, written(old, 4*max(c.Trim, 4000)), max(200, req.Budget.Room()/4))
	if err != nil {
		summary = "Error generating summary: " + core.Label(err.Error()) // as there: the messages go all the same
	}
	out := kept(req.Messages, keep, "Here is a summary of the conversation to date:\n\n"+summary)
	return answer(ctx, req, out, w.usage)
}
