package config

import (
	"maps"
	"net"
	"path/filepath"
	"slices"
	"time"
)

// ServeValues are the section serve: the gateway between agents and the APIs of vendors.
type ServeValues struct {
	Listen     string                 `json:"listen,omitempty"`
	TLS        *TLSValues             `json:"tls,omitempty"`
	Proxied    *bool                  `json:"behind_proxy,omitempty"`
	Admin      *AdminValues           `json:"admin,omitempty"`
	Upstreams  map[string]string      `json:"upstreams,omitempty"` // base URLs by name; of other names than anthropic and openai after what they speak, and a +
	Compaction *CompactionValues      `json:"compaction,omitempty"`
	Store      string                 `json:"store,omitempty"` // a path, the address of a PostgreSQL database, or [StoreMemory]
	TokenEnv   string                 `json:"token_env,omitempty"`
	TokenFile  string                 `json:"token_file,omitempty"`
	Tokens     string                 `json:"tokens,omitempty"`
	Retention  *RetentionValues       `json:"retention,omitempty"`
	KeyFile    string                 `json:"key_file,omitempty"`
	Audit      string                 `json:"audit,omitempty"`
	Limits     *LimitValues           `json:"limits,omitempty"`
	Tenants    map[string]LimitValues `json:"tenants,omitempty"`
	Observe    *bool                  `json:"observe,omitempty"`
	Account    string                 `json:"account,omitempty"` // a model, [AccountOff], [AccountClient] or [AccountPlan]
	Shadow     []string               `json:"shadow,omitzero"`
	Record     string                 `json:"record,omitempty"`   // a folder, or [RecordOff]
	MaxBody    *int64                 `json:"max_body,omitempty"` // bytes
	Deadline   string                 `json:"deadline,omitempty"`
	Drain      string                 `json:"drain,omitempty"`
	DrainDelay string                 `json:"drain_delay,omitempty"`
	Ingest     *IngestValues          `json:"ingest,omitempty"`
	Recall     *RecallValues          `json:"recall,omitempty"`
	Epoch      *EpochValues           `json:"epoch,omitempty"`
	Modes      []ServeRule            `json:"modes,omitzero"`
}

// AdminValues are the settings of the gateway's own pages.
type AdminValues struct {
	Listen string `json:"listen,omitempty"`
}

// TLSValues name the files of a certificate.
type TLSValues struct {
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
}

// LimitValues say what a tenant may use. 0 is no limit, nil is not set.
type LimitValues struct {
	Requests    *int64   `json:"requests,omitempty"`     // per minute
	Concurrent  *int64   `json:"concurrent,omitempty"`   // at the same time
	Bytes       *int64   `json:"bytes,omitempty"`        // of requests, per minute
	ModelEpochs *int64   `json:"model_epochs,omitempty"` // per day
	Cost        *float64 `json:"cost,omitempty"`         // US dollars per day
}

// ServeLimits are what a tenant may use, by the fields of [LimitValues]. 0 is no limit.
type ServeLimits struct {
	Requests, Concurrent, Bytes, ModelEpochs int64
	Cost                                     float64
}

// over returns l with what v sets.
func (v LimitValues) over(l ServeLimits) ServeLimits {
	for to, from := range map[*int64]*int64{&l.Requests: v.Requests, &l.Concurrent: v.Concurrent, &l.Bytes: v.Bytes, &l.ModelEpochs: v.ModelEpochs} {
		if from != nil {
			*to = *from
		}
	}
	if v.Cost != nil {
		l.Cost = *v.Cost
	}
	return l
}

// RetentionValues say how long the store keeps conversations.
type RetentionValues struct {
	Age  string `json:"age,omitempty"`
	Size *int64 `json:"size,omitempty"` // bytes
}

// CompactionValues say who answers an agent that asks a vendor to compact its conversation.
type CompactionValues struct {
	OpenAI string `json:"openai,omitempty"` // auto, upstream or gateway
}

// IngestValues say what happens to a tool result before it is sent for the first time.
type IngestValues struct {
	Lossless  *bool `json:"lossless,omitempty"`
	MaxResult *int  `json:"max_result,omitempty"` // tokens, 0 for no limit
}

// RecallValues say how agents get back what was condensed.
type RecallValues struct {
	MCP       *bool  `json:"mcp,omitempty"`
	Tool      *bool  `json:"tool,omitempty"`
	MaxSize   *int64 `json:"max_size,omitempty"`   // bytes
	MaxResult *int   `json:"max_result,omitempty"` // tokens, 0 for no limit
}

// EpochValues say when everything older is condensed, and how far.
type EpochValues struct {
	Target  *float64 `json:"target,omitempty"` // percent of the window, 0 for that of the profile
	Cold    *bool    `json:"cold,omitempty"`
	Payback *bool    `json:"payback,omitempty"`
	MinSize *int     `json:"min_size,omitempty"` // tokens of the conversation, 0 for half of the most, at most 60,000
	Risk    *float64 `json:"risk,omitempty"`     // percent of what the conversation has cost, 0 for 4
}

// A ServeRule chooses the profile or the mode of requests. An empty condition always holds.
type ServeRule struct {
	Model   string `json:"model,omitempty"`  // of the request; * is any text
	Agent   string `json:"agent,omitempty"`  // its name
	System  string `json:"system,omitempty"` // a phrase in the system prompt
	Mode    string `json:"mode,omitempty"`   // one of Mode and Profile is set
	Profile string `json:"profile,omitempty"`
}

