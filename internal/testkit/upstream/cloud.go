package upstream

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// cloudVersion matches the versions that clients of Vertex AI and of Amazon Bedrock send: the SDKs' are plain dates.
var cloudVersion = regexp.MustCompile(`^(vertex-|bedrock-)?20\d\d-\d\d-\d\d$`)

// checkCloud returns the rule of a cloud that a request breaks: where the model is, and which credentials and versions
// it needs.
func (v *Vendor) checkCloud(p *prompt, r *Record) *refusal {
	h := r.Header
	query, err := url.ParseQuery(r.Query)
	if err != nil {
		return invalid("query", "The query is invalid.")
	}
	switch r.Cloud {
	case Bedrock:
		return v.checkBedrock(p, r)
	case Vertex:
		switch {
		case r.API == Gemini:
		case !strings.HasPrefix(h.Get("Authorization"), "Bearer ") || h.Get("X-Api-Key") != "":
			return &refusal{status: http.StatusUnauthorized, rule: "key", kind: "authentication_error", text: "Request had invalid authentication credentials. Expected OAuth 2 access token."}
		case !cloudVersion.MatchString(text(p.doc["anthropic_version"])):
			return invalid("version", "anthropic_version: Field required")
		case !r.route.count && p.doc["model"] != nil:
			return invalid("field", "model: Extra inputs are not permitted")
		case p.stream != r.route.stream:
			return invalid("field", "stream: the path and the body ask for different answers")
		}
	case Azure:
		if query.Get("api-version") == "" {
			return &refusal{status: http.StatusNotFound, rule: "version", kind: "404", text: "Resource not found"}
		}
		fallthrough
	case Foundry:
		if h.Get("Api-Key") == "" && h.Get("X-Api-Key") == "" && h.Get("Authorization") == "" {
			return &refusal{
				status: http.StatusUnauthorized, rule: "key", kind: "401",
				text: "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
			}
		}
	}
	return nil
}

// cloudToken is a token of Google Cloud by its shape.
var cloudToken = map[string]string{"Authorization": "Bearer " + "ya29." + "dummy"}

// path returns the path of a request, and the headers of a client of the cloud.
func (c *Client) path() (path string, header map[string]string) {
	switch c.API {
	case Gemini:
		verb := ":generateContent"
		if c.Stream {
			verb = ":streamGenerateContent?alt=sse"
		}
		if c.Array {
			verb = ":streamGenerateContent"
		}
		if c.Cloud == Vertex {
			return "/v1beta1/projects/p/locations/us-east5/publishers/google/models/" + c.Model + verb, cloudToken
		}
		return "/v1beta/models/" + c.Model + verb, map[string]string{"X-Goog-Api-Key": "dummy"}
	case Messages, Chat, Responses, Converse:
	}
	switch c.Cloud {
	case Bedrock:
		verb := map[bool]string{false: "/invoke", true: "/invoke-with-response-stream"}[c.Stream]
		if c.API == Converse {
			verb = map[bool]string{false: "/converse", true: "/converse-stream"}[c.Stream]
		}
		return "/model/" + url.PathEscape(c.Model) + verb, map[string]string{"Authorization": "Bearer ABSK" + "dummy"}
	case Vertex:
		verb := ":rawPredict"
		if c.Stream {
			verb = ":streamRawPredict"
		}
		return "/v1/projects/p/locations/us-east5/publishers/anthropic/models/" + c.Model + verb, cloudToken
	case Azure:
		return "/azure/openai/deployments/" + c.Model + "/chat/completions?api-version=2025-04-01-preview", map[string]string{"Api-Key": "dummy"}
	case Foundry:
		return "/azure/anthropic/v1/messages", map[string]string{"X-Api-Key": "dummy"}
	}
	return map[API]string{Messages: "/v1/messages", Chat: "/v1/chat/completions", Responses: "/v1/responses"}[c.API], nil
}
