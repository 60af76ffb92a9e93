package wire

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

func toStart(req *core.Request) *condensepb.Start {
	b := req.Budget
	s := &condensepb.Start{
		MessageCount: int64(len(req.Messages)),
		Budget: &condensepb.Budget{
			Window: int64(b.Window), Reserve: int64(b.Reserve), Overhead: int64(b.Overhead),
			Limit: int64(b.Limit), Target: int64(b.Target),
		},
		Trigger: name(string(req.Trigger)), Profile: name(req.Profile), Mode: name(req.Mode),
		System: bytesOf(req.System), Environment: bytesOf(req.Environment), Instructions: bytesOf(req.Instructions),
		Dir: bytesOf(req.Dir), Tools: bytesOf(req.Tools), Originals: bytesOf(req.Originals),
	}
	for _, f := range req.FilesRead {
		s.FilesRead = append(s.FilesRead, bytesOf(f))
	}
	return s
}

// fromStart returns the request that s begins; it has no messages yet.
func fromStart(s *condensepb.Start) *core.Request {
	b := s.GetBudget()
	req := &core.Request{
		Budget: core.Budget{
			Window: int(b.GetWindow()), Reserve: int(b.GetReserve()), Overhead: int(b.GetOverhead()),
			Limit: int(b.GetLimit()), Target: int(b.GetTarget()),
		},
		Trigger: core.Trigger(unname(s.GetTrigger())), Profile: unname(s.GetProfile()), Mode: unname(s.GetMode()),
		System: stringOf(s.GetSystem()), Environment: stringOf(s.GetEnvironment()), Instructions: stringOf(s.GetInstructions()),
		Dir: stringOf(s.GetDir()), Tools: stringOf(s.GetTools()), Originals: stringOf(s.GetOriginals()),
	}
	for _, f := range s.GetFilesRead() {
		req.FilesRead = append(req.FilesRead, stringOf(f))
	}
	return req
}

func toUsage(u core.Usage) *condensepb.Usage {
	return &condensepb.Usage{
		Calls: int64(u.Calls), InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens),
		CachedTokens: int64(u.CachedTokens), Usd: u.USD, Unpriced: int64(u.Unpriced),
	}
}

func fromUsage(u *condensepb.Usage) core.Usage {
	return core.Usage{
		Calls: int(u.GetCalls()), InputTokens: int(u.GetInputTokens()), OutputTokens: int(u.GetOutputTokens()),
		CachedTokens: int(u.GetCachedTokens()), USD: u.GetUsd(), Unpriced: int(u.GetUnpriced()),
	}
}
