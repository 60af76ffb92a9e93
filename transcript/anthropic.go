package transcript

import (
	"github.com/condensehq/condense/core"
)

var anthropicCodec = Codec{
	Name:    "anthropic",
	Doc:     "Anthropic Messages: an array of messages, or a request object with messages, system, tools …",
	Vendor:  Anthropic,
	Request: true,
	Detect:  func(data []byte) bool { return vendorOf(data) == Anthropic },
	Read:    readAnthropic,
	Write:   writeAnthropic,
	Convert: convertAnthropic,
}

func writeAnthropic(f *File, out *Output) error {
	writeRecords(f, out, placeSystem(f), true, func(m *core.Message, was []byte) []byte {
		if was != nil {
			return patchMessage(was, m.Parts)
		}
		return encodeAnthropic(m.Role, m.Parts)
	})
	return nil
}

// convertAnthropic writes an array of messages, or an object if there is a system
// prompt.
func convertAnthropic(f *File, out *Output) error {
	turns, system := convert(f, &anthropicWire, out)
	if system != "" {
		out.AddString(`{"system":`)
		out.Add(appendQuoted(nil, system))
		out.AddString(`,"messages":`)
	}
	out.AddString("[")
	for i, m := range messagesOf(turns) {
		if i > 0 {
			out.AddString(",")
		}
		out.Add(encodeAnthropic(m.role, m.parts))
	}
	out.AddString("]")
	if system != "" {
		out.AddString("}")
	}
	out.AddString("\n")
	return nil
}
