package live

import (
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/upstream"
	"github.com/condensehq/condense/internal/live/watching"
)

// Limits are the limits of one tenant.
type Limits = tenant.Limits

// Compaction selects who answers an agent that asks its vendor to compact the conversation.
type Compaction = upstream.Compaction

// The values of [Compaction].
const (
	CompactAuto     = upstream.CompactAuto
	CompactUpstream = upstream.CompactUpstream
	CompactGateway  = upstream.CompactGateway
)

// The parts of the statistics: see [Stats].
type (
	Stats       = stats.Stats
	Tokens      = stats.Tokens
	Observed    = stats.Observed
	Epoch       = stats.Epoch
	Recalled    = stats.Recalled
	Attempt     = stats.Attempt
	Unreachable = stats.Unreachable
	Accounts    = stats.Accounts
	Window      = stats.Window
)

// Replaced is the outcome of an [Attempt] by a provider that would have taken too long.
const Replaced = stats.Replaced

// The values of Window.From.
const (
	WindowServer   = stats.WindowServer
	WindowUsual    = stats.WindowUsual
	WindowNotKnown = stats.WindowNotKnown
)

// A user's orders for a running conversation.
type (
	Order      = session.Order
	Protection = session.Protection
)

// The values of Order.Do.
const (
	OrderNow  = session.OrderNow  // condense
	OrderUndo = session.OrderUndo // undo the last condensation
)

// What [Reports] tell.
type (
	Watcher  = watching.Watcher
	Turn     = watching.Turn
	Used     = watching.Used
	Exchange = watching.Exchange
)
