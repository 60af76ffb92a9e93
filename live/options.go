package live

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense/core/history"
)

// Options adjust a [Gateway]. A nil pointer and the zero value of every field mean the defaults.
type Options struct {
	Upstreams Upstreams
	Store     Store
	Access    Access
	// Choice selects the profile and mode of a request.
	Choice Choice

	// Source is the absolute path of a folder. If an agent's working directory is this folder or below it, providers may
	// read the files there that the agent has read. Folder works alike, and is also the working directory of agents that
	// name none. Default: no file is read.
	Source, Folder string
	// Agent, if not nil, returns what the only agent of the gateway knows about a model: see [AgentLimit]. Window is the
	// model's by the table of models, 0 if unknown. The gateway condenses for the agent's window, and before the agent
	// condenses by itself.
	Agent func(model string, window int) AgentLimit
	// Observe forwards every request unchanged, and counts in [Stats] how much condensing would have saved.
	Observe bool
	// Account selects the model that writes an account of the conversation for the first provider of the chains, if any. A
	// request that the vendor would refuse does not wait for it, and is condensed without the account.
	Account Account
	// Ingest controls the shortening of new tool results before they are first sent. Epoch controls when and how far the
	// history is condensed.
	Ingest Ingest
	Epoch  EpochOptions
	// Recall selects the ways in which agents get condensed content back.
	Recall Recall

	Bounds  Bounds
	Reports Reports
	// Now is the clock, for tests.
	Now func() time.Time
}

// An AgentLimit is what an agent knows about a model, in tokens.
type AgentLimit struct {
	Window   int // that it takes the model to have; 0: not known
	Compacts int // size at which it condenses a conversation by itself; 0: not known to do that
}

// A Signer sets the headers of a signature. Its argument hash is the SHA-256 of the body, in hexadecimal. It is called for
// every request, from several goroutines.
type Signer func(r *http.Request, hash string) error

// Upstreams are the APIs to which requests are forwarded.
type Upstreams struct {
	// URLs maps names to the base URLs of APIs: requests to the gateway's path /NAME/… go to the upstream NAME.
	// "anthropic" and "openai" default to the vendors' own addresses; requests to "openai" that carry the login of a
	// ChatGPT plan go to "chatgpt" instead. For any other name, the URL can begin with a protocol and a +: "anthropic",
	// "openai", "both" (decided by the path; the default), or "pass" for an API that the gateway does not read:
	// pass+https://api.example.com forwards every path below /NAME unchanged.
	URLs map[string]string
	// Unversioned lists the upstreams whose paths have no /v1. For all others, /v1 is added to a path that a client
	// sends without it, if the base URL has no path.
	Unversioned []string
	// Signer, if not nil, returns the signer of requests to a host of Amazon Bedrock, which replaces the signatures of the
	// clients: those do not hold for the host, nor for a changed body. Every client of the gateway then uses the
	// signer's account. Requests with a key (Authorization: Bearer) are not signed.
	Signer func(host string) (Signer, error)
	// Forbids, if not nil, returns why no request may go to an address, which is then answered with 403; empty if it may.
	Forbids func(address string) string
	// Compaction selects, by upstream name, the server that answers an agent's request to compact the conversation.
	// Upstreams that are not named use [CompactAuto].
	Compaction map[string]Compaction
}

// Compaction selects who answers an agent that asks its vendor to compact the conversation, as Codex does: with a
// compaction_trigger at the end of a request of the Responses API, or at /v1/responses/compact.
type Compaction string

// The values of [Compaction]. With [CompactAuto], the default, the gateway asks the upstream first and answers itself if
// the upstream refuses or does not compact. If the upstream is not a vendor's own host, its answer is held back until
// a compaction is seen in it.
const (
	CompactAuto     Compaction = "auto"
	CompactUpstream Compaction = "upstream" // the upstream answers, whatever its answer is
	CompactGateway  Compaction = "gateway"  // the upstream is not asked
)

