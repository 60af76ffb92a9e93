package apimessage

import (
	"encoding/base64"
	"strings"

	"github.com/condensehq/condense/core"
)

// ImageOf returns the image that url refers to, or holds if it is a data URL.
func ImageOf(url string) core.Image {
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

// ImageURL is the opposite of ImageOf.
func ImageURL(img core.Image) string {
	if img.URL != "" {
		return img.URL
	}
	return "data:" + img.MediaType + ";base64," + img.Data
}

// imageTypes are the kinds of images that both vendors take, and how each begins in
// base64.
var imageTypes = []struct{ mediaType, magic string }{
	{"image/png", "iVBORw0KGgo"},
	{"image/jpeg", "/9j/"},
	{"image/gif", "R0lGOD"},
	{"image/webp", "UklGR"},
}

// Sendable returns img as a vendor's API would take it; false if none would.
func Sendable(img core.Image) (core.Image, bool) {
	if img.URL != "" {
		return img, strings.HasPrefix(img.URL, "https://") || strings.HasPrefix(img.URL, "http://")
	}
	if _, err := base64.StdEncoding.DecodeString(img.Data); err != nil || img.Data == "" {
		return img, false
	}
	for _, t := range imageTypes {
		if img.MediaType == t.mediaType || img.MediaType == "" && strings.HasPrefix(img.Data, t.magic) {
			img.MediaType = t.mediaType
			return img, true
		}
	}
	return img, false
}
