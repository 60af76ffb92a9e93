package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// lacks are the entries that an API does not have, by name, in their order: all others are set.
var lacks = map[API]string{
	Messages: "Extra Joins Seals Stores Chains Sockets Arrays Announces ErrorType loose byMember marginal choices looseEnd noEnd " +
		"divide said forgets",
	Chat: "Extra Apart Joins Texts Signs Seals Stores Chains Sockets Arrays Announces PromptFirst Unnumbered ErrorType Plain loose byMember " +
		"plainIDs fullTexts marginal mark turn answers noEnd frames encoded pinging steps forgets",
	Responses: "Extra Joins Texts Signs Arrays PromptFirst Unnumbered ErrorType byMember plainIDs fullTexts mark choices turn answers " +
		"looseEnd noEnd frames encoded pinging divide said done steps",
	Gemini: "Extra Joins Texts Signs Seals Stores Chains Sockets Announces PromptFirst Unnumbered ErrorType Plain loose byMember plainIDs " +
		"fullTexts mark answers frames encoded ping pinging content said stops done steps",
	Converse: "Texts Signs Seals Stores Chains Sockets Arrays Announces PromptFirst Unnumbered Plain loose marginal choices looseEnd noEnd " +
		"encoded ping pinging divide failed said steps forgets",
}

// Every dialect has every entry, or says that its API has no such thing.
func TestDialects(t *testing.T) {
	if len(dialects) != len(APIs) {
		t.Errorf("%d dialects of %d APIs", len(dialects), len(APIs))
	}
	for _, api := range APIs {
		d := dialects[api]
		if d == nil {
			t.Errorf("%s has no dialect", api)
			continue
		}
		if d.API != api {
			t.Errorf("the dialect of %s calls itself %s", api, d.API)
		}
		var missing []string
		empty(reflect.ValueOf(*d), &missing)
		if lacks := strings.Fields(lacks[api]); !slices.Equal(missing, lacks) {
			t.Errorf("%s: not set are\n%s\nand it is said to lack\n%s", api, strings.Join(missing, " "), strings.Join(lacks, " "))
		}
	}
}

// empty finds the entries that are not set, in their order.
func empty(v reflect.Value, names *[]string) {
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		if f.Kind() == reflect.Struct {
			empty(f, names)
		} else if f.IsZero() {
			*names = append(*names, name)
		}
	}
}
