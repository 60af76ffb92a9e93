package remote

import (
	"net/http"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// A Vendor describes the differences between the vendors' APIs. All fields except Optional,
// Compaction, Embedding and Clean are required.
type Vendor struct {
	// BaseURL is where the vendor's own service is, KeyEnv the environment variable in
	// which its key usually is.
	BaseURL, KeyEnv string
	// Path is appended to the base URL.
	Path string
	// Sign adds the key and the API's other headers. Key is empty if none is needed.
	Sign func(header http.Header, key string)
	// Body returns the request for p, which asks for a stream.
	Body func(p *model.Prompt, o *Options, refused Refused) ([]byte, error)
	// Optional are parameters of the request that some servers refuse. When one is refused,
	// the request is sent again, and Body omits it from then on.
	Optional []string
	// Event adds the content of an event of the stream to a reply; its name may be empty. An error means that data
	// violates the API's format, unless it is one of [Reported].
	Event func(r *Reply, name string, data []byte) error
	// Whole adds an answer from a server that does not stream.
	Whole func(r *Reply, data []byte) error
	// Compaction, if the vendor can compact, is the request for it: the text of its reply is the JSON array that the
	// vendor returned. Compacts is the API whose requests accept the array.
	Compaction *Vendor
	Compacts   string
	// Embedding, if the vendor has it, is the request for vectors of the messages of a prompt, one text each: the text of its reply is a JSON
	// array of arrays of numbers.
	Embedding *Vendor
	// Clean removes text that is not part of the answer.
	Clean func(text string) string
}

// Refused says whether the server has refused a parameter of [Vendor.Optional].
type Refused func(parameter string) bool

// A Reply is the part of an answer that was read so far.
type Reply struct {
	Text strings.Builder
	// Ended means that the model has reported why it stopped, Done that nothing follows. A
	// stream that ends before both was interrupted.
	Ended, Done bool
	Truncated   bool
	// Silence says why there is no text, or why it is ignored: "it called the tool
	// read_file", "it refused". Refused means that text is ignored.
	Silence string
	Refused bool
	// Usage is the vendor's report, without Calls and costs. Metered means that it has reported anything.
	Usage   core.Usage
	Metered bool
	// Written are the tokens of Usage.InputTokens that were written to a cache, for which
	// some vendors charge more.
	Written int

	sent int // bytes of the request
}