// Serve has the values of the section serve, complete. It shares no memory with the
// configuration.
type Serve struct {
	Listen    string // host and port
	Admin     string // host and port of the gateway's own pages; empty if none are set
	Cert, Key string // absolute paths of the certificate and its key; empty for none
	Proxied   bool   // clients reach it through a reverse proxy only
	// Upstreams are base URLs by name: of "anthropic" and "openai" as they are, of other names after what they speak, as in
	// openai+https://openrouter.ai/api/v1.
	Upstreams  map[string]string
	Compaction map[string]string // of "openai": auto, upstream or gateway
	// Store is the absolute path of a file, the address of a PostgreSQL database, postgres://…, or [StoreMemory]. It is empty if none is set and the
	// user has no home folder.
	Store string
	// TokenEnv is the variable and TokenFile the absolute path of the file with the token that
	// clients must send, Tokens that of the file with those of tenants. At most one is set.
	TokenEnv, TokenFile, Tokens string
	KeyFile                     string                 // absolute path of the file with the server key; empty for that in the store
	KeepFor                     time.Duration          // conversations since their last use
	KeepBytes                   int64                  // of conversations
	Audit                       string                 // absolute path of a file; empty for none
	Limits                      ServeLimits            // of tenants that are not in Tenants
	Tenants                     map[string]ServeLimits // complete; nil if there are none
	Observe                     bool
	Account                     string        // the model that writes accounts of conversations, [AccountClient] or [AccountPlan]; empty for none
	Shadow                      []string      // profiles that condense for comparison; nil for none
	Record                      string        // absolute path of the folder; empty to record nothing
	MaxBody                     int64         // bytes
	Deadline, Drain             time.Duration // positive
	DrainDelay                  time.Duration // 0 for none
	Lossless                    bool          // ingest
	MaxResult                   int           // ingest: tokens, 0 for no limit
	RecallMCP                   bool
	RecallTool                  bool
	RecallMaxSize               int64       // bytes
	RecallMaxResult             int         // tokens, 0 for no limit
	Target                      float64     // of an epoch: percent of the window, 0 for that of the profile
	Cold, Payback               bool        // reasons for an epoch
	MinSize                     int         // tokens of the conversation, for these reasons; 0 for half of the most, at most 60,000
	Risk                        float64     // of payback: percent of what the conversation has cost, 0 for 4
	Rules                       []ServeRule // the first that holds decides
}

// Serve returns the section serve.
func (c *Config) Serve() Serve {
	v := c.values.Serve // complete: the defaults are its lowest layer
	s := Serve{
		Listen:     v.Listen,
		Admin:      or(v.Admin).Listen,
		Upstreams:  maps.Clone(v.Upstreams),
		Compaction: map[string]string{"openai": v.Compaction.OpenAI},
		Store:      either(v.Store, defaultStore(environment(c.opts.Env))),
		TokenEnv:   v.TokenEnv, TokenFile: v.TokenFile, Tokens: v.Tokens, KeyFile: v.KeyFile, Audit: v.Audit,
		Cert: or(v.TLS).Cert, Key: or(v.TLS).Key, Proxied: *v.Proxied, Limits: or(v.Limits).over(ServeLimits{}),
		Observe: *v.Observe, Shadow: slices.Clone(v.Shadow), Record: v.Record, MaxBody: *v.MaxBody,
		Lossless: *v.Ingest.Lossless, MaxResult: *v.Ingest.MaxResult,
		RecallMCP: *v.Recall.MCP, RecallTool: *v.Recall.Tool, RecallMaxSize: *v.Recall.MaxSize, RecallMaxResult: *v.Recall.MaxResult,
		Target: *v.Epoch.Target, Cold: *v.Epoch.Cold, Payback: *v.Epoch.Payback, MinSize: *v.Epoch.MinSize, Risk: *v.Epoch.Risk,
		Rules: slices.Clone(v.Modes),
	}
	for name, limits := range v.Tenants {
		if s.Tenants == nil {
			s.Tenants = map[string]ServeLimits{}
		}
		s.Tenants[name] = limits.over(s.Limits)
	}
	if s.Account = v.Account; s.Account == AccountOff {
		s.Account = ""
	}
	if s.Record == RecordOff {
		s.Record = ""
	}
	s.Deadline, _ = time.ParseDuration(v.Deadline) // checked when it was read
	s.Drain, _ = time.ParseDuration(v.Drain)
	host, _, err := net.SplitHostPort(s.Listen)
	const delay = 5 * time.Second // balancers ask every few seconds, or hear of it with some delay
	if s.DrainDelay, _ = time.ParseDuration(v.DrainDelay); v.DrainDelay == "" && err == nil && !loopback(host) {
		s.DrainDelay = delay
	}
	s.KeepFor, _ = time.ParseDuration(v.Retention.Age)
	s.KeepBytes = *v.Retention.Size
	return s
}

// or returns what a pointer points to, or nothing of it: an object without defaults is absent until it is set.
func or[T any](v *T) T {
	if v == nil {
		return *new(T)
	}
	return *v
}

// defaultStore is a file in the folder for state of the XDG Base Directory Specification, on
// every system.
func defaultStore(env environment) string {
	dir := env.get("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home := either(env.get("HOME"), env.get("USERPROFILE"))
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "condense", "serve.db")
}
