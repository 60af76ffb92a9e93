package servecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/control"
)

// A controller is a [control.Controller], or the gateway's at an admin address.
type controller interface { //nolint:interfacebloat // all that the commands do
	Conversations(ctx context.Context, since time.Time) ([]*control.Conversation, error)
	Do(ctx context.Context, c *control.Conversation, action string, a *control.Ask) error
	PlanUndo(ctx context.Context, c *control.Conversation) (*control.UndoPlan, error)
	Show(ctx context.Context, c *control.Conversation, began string) (*control.View, error)
}

// A remote is the controller of the gateway at an admin address.
type remote struct{ base, token string }

// Conversations is [control.Controller.Conversations].
func (d *remote) Conversations(ctx context.Context, since time.Time) ([]*control.Conversation, error) {
	var got struct{ Conversations []*control.Conversation }
	const always = 10 * 365 * 24 * time.Hour
	age := always
	if !since.IsZero() {
		age = time.Since(since)
	}
	err := d.ask(ctx, http.MethodGet, "/condense/live?since="+url.QueryEscape(age.String()), nil, &got)
	return got.Conversations, err
}

// Do is [control.Controller.Do].
func (d *remote) Do(ctx context.Context, c *control.Conversation, action string, a *control.Ask) error {
	return d.ask(ctx, http.MethodPost, "/condense/live/"+c.ID+"/"+action, a, c)
}

// PlanUndo is [control.Controller.PlanUndo].
func (d *remote) PlanUndo(ctx context.Context, c *control.Conversation) (*control.UndoPlan, error) {
	p := &control.UndoPlan{}
	return p, d.ask(ctx, http.MethodGet, "/condense/live/"+c.ID+"/undo", nil, p)
}

// Show is [control.Controller.Show], of the whole conversation.
func (d *remote) Show(ctx context.Context, c *control.Conversation, _ string) (*control.View, error) {
	v := &control.View{}
	return v, d.ask(ctx, http.MethodGet, "/condense/live/"+c.ID, nil, v)
}

func (d *remote) ask(ctx context.Context, method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, d.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if d.token != "" {
		r.Header.Set("X-Condense-Token", d.token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			return fmt.Errorf("no gateway answers at %s: %s, and use the second address that it prints", d.base, startOne)
		}
		return err
	}
	const most = 64 << 20
	text, err = io.ReadAll(io.LimitReader(res.Body, most))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		var fault struct{ Error string }
		if json.Unmarshal(text, &fault) == nil && fault.Error != "" {
			return errors.New(fault.Error)
		}
		return fmt.Errorf("%s: %s: %s", d.base, res.Status, strings.TrimSpace(string(text[:min(len(text), 300)])))
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s is no admin address of condense serve", d.base)
	}
	return nil
}
