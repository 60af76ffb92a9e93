package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/remote/anthropic"
	"github.com/condensehq/condense/internal/remote/openai"
	"github.com/condensehq/condense/internal/testkit/modeltest"
)

// TestSchema: a schema, a temperature and an effort are sent by the parameters that the vendors document, an answer that is not JSON is
// none, and the error of a model that lacks one of them says so.
func TestSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"facts":{"type":"array","items":{"type":"string"}}},"required":["facts"],"additionalProperties":false}`
	cool := 0.25
	for _, tt := range []struct {
		vendor
		want, refusal string
	}{
		{
			vendors[0], `"temperature":0.25,"output_config":{"format":{"type":"json_schema","schema":` + schema + `},"effort":"low"}`,
			`{"type":"error","error":{"type":"invalid_request_error","message":"output_config.format: 'model-1' does not support output format."}}`,
		},
		{
			vendors[1], `"temperature":0.25,"reasoning_effort":"low","response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + schema + `}}`,
			`{"error":{"message":"Unsupported value: 'temperature' does not support 0.25 with this model.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := *prompt
			p.Schema, p.Temperature, p.Effort = schema, &cool, "low"
			s := modeltest.Serve(t, modeltest.Stream(tt.says(`{"facts":[]}`)...))
			answer, err := open(t, tt.vendor, options(s.URL)).Generate(t.Context(), &p)
			if err != nil || answer.Text != `{"facts":[]}` {
				t.Fatalf("got %+v, error %v", answer, err)
			}
			if body := string(s.Requests()[0].Body); !strings.Contains(body, tt.want) {
				t.Errorf("sent %s; want %s in it", body, tt.want)
			}
			if _, err := open(t, tt.vendor, options(modeltest.Serve(t, modeltest.Stream(tt.says(`Facts: none`)...)).URL)).Generate(t.Context(), &p); err == nil ||
				!strings.Contains(err.Error(), "not JSON") {
				t.Errorf("text in place of JSON: got error %v", err)
			}
			refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(tt.refusal))
			}))
			defer refusing.Close()
			if _, err := open(t, tt.vendor, options(refusing.URL)).Generate(t.Context(), &p); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("a model that cannot: got error %v", err)
			}
			if _, err := open(t, tt.vendor, options(refusing.URL)).Generate(t.Context(), prompt); errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("a prompt that asks for none of it: got error %v", err)
			}
		})
	}
}

// TestEmbeddings: vectors come in the order of the texts whatever the server does, in several requests, with their cost; and nothing that is
// no number is taken for one.
func TestEmbeddings(t *testing.T) {
	t.Setenv(keyEnv, key)
	answer := func(texts []string) string {
		var data []string
		for i := range texts { // in the wrong order
			n := len(texts) - 1 - i
			data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d.5,-1e-2]}`, n, len(texts[n])))
		}
		return fmt.Sprintf(`{"object":"list","data":[%s],"model":"m","usage":{"prompt_tokens":%d,"total_tokens":%d}}`, strings.Join(data, ","), len(texts), len(texts))
	}
	var sizes []int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || ask.Model != "model-1" || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("asked %s %+v, %v", r.URL.Path, ask, err)
		}
		sizes = append(sizes, len(ask.Input))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer(ask.Input)))
	}))
	defer s.Close()
	c, err := openai.New(options(s.URL + "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, 150)
	for i := range texts {
		texts[i] = strings.Repeat("x", i)
	}
	vectors, usage, err := c.Embed(t.Context(), texts)
	if err != nil || len(vectors) != 150 || vectors[149][0] != 149.5 || vectors[1][1] != -0.01 {
		t.Fatalf("got %d vectors, error %v", len(vectors), err)
	}
	if usage.Calls != len(sizes) || usage.InputTokens != 150 || usage.Unpriced != 0 || usage.USD < 149e-6 || usage.USD > 151e-6 {
		t.Errorf("%v requests: usage %+v", sizes, usage)
	}
	for name, body := range map[string]string{
		"null":      `{"data":[{"index":0,"embedding":[1,null]}]}`,
		"NaN":       `{"data":[{"index":0,"embedding":[NaN]}]}`,
		"too large": `{"data":[{"index":0,"embedding":[1e300]}]}`,
		"base64":    `{"data":[{"index":0,"embedding":"AAAA"}]}`,
		"too many":  `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`,
		"none":      `{"data":[]}`,
		"an error":  `{"error":{"message":"the model does not support embeddings"}}`,
	} {
		bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		}))
		c, err := openai.New(options(bad.URL + "/v1"))
		if err != nil {
			t.Fatal(err)
		}
		if vectors, _, err := c.Embed(t.Context(), []string{"x"}); err == nil {
			t.Errorf("%s: got %v", name, vectors)
		}
		bad.Close()
	}
	none, err := anthropic.New(options(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := none.Embed(t.Context(), texts); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an API without vectors: got error %v", err)
	}
}
