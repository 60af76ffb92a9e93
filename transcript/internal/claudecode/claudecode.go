// Package claudecode reads and writes sessions of Claude Code.
//
// Claude Code appends a line for every event of a session to
// ~/.claude/projects/PROJECT/SESSION.jsonl. The format is not documented; this description is
// based on published sessions of versions 2.0 to 2.1.39 and on other programs that read them.
//
//   - Lines of type user and assistant hold a message as Anthropic's API has it. A turn of
//     the assistant is one line for each of its blocks; they share message.id.
//   - Lines have a uuid, and parentUuid names the line that they follow; together they are a
//     tree. Going back in the user interface, or clearing the context, starts another branch,
//     and the old one remains in the file.
//   - A compaction is a line of type system, subtype compact_boundary, without parent. It
//     names in logicalParentUuid the line that it follows. The summary is the next line, of
//     type user with isCompactSummary. Newer versions keep some of the messages before; they
//     are listed in compactMetadata.
//   - Lines with isSidechain belong to a subagent, and are the conversation only of a file that has no others. Lines of other types
//
// belong to the user
//
//	interface, or are notes that Claude Code turns into reminders when it sends them (type
//	attachment); they are ignored.
//
// The conversation is the branch that ends with the last line of the file, because Claude Code resumes that one.
// (Newer versions record another leaf if the user went back and left without a message; that record is ignored.) A
// compaction is imported as a condensation that hides the messages before it. Lines that are not part of the
// conversation are kept in the file.
package claudecode

import (
	"fmt"
	"iter"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "claudecode",
	Doc:     "Claude Code session: ~/.claude/projects/*/*.jsonl",
	Vendor:  codec.Anthropic,
	Detect:  detect,
	Read:    read,
	Write:   write,
	Convert: convertFile,
}

// Array is the format of claude -p --output-format json --verbose, and of programs that keep the lines of a session as one array.
var Array = codec.Codec{
	Name: "claudecode-array", Doc: "Claude Code's lines as a JSON array", Tool: "Claude Code as a JSON array",
	Vendor: codec.Anthropic, Read: read,
	Detect: func(data []byte) bool {
		return isArray(data) && detectIn(rawjson.Elements(data[rawjson.SkipSpace(data, 0):]))
	},
}

func isArray(data []byte) bool { return rawjson.IsArray(data[rawjson.SkipSpace(data, 0):]) }

func detect(data []byte) bool { return detectIn(jsonl.Head(data, 100)) }

// detectIn looks for a line with a message, or one of a kind that only Claude
// Code writes.
func detectIn(lines iter.Seq[[]byte]) bool {
	for raw := range lines {
		var kind, message, uuid, leaf, session []byte
		rawjson.Pick(raw, []string{"type", "message", "uuid", "leafUuid", "sessionId", "messageId"},
			&kind, &message, &uuid, &leaf, &session, &session)
		switch rawjson.Text(kind) {
		case "":
			return false
		case "user", "assistant":
			return rawjson.Field(message, "content") != nil
		case "system":
			if rawjson.IsString(uuid) && session != nil {
				return true
			}
		case "summary", "last-prompt":
			if leaf != nil {
				return true
			}
		case "file-history-snapshot":
			return session != nil
		}
	}
	return false
}

func read(data []byte, f *codec.File) error {
	s, err := parseSession(data)
	if err != nil {
		return err
	}
	s.findBranch()
	f.Warnings = append(f.Warnings, s.warnings...)
	messages, err := s.messages(data)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if l := s.lines[m.Line]; l.model != "" && l.model != synthetic {
			f.Model = l.model
		}
	}
	inserted := map[string]bool{}
	done := 0
	for _, c := range s.compactions(messages) {
		if err := session.Append(f, messages[done:c.begin]); err != nil {
			return err
		}
		done = c.end
		if err := compact(f, &c, messages, inserted); err != nil {
			return err
		}
	}
	if err := session.Append(f, messages[done:]); err != nil {
		return err
	}
	// A summary remains in the file when its compaction is undone, because other lines follow
	// it.
	var places []codec.Placement
	for i := range messages {
		l := &s.lines[messages[i].Line]
		if id := messages[i].ID; !inserted[id] {
			places = append(places, codec.Placement{ID: id, Start: l.At, End: l.At + len(l.Raw)})
		}
	}
	f.Settle(data, places, jsonl.LineBreak(data))
	return nil
}

// synthetic is the model of assistant messages that Claude Code itself wrote.
const synthetic = "<synthetic>"

// compact applies Claude Code's own compaction to the messages so far, and adds its insertions to inserted.
func compact(f *codec.File, c *compaction, messages []session.Message, inserted map[string]bool) error {
	view := f.View()
	edit := core.Edit{}
	after, behind := "", false
	for i := range view {
		id := view[i].ID
		if c.keep[id] {
			behind = true
			if c.keptFirst {
				after = id
			}
			continue
		}
		edit.Hide = append(edit.Hide, id)
		if !behind {
			after = id
		}
	}
	summary := messages[c.begin:c.end]
	if len(view) == 0 {
		return session.Append(f, summary)
	}
	if len(edit.Hide)+len(summary) == 0 {
		return nil
	}
	for i := range summary {
		edit.Insert = append(edit.Insert, core.Insert{After: after, Message: summary[i].Message})
		inserted[summary[i].ID] = true
	}
	err := f.Journal.Condense(history.Condensation{
		ID: c.id, Provider: "claudecode", Trigger: c.trigger, Time: c.time,
		TokensBefore: c.before, TokensAfter: c.after, Edit: edit,
	})
	if err != nil {
		return fmt.Errorf("compaction in line %d: %w", c.line, err)
	}
	return nil
}
