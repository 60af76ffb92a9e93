package live

import (
	"net/http"

	"github.com/condensehq/condense/internal/live/payload"
)

// headroomPaths are the paths of headroom's proxy. The gateway answers them itself: no vendor has them.
var headroomPaths = map[string]handler{
	"/v1/compress": (*Gateway).serveCompress,
	"/v1/usage":    (*Gateway).serveUsage,
	"/health":      (*Gateway).serveHealth,
	"/livez":       (*Gateway).serveHealth,
	"/readyz": func(g *Gateway, w http.ResponseWriter, r *http.Request, _ *settings, _ *target) {
		g.pages.ServeReady(w, r)
	},
}

// serveHealth answers that the process is alive.
func (g *Gateway) serveHealth(w http.ResponseWriter, _ *http.Request, _ *settings, _ *target) {
	payload.WriteJSON(w, []byte(`{"status":"healthy","service":"condense"}`))
}
