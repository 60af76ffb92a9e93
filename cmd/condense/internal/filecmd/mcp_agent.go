package filecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/hook"
	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/recall"
)

// served are the agents whose session can be found.
func served() []string {
	return slices.Compact(slices.Sorted(slices.Values(append(agentNames(false), hook.Agents()...))))
}

// An agentSession serves the session of an agent: the agent's own record, if it can be read, and the originals that a
// hook has kept.
type agentSession struct {
	agent    string
	recorded *sessions.Agent // nil if its sessions are not found
	kept     *hook.Store
	project  string
	id       string // of the session, if it is known

	mu   sync.Mutex
	file *followed // the session that was served last
}

func newAgentSession(a *cli.App, agent string) (*agentSession, error) {
	s := &agentSession{agent: agent, project: os.Getenv("CLAUDE_PROJECT_DIR"), file: &followed{app: *a}}
	s.file.app.Stderr = io.Discard // the model gets the errors
	for _, r := range sessions.Agents() {
		if r.Name == agent && r.InFiles() {
			s.recorded = r
		}
	}
	var err error
	if s.kept, err = hook.NewStore(); err != nil {
		return nil, err
	}
	if s.project == "" || agent != hook.Claude {
		s.project, err = os.Getwd()
	}
	return s, err
}

// session returns the ID of the session and, if its file is found, the session. It looks again at every call: agents
// start servers before they write a session, and switch sessions in the same process.
func (s *agentSession) session(ctx context.Context) (id string, found *sessions.Session) {
	id = s.id
	if id == "" && s.agent == hook.Claude {
		id = os.Getenv("CLAUDE_CODE_SESSION_ID")
	}
	if s.recorded != nil {
		if named, err := s.recorded.Find(ctx, id); err == nil {
			return id, named
		}
		if newest, err := s.recorded.Newest(ctx, s.project); err == nil && s.id == "" {
			return newest.ID, newest
		}
	}
	return cmp.Or(id, s.kept.Newest(s.agent, s.project)), nil
}

// state returns the current conversation.
func (s *agentSession) state(ctx context.Context) (*mcpserver.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, session := s.session(ctx)
	st := &mcpserver.State{
		Conversation: recall.New(history.New()), Format: "kept results", Changed: time.Now(), Records: true,
		Name: fmt.Sprintf("no session of %s in %s", s.agent, s.project),
	}
	switch {
	case session != nil:
		if s.file.path != session.Path {
			s.file = &followed{app: s.file.app, path: session.Path, format: session.Agent.Format}
		}
		own, err := s.file.state(ctx)
		if err != nil {
			return nil, err
		}
		copied := *own
		st = &copied
		st.Conversation = recall.New(own.Conversation.Own.Journal) // own is not to be changed
		for _, o := range own.Conversation.Others {
			st.Conversation.Add(o.File, o.Journal)
		}
		st.Name = fmt.Sprintf("session %s of %s", id, session.Agent.Title)
	case id != "":
		st.Name = fmt.Sprintf("session %s of %s, results kept by the hook only", id, s.agent)
	}
	for _, path := range s.kept.Files(s.agent, id) {
		if _, err := addOriginals(st.Conversation, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	st.Find = func(_ context.Context, ref recall.Ref) ([]recall.Piece, error) {
		if pieces := st.Conversation.Named(ref); pieces != nil {
			return pieces, nil
		}
		other := recall.New(history.New())
		for _, path := range s.kept.Find(s.agent, ref.Handle) {
			if _, err := addOriginals(other, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		if has := func(c *recall.Conversation) bool { return c.Named(ref) != nil }; !has(other) {
			other = cmp.Or(recall.First(sessions.Wholes, has), other) // of a copy in a store, or that was forked
		}
		return other.Named(ref), nil
	}
	st.Numbers = func(_ context.Context, key string) (*recall.Source, error) {
		has := func(c *recall.Conversation) bool { return recall.Key(c.Own.Journal.View()) == key }
		if key == "" || has(st.Conversation) {
			return st.Conversation.Own, nil
		}
		return cmp.Or(recall.First(sessions.Wholes, has), st.Conversation).Own, nil
	}
	return st, nil
}
