package blocks

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// Image returns the image that url refers to, or holds if it is a data URL.
func Image(url string) core.Image {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return core.Image{URL: url}
	}
	kind, data, ok := strings.Cut(rest, ";base64,")
	if !ok || kind == "" || data == "" || strings.Contains(kind, ";") {
		return core.Image{URL: url}
	}
	return core.Image{MediaType: kind, Data: data}
}

// URL is the opposite of imageFromURL.
func URL(img core.Image) string {
	if img.URL != "" {
		return img.URL
	}
	return "data:" + img.MediaType + ";base64," + img.Data
}
