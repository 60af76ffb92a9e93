package remote

import (
	"net/http"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// A Vendor is how the API of one vendor differs from another's. All fields but Optional and
// Clean are required.
type Vendor struct {
	// BaseURL is where the vendor's own service is, KeyEnv the environment variable in
	// which its key usually is.
	BaseURL, KeyEnv string
	// Path is what follows the base URL.
	Path string
	// Sign adds the key and what else the API wants in the header. Key is empty if none
	// is needed.
	Sign func(header http.Header, key string)
	// Body returns the request for p, which asks for a stream.
	Body func(p *model.Prompt, o *Options, refused Refused) ([]byte, error)
	// Optional are parameters of the request that not every server knows. When one is
	// refused, the request is sent again, and Body leaves it out from then on.
	Optional []string
	// Event adds what an event of the stream says to a reply; its name may be empty. An
	// error means that data is not what the API promises, unless it is one of [Reported].
	Event func(r *Reply, name string, data []byte) error
	// Whole adds an answer that came in one piece, from a server that does not stream.
	Whole func(r *Reply, data []byte) error
	// Clean returns the text of an answer without what is not its own.
	Clean func(text string) string
}

// Refused says whether the server has refused a parameter of [Vendor.Optional].
type Refused func(parameter string) bool

// A Reply is an answer as far as it has been read.
type Reply struct {
	Text strings.Builder
	// Ended says that the model has said why it stopped, Done that nothing follows. A
	// stream that ends before the one or the other was cut.
	Ended, Done bool
	Truncated   bool
	// Silence says why there is no text or why what there is does not count: "it called
	// the tool read_file", "it refused". Refused says that text does not count.
	Silence string
	Refused bool
	// Usage is what the vendor reports; Calls and costs are not its own. Metered says that
	// it has reported anything.
	Usage   core.Usage
	Metered bool
	// Written are the tokens of Usage.InputTokens that were written to a cache, for which
	// some vendors charge more.
	Written int

	sent int // bytes of the request
}
