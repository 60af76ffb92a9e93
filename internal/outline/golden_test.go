package outline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/testkit/golden"
)

// Roo's parser answers these texts in place of an error.
var rooErrors = []string{"This file does not exist", "do not have permission", "Unsupported file type:"}

type foldInput struct {
	CWD           string                     `json:"cwd"`
	FilePaths     []string                   `json:"filePaths"`
	MaxCharacters *float64                   `json:"maxCharacters"`
	Definitions   map[string]json.RawMessage `json:"definitions"`
}

// define answers what the recorded stub of Roo's parser did.
func (in foldInput) define(name string) (string, error) {
	abs := func(name string) string {
		if path.IsAbs(name) {
			return path.Clean(name)
		}
		return path.Join(in.CWD, name)
	}
	for key, raw := range in.Definitions {
		if abs(key) != abs(name) {
			continue
		}
		if bytes.HasPrefix(raw, []byte("{")) {
			return "", errors.New("throws")
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", err
		}
		for _, e := range rooErrors {
			if strings.Contains(text, e) {
				return "", errors.New(text)
			}
		}
		return text, nil
	}
	return "", errors.New(rooErrors[0])
}

// TestPackGolden holds the format and the budget against Roo's.
func TestPackGolden(t *testing.T) {
	t.Parallel()
	type output struct {
		Content        string   `json:"content"`
		Sections       []string `json:"sections"`
		FilesProcessed int      `json:"filesProcessed"`
		FilesSkipped   int      `json:"filesSkipped"`
		CharacterCount int      `json:"characterCount"`
	}
	golden.Run(t, "generateFoldedFileContext", func(in foldInput) (any, error) {
		chars := outline.DefaultChars
		if in.MaxCharacters != nil {
			chars = int(*in.MaxCharacters)
		}
		f := outline.Pack(in.FilePaths, chars, in.define)
		sections := []string{}
		for _, b := range f.Blocks {
			sections = append(sections, b.Text)
		}
		content := strings.Join(sections, "\n")
		return output{
			Content:        content,
			Sections:       sections,
			FilesProcessed: len(f.Blocks),
			FilesSkipped:   len(f.Skipped),
			CharacterCount: len(utf16.Encode([]rune(content))),
		}, nil
	}, nil)
}
