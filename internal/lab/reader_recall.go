package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/tokens"
)

// LeastRecall is the smallest number of tokens for [ReaderOptions.Recall] but zero. A reader who has fewer left has to answer.
const LeastRecall = 50

// withRecall follows the name of a strategy whose reader may recall.
const withRecall = " + recall"

const (
	recallTurns = 4    // replies in which a reader may ask for content before it has to answer
	recallsEach = 20   // recalls in one reply
	offerTokens = 1000 // of readerRecall, at most
	vainTokens  = 16   // said of a recall that does not fit

	defaultRecall, maxRecall = 5000, 10_000 // tokens of one recall, as the tool has them
)

const readerRecall = `

Parts that were left out can be recalled by their numbers in the table of contents, or by words: %d tokens in all are left for that. To recall, reply with a JSON object that has only the key "recall": a list of objects, each with arguments of the tool recall, whose schema follows. After this you can do so %d more times before you have to answer.
%s`

// Recalled counts a reader's recalls about one session.
type Recalled struct {
	Tokens int `json:"tokens"` // returned, with the lines that describe the content
	Calls  int `json:"calls"`
	Vain   int `json:"vain"` // calls that returned no content
}

// A recaller answers a reader's recalls from a conversation until a number of tokens is spent.
type recaller struct {
	Recalled

	state   mcpserver.State
	counter *tokens.Counter
	left    int // tokens
	text    strings.Builder
}

// leadsInto reports whether anything in a view is a number or handle of content of c.
func leadsInto(c *recall.Conversation, view []core.Message) bool {
	for r := range recall.Mentioned(view) {
		if c.Named(r) != nil {
			return true
		}
	}
	return false
}

// answer adds the content that a reader asked for, with a list or one request alone, to the recaller's text.
func (r *recaller) answer(ctx context.Context, asked []byte) {
	all := slices.Collect(rawjson.Elements(asked))
	if !rawjson.IsArray(asked) {
		all = [][]byte{asked}
	}
	for _, raw := range all[:min(len(all), recallsEach)] {
		args := map[string]any{}
		if json.Unmarshal(raw, &args) != nil || args == nil {
			args = map[string]any{"what": json.RawMessage(raw)} // a number alone, or null
		}
		fmt.Fprintf(&r.text, "recall %s\n%s\n\n", plain.Abbreviate(string(raw)), strings.TrimRight(r.call(ctx, args), "\n"))
	}
}

// call is the tool, with no more than is left.
func (r *recaller) call(ctx context.Context, args map[string]any) string {
	r.Calls++
	found := 0 // bytes of content
	state := r.state
	state.Recalled = func(_ []recall.Piece, bytes int) { found = bytes }
	most := defaultRecall
	if n, ok := args["tokens"].(float64); ok && n >= 1 {
		most = int(min(n, maxRecall))
	}
	for most = min(most, r.left); most > 0; {
		args["tokens"] = most
		raw, err := json.Marshal(args)
		if err != nil {
			break
		}
		found = 0
		texts, err := state.Recall(ctx, raw)
		if err != nil {
			texts = []string{"[" + err.Error() + "]"}
		}
		text := strings.Join(texts, "\n")
		n := r.counter.Count(core.Text(text))
		if n <= r.left {
			r.left, r.Tokens, r.Vain = r.left-n, r.Tokens+n, r.Vain+map[bool]int{true: 1}[found == 0]
			return text
		}
		if most = most * r.left / n; err != nil {
			break
		}
	}
	r.Vain++
	return "[this does not fit into the tokens that are left]"
}

// answers returns the reply of a reader that sees only a view, and may recall with back unless that is nil.
func (v *interviews) answers(ctx context.Context, w *sessionWork, view *viewed, questions []question, back *recaller) (reading, error) {
	var list strings.Builder
	for i, q := range questions {
		fmt.Fprintf(&list, "%d. %s\n", i+1, q.Question)
	}
	for turns := recallTurns; ; turns-- {
		texts := []string{fenced("conversation", view.Text)}
		if back != nil && back.text.Len() > 0 {
			texts = append(texts, fenced("what you recalled of the rest", back.text.String()))
		}
		ask := fmt.Sprintf(readerQuestion, list.String())
		p := prompt(authorSystem, (len(questions)+2)*answerTokens, append(texts, ask)...)
		input := w.counter.Count(core.Text(p.System)) + core.MessageTokens(w.counter, p.Messages[0])
		if view.Text == "" { // in a dry run: assume the largest
			input += view.Tokens
		}
		if window := v.reader.Info().Window; back != nil && window > 0 {
			back.left = min(back.left, window-input-p.MaxOutput-offerTokens)
		}
		may := back != nil && turns > 0 && back.left >= LeastRecall
		if may {
			offer := fmt.Sprintf(readerRecall, back.left, turns-1, mcpserver.RecallSchema)
			p = prompt(p.System, p.MaxOutput, append(texts, ask+offer)...)
			input += w.counter.Count(core.Text(offer))
		}
		var r reading
		check := func() error {
			if rawjson.IsNull(r.Recall) {
				r.Recall = nil
			}
			if !r.Answers.any(len(questions)) && (!may || len(r.Recall) == 0) {
				return errors.New("the reader answers no question")
			}
			return nil
		}
		if view.Text != "" {
			if err := v.ask(ctx, w.counter, v.reader, p, &r, check); err != nil {
				return r, err
			}
		}
		switch {
		case r.Answers.any(len(questions)):
			told := secret.Redact(r.Hindered)
			r.Hindered = strings.ToValidUTF8(told[:min(len(told), maxHindered)], "")
			if !slices.Contains([]string{"yes", "partly", "no"}, r.GoOn) {
				r.GoOn = ""
			}
			return r, nil
		case len(r.Recall) > 0:
			back.answer(ctx, r.Recall)
			continue
		}
		// In a dry run, the reply is not known.
		one := core.Usage{Calls: 1, InputTokens: input, OutputTokens: p.MaxOutput}
		if view.Text == "" {
			v.spend(v.reader.Info().Charge(one))
		}
		if may {
			one.InputTokens += back.left
			for range turns { // the next prompt has the recalls and what came of each
				one.InputTokens += p.MaxOutput + recallsEach*vainTokens
				v.spend(v.reader.Info().Charge(one))
			}
		}
		return r, ctx.Err()
	}
}
