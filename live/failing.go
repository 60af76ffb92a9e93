package live

import (
	"context"
	"errors"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
)

// failed notes that an epoch for the model was due and could not begin; forced says that the vendor would refuse the request without it.
// When that lasts, the log says it once for the conversation.
func (r *request) failed(ctx context.Context, model string, err error, forced bool) {
	if ctx.Err() != nil || r.lease == nil || session.Unstored(err) || errors.Is(err, store.ErrConflict) {
		return
	}
	f := r.lease.Fail(job.CauseOf(err), forced, r.in.start)
	if f.Lasting() && r.lease.First("failing") {
		r.s.Reports.Logger.WarnContext(ctx, "a conversation is not condensed, because its epochs fail: at the limit it is truncated",
			"conversation", r.lease.Conversation, "agent", r.from.agent.Name, "model", model, "times", f.Count, "since", f.Since, "err", f.Why,
			"remedy", "see the provider's error; or the agent's own compaction, or a new session")
	}
}
