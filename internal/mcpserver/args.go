package mcpserver

import (
	"encoding/json"
	"slices"
)

// A word is a string that a model may also write as a number.
type word string

// UnmarshalJSON reads a string or a number.
func (w *word) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(w))
	}
	*w = word(b)
	return nil
}

type recallArgs struct {
	What    word   `json:"what"`
	Of      word   `json:"of"`
	Handle  word   `json:"handle"`
	Message word   `json:"message"`
	File    string `json:"file"`
	At      word   `json:"at"`
	Changes bool   `json:"changes"`
	Lines   word   `json:"lines"`
	Head    int    `json:"head"`
	Tail    int    `json:"tail"`
	Grep    string `json:"grep"`
	Tokens  int    `json:"tokens"`
	Offset  int    `json:"offset"`
}

// names returns the arguments that name content.
func (in *recallArgs) names() []word {
	return slices.DeleteFunc([]word{in.What, in.Handle, in.Message, word(in.File)}, func(w word) bool { return w == "" })
}
