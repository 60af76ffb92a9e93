package wire

import (
	"encoding/hex"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// A Call is a call of the gateway's tool.
type Call struct {
	ID        string // "" in APIs whose calls may have none
	Arguments []byte // JSON, as the model wrote it

	key string // see [keyOf]
}

// isCall reports whether a part is a call that a client answers.
func isCall(api API, raw []byte) bool {
	kind := rawjson.Text(rawjson.Field(raw, "type"))
	return api == Chat || api == Messages && kind == "tool_use" || api == Responses && strings.HasSuffix(kind, "_call") && rawjson.Field(raw, "call_id") != nil ||
		api == Gemini && functionCall(raw) != nil || api == Converse && rawjson.Field(raw, toolUse) != nil
}

// callOf returns the ID and the arguments of a call.
func callOf(api API, raw []byte) (id string, arguments []byte) {
	switch api {
	case Messages:
		return rawjson.Text(rawjson.Field(raw, "id")), rawjson.Field(raw, "input")
	case Chat:
		return rawjson.Text(rawjson.Field(raw, "id")), []byte(rawjson.Text(rawjson.Field(rawjson.Field(raw, "function"), "arguments")))
	case Gemini:
		f := functionCall(raw)
		return rawjson.Text(rawjson.Field(f, "id")), rawjson.Field(f, "args")
	case Converse:
		c := rawjson.Field(raw, toolUse)
		return rawjson.Text(rawjson.Field(c, "toolUseId")), rawjson.Field(c, "input")
	case Responses:
	}
	return rawjson.Text(rawjson.Field(raw, "call_id")), []byte(rawjson.Text(rawjson.Field(raw, "arguments")))
}

// keyOf identifies a call among others of its answer: by its ID or, in APIs whose calls may have none, by its content.
func keyOf(api API, raw []byte) string {
	switch api {
	case Gemini:
		f := functionCall(raw)
		return nameKey(rawjson.Field(f, "name"), rawjson.Field(f, "args"))
	case Messages, Chat, Responses, Converse:
	}
	id, _ := callOf(api, raw)
	return id
}

// nameKey returns the name of a function and a hash of its arguments that does not depend on how they are written.
func nameKey(name, arguments []byte) string {
	if !rawjson.IsObject(arguments) {
		arguments = []byte("{}")
	}
	m, _ := parseMessage(Gemini, rawjson.Append(nil, `{"parts":[{"functionCall":{"name":"f","args":?}}]}`, arguments))
	return rawjson.Text(name) + ":" + hex.EncodeToString(m.Hash[:])
}
