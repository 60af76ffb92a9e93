package caller_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire"
	pb "github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/registry"
)

// TestServerRefuses has a host that does not keep to the protocol either.
func TestServerRefuses(t *testing.T) {
	start := func(n int64) *pb.CondenseRequest {
		return &pb.CondenseRequest{Kind: &pb.CondenseRequest_Start{Start: &pb.Start{MessageCount: n}}}
	}
	messages := func(ids ...string) *pb.CondenseRequest {
		m := &pb.Messages{}
		for _, id := range ids {
			m.Messages = append(m.Messages, &pb.Message{Id: id, Role: "user"})
		}
		return &pb.CondenseRequest{Kind: &pb.CondenseRequest_Messages{Messages: m}}
	}
	fragment := func(data string, last bool) *pb.CondenseRequest {
		return &pb.CondenseRequest{Kind: &pb.CondenseRequest_Fragment{Fragment: &pb.Fragment{Data: []byte(data), Last: last}}}
	}
	later := unknown(&pb.CondenseRequest{})
	srv := wire.NewServer(provided(coretest.Keeps()), nil)
	rpc := pb.NewProviderServiceClient(connect(t, srv.Register))
	if _, err := rpc.Configure(t.Context(), &pb.ConfigureRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		send []*pb.CondenseRequest
		want string // empty: the call is answered
	}{
		{"empty conversation", []*pb.CondenseRequest{start(0)}, ""},
		{"what came later", []*pb.CondenseRequest{start(2), later, messages("a"), unknown(messages("b"))}, ""},
		{"in fragments", []*pb.CondenseRequest{fragment("\x0a\x02", false), fragment("\x08", false), fragment("\x00", true)}, ""},
		{"no start", []*pb.CondenseRequest{messages("a")}, "does not begin with start"},
		{"nothing", []*pb.CondenseRequest{later}, "does not begin with start"},
		{"too many messages", []*pb.CondenseRequest{start(1), messages("a", "b")}, "2 messages came; 1 were announced"},
		{"fewer than none", []*pb.CondenseRequest{start(-1)}, "0 messages came; -1 were announced"},
		{"the same ID", []*pb.CondenseRequest{start(2), messages("a"), messages("a")}, `message 1 has the ID "a"`},
		{"no ID", []*pb.CondenseRequest{start(1), messages("")}, `message 0 has the ID ""`},
		{"fragment is missing", []*pb.CondenseRequest{fragment("\x0a", false), start(0)}, "a fragment is missing"},
		{"fragments of garbage", []*pb.CondenseRequest{fragment("\xff", true)}, "unexpected EOF"},
		{"fragments of fragments", []*pb.CondenseRequest{fragment("\x22\x00", true)}, "a fragment of fragments"},
		{"empty fragment", []*pb.CondenseRequest{fragment("", false)}, "a fragment that is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := rpc.Condense(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range tt.send {
				if err := s.Send(m); err != nil {
					break // the answer is there already
				}
			}
			var last *pb.CondenseResponse
			for {
				m, err := s.Recv()
				if err != nil {
					if tt.want == "" && (last.GetDone() == nil || status.Code(err) != codes.FailedPrecondition && err.Error() != "EOF") {
						t.Errorf("got %v, %v; want an answer", last, err)
					}
					if tt.want != "" && (status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tt.want)) {
						t.Errorf("got error %v; want %q", err, tt.want)
					}
					return
				}
				last = m
			}
		})
	}
}

// TestGoroutineAfterCall: what a provider leaves running when it has answered does no harm to this
// call or the next.
func TestGoroutineAfterCall(t *testing.T) {
	var left sync.WaitGroup
	c := serve(t, strategy(func(ctx context.Context, req *core.Request, env registry.Env) (*core.Result, error) {
		counter := req.Counter
		left.Go(func() {
			for i := range 200 {
				env.Logger.InfoContext(ctx, "still here")
				core.Progress(ctx, 0.1, "still here")
				counter.Count(core.Text(strconv.Itoa(i)))
			}
		})
		return &core.Result{Messages: req.Messages}, nil
	}), nil)
	for range 20 {
		if _, err := c.Condense(t.Context(), coretest.HalfRequest(chat(10))); err != nil {
			t.Error(err)
		}
	}
	left.Wait()
}