// Store says where the state is kept that must survive a restart, and for how long.
type Store struct {
	// Path is the path of a SQLite file, created if missing, or the address of a PostgreSQL database, postgres://…,
	// which several gateways can share. Empty or "memory" keeps the state in memory only.
	Path string
	// KeepFor and KeepBytes limit the store: conversations unused for KeepFor are deleted, and so are the least
	// recently used ones beyond KeepBytes in total. Defaults: 30 days, 1 GiB.
	KeepFor   time.Duration
	KeepBytes int64
	// Key, if not nil, is a secret of at least 32 random bytes that all gateways with this store have in common. The
	// keys that tell tenants apart, seal compactions and protect wrap's recall are derived from it. Without Key the
	// store holds such a secret itself, so a copy of the store exposes it. [Gateway.Reload] does not change it.
	Key []byte
}

// Access has the tokens and limits of the gateway's users.
type Access struct {
	// Token, if not empty, must be sent by every client, in the header X-Condense-Token or as the
	// first part of the path: /token/TOKEN/… Without a token only clients on this machine are
	// answered, and only if they call it by a name or address of the loopback.
	Token string
	// Tokens, if not empty, replaces Token: the path of a file with hashes of tokens, each belonging to a tenant, as
	// 'condense token new' writes it. The file is read again when it changes. Tenants share no state.
	Tokens string
	// Orders, if not empty, is a secret that stands for a token where none is needed: who sends it to [Gateway.Admin] may
	// direct conversations, and is shown their names and texts. Without both, nobody may.
	Orders string
	// Names, if not empty, are the host names by which clients with a token may call the gateway; *.example.com stands
	// for any name one level below example.com. IP addresses and loopback names are always allowed.
	Names []string
	// Limits apply to tenants that are not in Tenants, or to all clients together if Tokens is empty.
	Limits  Limits
	Tenants map[string]Limits
}

// Limits are the limits of one tenant. 0 means no limit.
type Limits struct {
	Requests   int // per minute
	Concurrent int // simultaneous requests, each counted until its answer has ended; 0 means 1,024 for each key
	// Bytes is per minute, of requests as sent (compressed). A request that exceeds it is let through, and the next
	// one waits.
	Bytes int64
	// ModelEpochs is the number of condensations per day (UTC) that ask a language model, rounds of new results among them. Beyond it, the
	// built-in chain condenses.
	ModelEpochs int
	// Cost is in US dollars per day (UTC), by the price table. Models without a known price do not count.
	Cost float64
}

// Choice says which profile and mode a request gets that names none; see [condense.Turn]. A request names them in the
// headers X-Condense-Profile and X-Condense-Mode, or in its path: /profile/NAME/… and /mode/NAME/… are the beginnings.
type Choice struct {
	Rules         []Rule // the first one that matches
	Profile, Mode string // if none does
}

// Bounds limit a request.
type Bounds struct {
	// MaxBody is the size in bytes, after decompression, of the largest request body that is read; of a known
	// conversation, eight times as much. Larger ones are passed through. Default 32 MB.
	MaxBody int64
	// Deadline limits the condensation of a request that the vendor would refuse, without its wait for a turn: 50 s at
	// most. After the deadline the request is truncated. Default 5 s.
	Deadline time.Duration
}

// Reports are the receivers of logs, metrics, pages and records.
type Reports struct {
	Logger *slog.Logger // default: nothing is logged. Credentials and bodies never are.
	// Audit records requests, refusals, epochs, recalls and uses of the gateway's own pages, each with its caller. It never
	// receives conversation text or keys. Default: nothing is recorded.
	Audit *slog.Logger
	// Meter and Tracer receive the metrics and traces listed in docs/telemetry.md: numbers, never conversation text.
	// Default: nothing is measured. [Gateway.Reload] does not change them.
	Meter  metric.MeterProvider
	Tracer trace.TracerProvider
	// Metrics, if not nil, serves /metrics in [Gateway.Admin], and Pages serves everything below /condense/ there. A
	// handler returned by Admin keeps the ones that were set when it was called.
	Metrics http.Handler
	Pages   http.Handler
	// Record is called with every condensable request after it was answered. It must neither change nor retain the
	// Exchange: its bodies hold the conversation.
	Record func(context.Context, *Exchange)
	// Watch, if not nil, sees the turns of conversations. Options given to [Gateway.Reload] must repeat it, or watching ends.
	Watch Watcher
}

// A Rule chooses the profile or the mode of a request. All fields that are set must match.
type Rule struct {
	Model  string // the model's name; * is any text
	Agent  string // name of the agent: claude, codex, opencode, pi …
	System string // a phrase in the system prompt, or in a system message
	// Profile and Mode are the choice.
	Profile, Mode string
}

