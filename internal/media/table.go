package media

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
)

// A Form is how an API writes a medium, and what it costs there. With no Data the API has no such medium.
type Form struct {
	API  string // as in package wire, or what writes such files
	Kind Kind   // unless the media type says another
	Type string // the "type" of the object; empty: any
	// Beside is a member that the object has, too; empty: none is needed.
	Beside string
	// Data is the path of the data from the object: base64 or a data URL. Format is the path of its media type,
	// extension or name, or several of them.
	Data, Format string
	Elsewhere    bool // Data is no data but where it is: an address or an ID
	ByName       bool // the object around says the kind: {"type":"document","source":{…}}
	// Page and Second are the tokens of a page and a second; 0 means the usual ones.
	Page, Second int

	path    []string
	formats [][]string
}

// Costs, in tokens. The gateway corrects them by the vendor's reports.
const (
	// Anthropic charges 1,500 to 3,000 tokens for a page, because it reads the text and an image of it
	// (https://platform.claude.com/docs/en/build-with-claude/pdf-support). Pages of text were measured as 2,100 to
	// 2,480, scans as 1,600 (https://huggingface.co/datasets/JOHNISKING/pdf-token-cost). OpenAI reads both, too.
	pageTokens = 2500
	usualPages = 4
	// Gemini hears 32 tokens a second (https://ai.google.dev/gemini-api/docs/tokens); other models fewer.
	secondOfAudio = 32
	// Gemini sees an image of 258 tokens a second and hears 32, Amazon's Nova sees one of 288
	// (https://docs.aws.amazon.com/nova/latest/userguide/modalities-video.html).
	secondOfVideo = 290
	usualSeconds  = 60
	// The fewest bytes of a second: of speech at 4 kbit/s, of a screen that does not move.
	minAudioRate, minVideoRate = 500, 2000
)

// A sight is how the newest models of a vendor see an image: scaled down to an edge of so many pixels, in square patches, at most so many,
// each of so many tokens.
type sight struct{ patch, edge, most, weight float64 }

// Measured by https://huggingface.co/datasets/JOHNISKING/image-token-cost. Older models see as little as a third of a large image.
var (
	// Claude Opus 4.7 and later by its rule, https://platform.claude.com/docs/en/build-with-claude/vision. It was measured up to
	// 1920 pixels; larger images cost less there (3,000 to 3,900).
	claude = sight{28, 2576, 4784, 1}
	// GPT-5.5 and later, if the request says no detail: measured up to 11,970 patches (GPT-5.5: 9,890).
	gpt = sight{32, anySize, 12_000, 1.2}
	// Gemini 3 sees a patch, whatever the size: https://ai.google.dev/gemini-api/docs/media-resolution.
	sights = map[string]sight{"chat": gpt, "responses": gpt, "gemini": {anySize, anySize, 1, 1120}}
)

// The pixels of no image, and the cost of one of unknown size, such as one at an address.
const anySize, usualImage = 1 << 30, 1600

// Forms has, for each API, a row for each kind of medium; several if it has several ways to write it. A kind that does
// not exist there has a row without data.
//   - messages: Anthropic's blocks image and document, in results of tools, too. A document of plain text has no base64.
//   - chat: OpenAI's parts, and those of servers that copy it: vLLM has audio_url and video_url, OpenRouter video_url. Audio beside a
//     transcript is the assistant's. Audio costs a token for 50 ms, as of the assistant; the user's half
//     (https://developers.openai.com/api/docs/guides/realtime-costs).
//   - responses: items of OpenAI's Responses API, and parts of their content. The last image is a screenshot of a tool.
//   - gemini: Gemini's parts, in responses of functions, too. The media type says the kind. A page is the default of Gemini 3, measured
//     as 560 for pages of any kind (https://ai.google.dev/gemini-api/docs/media-resolution).
//   - converse: blocks of Amazon Bedrock's Converse, in results of tools, too.
//   - mcp, ai-sdk: files of agents, and results of MCP. Data URLs are found everywhere but in prose.
var Forms = sync.OnceValue(func() (all []Form) {
	if err := json.Unmarshal(formsJSON, &all); err != nil {
		panic("media: forms.json: " + err.Error()) // embedded and tested
	}
	return all
})

//go:embed forms.json
var formsJSON []byte

// The members that tell forms apart.
const (
	besideURI        = "uri"
	besideTranscript = "transcript"
)

var (
	// prose are members that are text for the model, whatever is in it.
	prose = map[string]bool{"text": true, "content": true, "output": true, "thinking": true, "arguments": true, "input": true}
	// arguments are members of calls and results that are JSON for the model.
	arguments = map[string]bool{"input": true, "args": true, "arguments": true, "response": true, "json": true, "toolUse": true}
)

// files are the beginnings by which a file is known in a member that no form has: of data URLs, and of the base64 of PNG, JPEG, GIF,
// PDF, RIFF, Ogg, FLAC, MP3, MP4 and WebM.
var files = map[string]Kind{
	"data:":    "",
	"iVBORw0K": Image, "/9j/": Image, `\/9j\/`: Image, "R0lGOD": Image, "JVBERi0": Document, "UklGR": Audio, "T2dnUw": Audio, "ZkxhQ": Audio,
	"SUQz": Audio, "AAAAIGZ0eX": Video, "AAAAHGZ0eX": Video, "AAAAGGZ0eX": Video, "AAAAFGZ0eX": Video, "GkXfo": Video,
}

// An index has the forms by the member that has the medium. Marks are what follows a quote in any of them, by its first
// byte.
type index struct {
	byMember map[string][]*Form
	marks    [256][][]byte
}

var indexed = sync.OnceValue(func() *index {
	x := &index{byMember: map[string][]*Form{}}
	mark := func(s string) { x.marks[s[0]] = append(x.marks[s[0]], []byte(s)) }
	for begin := range files {
		mark(begin)
	}
	for i := range Forms() {
		f := &Forms()[i]
		if f.Data == "" {
			continue
		}
		f.path = strings.Split(f.Data, ".")
		for at := range strings.FieldsSeq(f.Format) {
			f.formats = append(f.formats, strings.Split(at, "."))
		}
		name := f.path[0]
		if x.byMember[name] == nil {
			mark(name + `"`)
		}
		x.byMember[name] = append(x.byMember[name], f)
	}
	return x
})

// sibling returns the form of a medium of another kind in the same API; nil if there is none.
func (f *Form) sibling(k Kind) *Form {
	if f == nil {
		return nil
	}
	for i := range Forms() {
		if s := &Forms()[i]; s.API == f.API && s.Kind == k && s.Data != "" {
			return s
		}
	}
	return nil
}
