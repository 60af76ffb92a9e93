// Package compare measures condensation strategies side by side on recorded sessions.
package compare