// Ingest configures the treatment of new tool results, after the providers of the configuration's key ingest. The zero value makes only
// lossless changes.
type Ingest struct {
	// Off makes no lossless changes.
	Off bool
	// MaxResult is the most tokens that a result may have; 0 means no limit. Longer ones are shortened according to
	// their type and get a handle, so the agent needs a way to recall the rest.
	MaxResult int
	whole     bool // a call of /v1/compress wants its newest messages unchanged
}

// EpochOptions say when the history is condensed other than by the limits of the profile, and
// how far. The zero value is right for most.
type EpochOptions struct {
	// Target is the size to condense to, in percent of the window. 0 means the profile's target. If the profile has
	// none: in windows of 200,000 tokens or more, half of the conversation without system prompt and tools; in smaller
	// windows, a quarter; a fifth where the vendor charges less than a tenth of the input price for reading its cache;
	// three tenths where writing the cache costs nothing extra. If the vendor's cache is the only reason for the epoch,
	// at least 20,000 tokens of the conversation remain.
	Target float64
	// IgnoreCold ignores an expired vendor cache as an occasion to condense. IgnorePayback ignores the occasion that
	// writing a shorter history to the cache costs less than reading it saves.
	IgnoreCold, IgnorePayback bool
	// MinSize is a size in tokens, without system prompt and tools: smaller conversations are condensed only when a
	// limit requires it, because cutting them costs more than money. Default: half of the largest possible size, at
	// most 60,000.
	MinSize int
	// Risk limits the loss if the conversation ended right after an epoch that pays for itself only later: in percent,
	// 0 to 100, of the conversation's cost so far. Savings of earlier epochs may be risked as well. Default: 4.
	Risk float64
	// Prepare is the percent, up to 100, of the size at which a conversation is due, from which on a chain that asks a language model
	// condenses beside the requests. A later request uses that if it still begins with what was condensed. Default: 85.
	Prepare float64
	// ExpectedTurns is the number of further requests to expect when deciding whether shortening a cached conversation
	// pays. Default: as many as there were so far, at most 50.
	ExpectedTurns int
}

// Recall configures how agents get condensed content back.
type Recall struct {
	// Off writes no handles, keeps no originals and disables /mcp.
	Off bool
	// NoMCP does the same, except for conversations that have the tool added by Tool.
	NoMCP bool
	// Own gives requests without a recall secret the secret of [Gateway.RecallSecret]; it is meant for a gateway with
	// one user. Without Own, nobody can recall content of requests that carry no secret.
	Own bool
	// Tool adds a tool to conversations, from their first request on, with which the model reads condensed content. The
	// gateway answers its calls, and the client does not see them. It is for agents that cannot recall in another way.
	// Requests never get it if they have no tools, use the login of a plan, have such a tool already, or ask the vendor
	// to store the answer.
	Tool bool
	// Beside yields conversations whose condensed views were made elsewhere, as by condense resume, latest first: handles and numbers
	// in them lead there, by the gateway's own tool, and at /mcp with Own. It is meant for a gateway with one user. Nil: there are none.
	Beside func() iter.Seq[*history.Journal]
	// MaxSize is the most bytes, compressed, that the kept originals may take. Once it is reached, no more are kept,
	// and condensed views get no handles. Default 1 GiB.
	MaxSize int64
	// MaxResult replaces Ingest.MaxResult, if that is 0, for clients that can recall. In tokens; 0 means no limit.
	MaxResult int
}

func (r *Rule) check() error {
	if r.Profile == "" && r.Mode == "" {
		return errors.New("set a profile or a mode")
	}
	if r.Model == "" && r.Agent == "" && r.System == "" {
		return errors.New("set what it is for: model, agent or system")
	}
	return nil
}

// matches reports whether the rule applies to a request. system reports whether the system prompt has a phrase.
func (r *Rule) matches(agent, model string, system func(phrase string) bool) bool {
	return (r.Model == "" || glob(r.Model, model)) && (r.Agent == "" || strings.EqualFold(r.Agent, agent)) &&
		(r.System == "" || system(r.System))
}

// glob reports whether a text matches a pattern in which * stands for any text.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, p := range parts[1:last] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return strings.HasSuffix(text, parts[last])
}
