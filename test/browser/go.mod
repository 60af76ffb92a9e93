// What drives a real browser, which only this test needs: a module of its own keeps it out
// of the module graph of everybody else.
module github.com/condensehq/condense/test/browser

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.22.1
	github.com/condensehq/condense v0.0.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/gofrs/flock v0.13.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/pkoukk/tiktoken-go-loader v0.0.2 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/condensehq/condense => ../..
