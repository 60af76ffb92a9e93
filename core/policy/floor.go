package policy

import (
	"errors"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
)

// ErrFloorExceedsWindow means that what may not be removed from a conversation is larger
// than what may be sent, so that no provider can help.
var ErrFloorExceedsWindow = errors.New("what cannot be removed exceeds the window")

// A FloorError gives the numbers of an [ErrFloorExceedsWindow].
type FloorError struct {
	Size    Size
	Budget  core.Budget
	Refused int // what the model's API refused; 0 if it was not asked
}

// Error names the numbers and what to do.
func (e *FloorError) Error() string {
	s := e.Size
	text := fmt.Sprintf("%v: system prompt %s + tools %s + protected messages %s = %s tokens; ",
		ErrFloorExceedsWindow, size.Group(max(0, s.System)), size.Group(max(0, s.Tools)), size.Group(max(0, min(s.Protected, s.Messages))), size.Group(s.Floor()))
	if e.Refused > 0 {
		text += fmt.Sprintf("the model refused %s", size.Group(e.Refused))
	} else {
		text += fmt.Sprintf("at most %s may be sent (window %s, reserve %s)",
			size.Group(e.Budget.Limit), size.Group(e.Budget.Window), size.Group(e.Budget.Reserve))
	}
	return text + ": use a model with a larger window, offer fewer tools, or protect fewer messages"
}

// Unwrap returns [ErrFloorExceedsWindow].
func (e *FloorError) Unwrap() error { return ErrFloorExceedsWindow }
