package live

import (
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/live/internal/upstream"
	"github.com/condensehq/condense/live/internal/watching"
)

// Limits are the limits of one tenant.
type Limits = tenant.Limits

// Compaction selects the server that answers an agent's request to compact the conversation: the vendor or the gateway.
type Compaction = upstream.Compaction

// The values of [Compaction].
const (
	CompactAuto     = upstream.CompactAuto
	CompactUpstream = upstream.CompactUpstream
	CompactGateway  = upstream.CompactGateway
)

// An AgentLimit is what an agent knows about a model, in tokens: its window, and the size at which it condenses by itself.
type AgentLimit = agents.Limit

type (
	// Stats are the statistics of a gateway.
	Stats = stats.Stats
	// Tokens counts the tokens of requests and answers.
	Tokens = stats.Tokens
	// Observed holds the hypothetical results of a gateway that changes nothing, in tokens and US dollars.
	Observed = stats.Observed
	// An Epoch is a condensation of a running conversation.
	Epoch = stats.Epoch
	// Recalled counts recalls of one kind of content.
	Recalled = stats.Recalled
	// Attempt counts how often a provider had one outcome.
	Attempt = stats.Attempt
	// Unreachable counts requests that could not be sent to an upstream.
	Unreachable = stats.Unreachable
	// Failure counts errors of a kind with the same cause.
	Failure = stats.Failure
	// Accounts sums up the requests to clients' own models, in tokens and US dollars.
	Accounts = stats.Accounts
	// A Window describes the window of a model that is in no table, or whose server cuts longer prompts.
	Window = stats.Window
)

// Advice says what to do about a [Failure] with this status; empty if only its reason says it.
func Advice(status int) string { return stats.Advice(status) }

// Replaced is the outcome of an [Attempt] by a provider that would have taken too long.
const Replaced = stats.Replaced

// The values of Window.From.
const (
	WindowServer   = stats.WindowServer
	WindowUsual    = stats.WindowUsual
	WindowNotKnown = stats.WindowNotKnown
)

type (
	// An Order is a user's order for a running conversation.
	Order = session.Order
	// A Protection is a text that every view keeps verbatim.
	Protection = session.Protection
)

// The values of Order.Do.
const (
	OrderNow  = session.OrderNow  // condense
	OrderUndo = session.OrderUndo // undo the last condensation
)

type (
	// A Watcher follows the conversations of a gateway.
	Watcher = watching.Watcher
	// Truth is what the view of an epoch says that is not so, or no longer says.
	Truth = epoch.Truth
	// A Turn is a request that continues a conversation.
	Turn = watching.Turn
	// A Finding is what is known of an epoch later.
	Finding = watching.Finding
	// Used is the vendor's report about a turn, in tokens and US dollars.
	Used = watching.Used
	// An Exchange is a condensable request as the gateway saw it.
	Exchange = watching.Exchange
)
