package condense

import "github.com/condensehq/condense/config"

// FilesRead is for tests of what is detected.
var FilesRead = filesRead

// Adjust changes what every profile and mode resolves to, past the configuration.
func (h *Host) Adjust(change func(*config.Resolved)) error {
	h.mu.Lock()
	s := h.current
	h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.resolved {
		change(set.Resolved)
		counter, err := h.counter(set.Tokenizer)
		if err != nil {
			return err
		}
		set.rule, set.counter = set.Rule(), counter
	}
	return nil
}
